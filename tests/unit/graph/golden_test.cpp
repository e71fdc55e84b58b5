// Runs every case of tests/golden/graph: the pass that the file names, on the case's input, must print the
// expected graph, and the interpreter must give the same results before and after. QUERNEL_UPDATE_GOLDEN=1
// rewrites the expectations.
#include "graph/passes/passes.h"
#include "graph_testing.h"
#include "random_graph/random_graph.h"
#include "test_case_file.h"

namespace quernel {
namespace {

struct Pass {
  const char* name;
  Expected<Graph> (*run)(const Graph&);
  double tolerance;  // of results, relative; 0 for passes that keep every bit
};
const Pass kPasses[] = {
    {"canonicalize-movement", canonicalize_movement, 0},
    {"choose-channels-last",
     [](const Graph& graph) { return choose_channels_last(graph, {.largest_step = 2}); }, 1e-6},
    {"compose-views", compose_views, 0},
    {"eliminate-dead-nodes", eliminate_dead_nodes, 0},
    {"expand-dequantize", expand_dequantize, 0},
    {"expand-powers", expand_powers, 3e-7},
    {"fold-constants", fold_constants, 0},
    {"fold-scales-into-contractions", fold_scales_into_contractions, 1e-5},
    {"form-byte-tables", form_byte_tables, 0},
    {"form-integer-contractions",
     [](const Graph& graph) { return form_integer_contractions(graph, DType::kU8); }, 1e-5},
    {"form-quantized-constants", form_quantized_constants, 0},
    {"merge-common-subexpressions", merge_common_subexpressions, 0},
    {"narrow-multipliers", narrow_multipliers, 0},
    {"shrink-shifts", shrink_shifts, 0},
    {"narrow-weights", [](const Graph& graph) { return narrow_weights(graph, DType::kF16); }, 0},
    {"simplify-algebra", simplify_algebra, 0},
    {"simplify-control-flow", simplify_control_flow, 0},
    {"split-long-contractions",
     [](const Graph& graph) {
       return split_long_contractions(graph, {.most_terms = 128,
                                              .part_terms = 32,
                                              .longest_shared = 64,
                                              .few_results = 8,
                                              .least_shared = 256,
                                              .busy_results = 32,
                                              .busy_terms = 32});
     },
     1e-6},
    {"split-long-reductions",
     [](const Graph& graph) {
       return split_long_reductions(graph, {.least_shared = 256,
                                            .enough_workgroups = 4,
                                            .part_work = 64,
                                            .fewest_terms = 8,
                                            .most_terms = 512,
                                            .most_work = 1024,
                                            .most_together = 64,
                                            .longest_row = 128});
     },
     1e-6},
    {"split-long-lines",
     [](const Graph& graph) {
       return split_long_lines(graph, {.by_bounds = true,
                                       .longest = 12,
                                       .longest_sorted = 12,
                                       .block = 4,
                                       .arg_block = 4,
                                       .sorted_block = 8,
                                       .most_kept = 3,
                                       .most_grouped = 4});
     },
     1e-6},
    {"split-long-scatters",
     [](const Graph& graph) {
       return split_long_scatters(graph, {.longest = 8, .part = 4, .free_parts = 4, .most_results = 48});
     },
     1e-6},
    {"split-windows", split_windows, 0},
    {"split-weights", [](const Graph& graph) { return split_weights(graph, 1600); }, 0},
    {"split-long-cats", [](const Graph& graph) { return split_long_cats(graph, 3); }, 0},
};

struct GoldenCase {
  std::string pass;
  TestCase test;
};

void PrintTo(const GoldenCase& golden, std::ostream* out) { PrintTo(golden.test, out); }

std::vector<TestCaseFile>& files() {
  static std::vector<TestCaseFile> files = read_test_folder(QUERNEL_GOLDEN_FOLDER);
  return files;
}

std::vector<GoldenCase> all_cases() {
  std::vector<GoldenCase> cases;
  for (const TestCaseFile& file : files())
    for (const TestCase& test : file.cases) {
      auto pass = file.keys.find("pass");
      cases.push_back({pass == file.keys.end() ? "" : pass->second, test});
    }
  return cases;
}

std::string case_name(const testing::TestParamInfo<GoldenCase>& info) {
  std::string name = info.param.test.file + "_" + info.param.test.name;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

class GraphGolden : public testing::TestWithParam<GoldenCase> {};

TEST_P(GraphGolden, prints_as_expected_and_computes_the_same) {
  const GoldenCase& golden = GetParam();
  const Pass* pass = nullptr;
  for (const Pass& p : kPasses)
    if (golden.pass == p.name) pass = &p;
  ASSERT_NE(pass, nullptr) << "the file's first line names no pass: '" << golden.pass << "'";

  Graph before = graph_of(golden.test.sections.at("input"));
  Expected<Graph> after = pass->run(before);
  ASSERT_TRUE(after) << to_string(after.errors());
  Status status = verify(*after, pass->name);
  EXPECT_TRUE(status) << to_string(status.errors());
  std::string text = print(*after);
  if (updating_golden()) {
    if (HasFailure()) return;  // keeps what was expected
    for (TestCaseFile& file : files())
      for (TestCase& test : file.cases)
        if (test.file == golden.test.file && test.name == golden.test.name) test.sections["expect"] = text;
  } else {
    EXPECT_EQ(text, golden.test.sections.at("expect"));
  }
  if (!before.symbols.empty()) return;
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    std::vector<Tensor> inputs = random_inputs(before, seed), expected = run(before, inputs),
                        found = run(*after, inputs);
    ASSERT_EQ(expected.size(), found.size());
    for (size_t i = 0; i < found.size(); ++i)
      EXPECT_TRUE(same_tensor(expected[i], found[i], pass->tolerance)) << "output " << before.outputs[i].name;
  }
}

INSTANTIATE_TEST_SUITE_P(cases, GraphGolden, testing::ValuesIn(all_cases()), case_name);

TEST(GraphGoldenFiles, every_pass_has_one) {
  for (const Pass& pass : kPasses) {
    bool found = false;
    for (const TestCaseFile& file : files()) {
      auto key = file.keys.find("pass");
      found |= key != file.keys.end() && key->second == pass.name;
    }
    EXPECT_TRUE(found) << pass.name;
  }
}

class UpdateGolden : public testing::Environment {
 public:
  void TearDown() override {
    if (!updating_golden()) return;
    for (const TestCaseFile& file : files()) write_test_cases(file);
  }
};
const testing::Environment* const kUpdate = testing::AddGlobalTestEnvironment(new UpdateGolden);

}  // namespace
}  // namespace quernel
