// Runs every tests/golden/loop/*.test: `# pass: NAME, ...` and a sentence of intent, `# input`, a kernel, `#
// expect`, the kernel after the passes. With QUERNEL_UPDATE_GOLDEN set in the environment, rewrites what is
// expected.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "loop/passes.h"
#include "run_kernel.h"

namespace quernel::loop {
namespace {

struct Golden {
  std::vector<std::string> passes;
  std::string head, input, expect;  // head: everything up to and including the line `# input`
  int input_line = 1;
};

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

Golden split(const std::string& text) {
  Golden golden;
  std::istringstream lines(text);
  std::string* section = &golden.head;
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line == "# expect") {
      section = &golden.expect;
      continue;
    }
    *section += line + "\n";
    if (line == "# input") {
      section = &golden.input;
      golden.input_line = number + 1;
    }
    if (line.starts_with("# pass: ")) {
      std::string names = line.substr(8) + ",";
      for (size_t begin = 0, end; (end = names.find(',', begin)) != std::string::npos; begin = end + 1) {
        begin = names.find_first_not_of(' ', begin);
        golden.passes.push_back(names.substr(begin, end - begin));
      }
    }
  }
  return golden;
}

void run_pass(const std::string& name, Kernel& kernel) {
  if (name == "simplify") return simplify(kernel);
  if (name == "vectorize-loops") return vectorize_loops(kernel);
  if (name == "unroll-loops") return unroll_loops(kernel);
  FAIL() << "expected simplify, vectorize-loops or unroll-loops, found " << name;
}

std::vector<std::string> golden_files() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(QUERNEL_LOOP_GOLDEN))
    if (entry.path().extension() == ".test") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

class LoopGolden : public testing::TestWithParam<std::string> {};

TEST_P(LoopGolden, matches) {
  std::filesystem::path path = std::filesystem::path(QUERNEL_LOOP_GOLDEN) / (GetParam() + ".test");
  Golden golden = split(read_file(path));
  ASSERT_FALSE(golden.passes.empty()) << "expected a first line `# pass: NAME`";
  Expected<Kernel> kernel = parse_kernel(golden.input, path.filename().string(), golden.input_line);
  ASSERT_TRUE(kernel) << quernel::to_string(kernel.errors());
  Status valid = verify(*kernel);
  ASSERT_TRUE(valid) << quernel::to_string(valid.errors());
  EXPECT_EQ(to_string(*kernel), golden.input) << "the input is not in printed form";
  std::vector<int64_t> symbols(kernel->symbols.size(), 5);
  std::string error;
  Bytes inputs = seeded_buffers(*kernel, 1);
  Bytes before = run(*kernel, inputs, &error, symbols);
  EXPECT_EQ(error, "");
  for (const std::string& pass : golden.passes) run_pass(pass, *kernel);
  valid = verify(*kernel);
  EXPECT_TRUE(valid) << quernel::to_string(valid.errors());
  EXPECT_EQ(run(*kernel, inputs, &error, symbols), before);
  EXPECT_EQ(error, "");
  std::string actual = to_string(*kernel);
  if (std::getenv("QUERNEL_UPDATE_GOLDEN"))
    std::ofstream(path) << golden.head << golden.input << "# expect\n" << actual;
  else
    EXPECT_EQ(actual, golden.expect);
}

INSTANTIATE_TEST_SUITE_P(Files, LoopGolden, testing::ValuesIn(golden_files()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace quernel::loop
