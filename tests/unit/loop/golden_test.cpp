// Runs every case of tests/golden/loop: the passes that the file's key `pass` names, one after another, on the
// case's kernel, must print what is expected, and the interpreter must give the same results before and after.
// QUERNEL_UPDATE_GOLDEN=1 rewrites the expectations.
#include <gtest/gtest.h>

#include "loop/passes.h"
#include "loop/share_kernels.h"
#include "run_kernel.h"
#include "test_case_file.h"

namespace quernel::loop {
namespace {

// Of "simplify, vectorize-loops".
std::vector<std::string> names_in(const std::string& list) {
  std::vector<std::string> names;
  for (size_t begin = 0, end; begin < list.size(); begin = end + 2) {
    end = std::min(list.find(", ", begin), list.size());
    names.push_back(list.substr(begin, end - begin));
  }
  return names;
}

void run_pass(const std::string& name, Kernel& kernel) {
  if (name == "simplify") return simplify(kernel);
  if (name == "vectorize-loops") return vectorize_loops(kernel);
  if (name == "unroll-loops") return unroll_loops(kernel);
  FAIL() << "expected simplify, vectorize-loops or unroll-loops, found " << name;
}

std::string run_passes(const std::string& input, const std::vector<std::string>& passes,
                       const std::string& place) {
  Expected<Kernel> kernel = parse_kernel(input, place);
  if (!kernel) return quernel::to_string(kernel.errors());
  Status valid = verify(*kernel);
  if (!valid) return quernel::to_string(valid.errors());
  EXPECT_EQ(to_string(*kernel), input) << place << ": the input is not in printed form";
  std::vector<int64_t> symbols(kernel->symbols.size(), 5);
  std::string error;
  Bytes inputs = seeded_buffers(*kernel, 1);
  Bytes before = run(*kernel, inputs, &error, symbols);
  EXPECT_EQ(error, "") << place;
  for (const std::string& pass : passes) run_pass(pass, *kernel);
  valid = verify(*kernel);
  EXPECT_TRUE(valid) << place << quernel::to_string(valid.errors());
  EXPECT_EQ(run(*kernel, inputs, &error, symbols), before) << place;
  EXPECT_EQ(error, "") << place;
  return to_string(*kernel);
}

// The kernels that are left, and how each of those before is run: "call @cat_1: @cat_0(size0 = 6)".
std::string share(const std::string& input, const std::string& place) {
  Expected<std::vector<Kernel>> kernels = parse_kernels(input, place);
  if (!kernels) return quernel::to_string(kernels.errors());
  const std::vector<Kernel> before = *kernels;
  const std::vector<SharedKernel> calls = share_kernels(*kernels);
  std::string text, error;
  for (const Kernel& kernel : *kernels) text += to_string(kernel);
  for (size_t k = 0; k < before.size(); ++k) {
    const Kernel& kernel = (*kernels)[static_cast<size_t>(calls[k].kernel)];
    const Bytes inputs = seeded_buffers(before[k], 1);
    EXPECT_EQ(run(kernel, inputs, &error, calls[k].arguments), run(before[k], inputs, &error)) << place;
    EXPECT_EQ(error, "") << place;
    text += "call @" + before[k].name + ": @" + kernel.name + "(";
    for (size_t a = 0; a < calls[k].arguments.size(); ++a)
      text += (a ? ", " : "") + kernel.symbols[a] + " = " + std::to_string(calls[k].arguments[a]);
    text += ")\n";
  }
  return text;
}

std::vector<std::string> golden_files() {
  std::vector<std::string> names;
  for (const TestCaseFile& file : read_test_folder(QUERNEL_LOOP_GOLDEN)) names.push_back(file.stem);
  return names;
}

class LoopGolden : public testing::TestWithParam<std::string> {};

TEST_P(LoopGolden, prints_as_expected_and_computes_the_same) {
  TestCaseFile file = read_test_cases(std::string(QUERNEL_LOOP_GOLDEN) + "/" + GetParam() + ".test");
  std::vector<std::string> passes = names_in(file.keys["pass"]);
  ASSERT_FALSE(passes.empty()) << "expected a first line `# pass: NAME`";
  for (TestCase& test : file.cases) {
    const std::string& input = test.sections.at("input");
    const std::string place = file.stem + ", case " + test.name;
    std::string text = passes[0] == "share-kernels" ? share(input, place) : run_passes(input, passes, place);
    if (!updating_golden()) {
      EXPECT_EQ(text, test.sections["expect"]) << file.path << ", case " << test.name;
    }
    test.sections["expect"] = text;
  }
  if (updating_golden() && !HasFailure()) write_test_cases(file);
}

INSTANTIATE_TEST_SUITE_P(Files, LoopGolden, testing::ValuesIn(golden_files()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace quernel::loop
