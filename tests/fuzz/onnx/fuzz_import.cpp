// Feeds mutated ONNX models to the importer: it must answer with diagnostics or a graph that verifies, never
// with a crash, a hang or a huge allocation. Deterministic: onnx_fuzz_import [COUNT] [FIRST], mutation i
// depends on i alone.
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "check_import.h"
#include "frontends/onnx/import_model.h"
#include "processor_time.h"
#include "random_mutation.h"
#include "seed_models.h"

using namespace quernel;
using namespace quernel::onnx_test;
using quernel::testing::check_import;
using quernel::testing::end_after;
using quernel::testing::ImportOutcome;

namespace {

constexpr long kSecondsPerModel = 20;
constexpr long kMaxResidentKiB = 1 << 20;  // without sanitizers

std::string mutate(const std::vector<onnx::ModelProto>& seeds, uint64_t index) {
  Random random(index * 0x9e3779b97f4a7c15u + 1);
  onnx::ModelProto model = seeds[pick(random, seeds.size())];
  size_t kind = pick(random, 4);
  if (kind != 0) {
    for (size_t i = 1 + pick(random, 4); i-- > 0;) mutate_somewhere(model, random);
    return model.SerializeAsString();
  }
  std::string bytes = model.SerializeAsString();
  switch (pick(random, 4)) {
    case 0:
      bytes.resize(pick(random, bytes.size()));
      break;
    case 1: {
      std::string other = seeds[pick(random, seeds.size())].SerializeAsString();
      size_t from = pick(random, other.size());
      bytes.replace(pick(random, bytes.size()), pick(random, 64), other, from, pick(random, 64));
      break;
    }
    case 2:
      bytes.erase(pick(random, bytes.size()), 1 + pick(random, 16));
      break;
    default:
      for (size_t i = 1 + pick(random, 8); i-- > 0;)
        bytes[pick(random, bytes.size())] ^= static_cast<char>(1u << pick(random, 8));
  }
  return bytes;
}

bool sanitized() {
#if defined(__SANITIZE_ADDRESS__)
  return true;
#else
  return false;
#endif
}

}  // namespace

int main(int argc, char** argv) {
  uint64_t count = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 10000,
           first = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 0;
  std::vector<onnx::ModelProto> seeds = seed_models();
  for (const onnx::ModelProto& seed : seeds) {
    std::string bytes = seed.SerializeAsString();
    Expected<ImportedModel> imported =
        import_onnx_bytes({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, "seed.onnx");
    if (imported) continue;
    std::printf("a seed model does not import: %s\n", to_string(imported.errors()).c_str());
    return 1;
  }
  uint64_t accepted = 0, wrong = 0;
  for (uint64_t i = first; i < first + count; ++i) {
    std::string bytes = mutate(seeds, i);
    end_after(kSecondsPerModel);
    Expected<ImportedModel> imported =
        import_onnx_bytes({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, "fuzz.onnx");
    const ImportOutcome outcome = check_import(i, imported);
    wrong += outcome == ImportOutcome::kWrong;
    accepted += outcome == ImportOutcome::kImported;
  }
  end_after(0);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf("%llu mutations: %llu imported, the others refused; %llu wrong; peak %ld MiB\n",
              static_cast<unsigned long long>(count), static_cast<unsigned long long>(accepted),
              static_cast<unsigned long long>(wrong), usage.ru_maxrss / 1024);
  if (!sanitized() && usage.ru_maxrss > kMaxResidentKiB) {
    std::printf("expected at most 1 GiB of memory\n");
    return 1;
  }
  return wrong != 0;
}
