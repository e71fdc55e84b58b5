// Convolutions by Winograd's algorithm against the interpreter: sizes with and without tails, borders of
// several kinds, epilogues, every target that this machine runs, one and two threads.
#include "on_host_targets.h"
#include "winograd_graphs.h"

namespace quernel::testing {
namespace {

class Winograd : public ::testing::TestWithParam<int> {};

TEST_P(Winograd, equals_the_interpreter) {
  // The largest measured over these cases: 3.4e-7 (tiles of 2) and 1.3e-6 (of 4).
  double bound = GetParam() == 2 ? 1e-6 : 3e-6, worst = 0;
  for (const WinogradCase& c : kWinogradCases)
    worst = std::max(worst, error_on_host_targets(winograd_text(c, GetParam()), bound));
  RecordProperty("largest_error", std::to_string(worst));
  std::printf("largest error, as a share of the largest result: %.2g\n", worst);
}

INSTANTIATE_TEST_SUITE_P(Tiles, Winograd, ::testing::Values(2, 4), ::testing::PrintToStringParamName());

}  // namespace
}  // namespace quernel::testing
