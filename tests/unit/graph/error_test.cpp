// Every case of tests/error/graph: text that the parser or the verifier refuses, and a part of what it says.
#include "graph_testing.h"
#include "test_case_file.h"

namespace quernel {
namespace {

std::vector<TestCase> all_cases() {
  std::vector<TestCase> cases;
  for (const TestCaseFile& file : read_test_folder(QUERNEL_ERROR_FOLDER))
    cases.insert(cases.end(), file.cases.begin(), file.cases.end());
  return cases;
}

std::string case_name(const testing::TestParamInfo<TestCase>& info) {
  std::string name = info.param.file + "_" + info.param.name;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

class GraphError : public testing::TestWithParam<TestCase> {};

TEST_P(GraphError, says_what_is_wrong) {
  Expected<Graph> graph = parse_graph(GetParam().sections.at("input"), "test.graph");
  std::string said;
  if (!graph) {
    ASSERT_EQ(graph.errors().size(), 1u);
    said = to_string(graph.errors()[0]);
    EXPECT_GT(graph.errors()[0].place.line, 0);
  } else {
    Status status = verify(*graph);
    ASSERT_FALSE(status) << "the graph was accepted";
    said = to_string(status.errors()[0]);
  }
  std::string expected = GetParam().sections.at("error");
  while (!expected.empty() && expected.back() == '\n') expected.pop_back();
  EXPECT_NE(said.find(expected), std::string::npos) << said;
}

INSTANTIATE_TEST_SUITE_P(cases, GraphError, testing::ValuesIn(all_cases()), case_name);

}  // namespace
}  // namespace quernel
