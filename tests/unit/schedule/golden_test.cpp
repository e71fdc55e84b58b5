// Golden texts of the stages between graph and loop IR, for the target x86-64-v4 where a file's key `target`
// names no other: tests/golden/schedule (passes over the graph that know the target, and steps of scheduling) and
// tests/golden/lower (the kernels before loop passes). QUERNEL_UPDATE_GOLDEN=1 rewrites them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <sstream>

#include "graph/text.h"
#include "graph/verify.h"
#include "loop/print.h"
#include "loop/verify.h"
#include "lower/lower_item.h"
#include "pipeline/run_passes.h"
#include "schedule/print_schedule.h"
#include "schedule/target_passes/target_passes.h"
#include "test_case_file.h"

namespace quernel {
namespace {

Target target_of(const TestCaseFile& file) {
  auto named = file.keys.find("target");
  Expected<Target> t = find_target(named == file.keys.end() ? "x86-64-v4" : named->second);
  EXPECT_TRUE(t) << file.path;
  return *t;
}

// The schedule after a step; by default after all.
Expected<schedule::Schedule> schedule_of(const Graph& graph, const Target& target,
                                         const std::string& step = "", schedule::Choices* choices = nullptr) {
  QUERNEL_TRY(Graph ready, schedule::materialize_operands(graph, target));
  schedule::Packings packings(choices);
  CompileOptions options;
  options.stop_after = step;
  options.verify_each = true;
  return make_schedule(std::move(ready), target, packings, options);
}

// The rules of a file's key `place`: "gpu:* cpu:[bc]".
std::vector<PlaceRule> rules_of(const TestCaseFile& file) {
  std::vector<PlaceRule> rules;
  if (!file.keys.count("place")) return rules;
  std::istringstream words(file.keys.at("place"));
  for (std::string word; words >> word;) rules.push_back({word.substr(4), word.starts_with("cpu:")});
  return rules;
}

// `lines`: a file of choices.
std::string run_stage(const std::string& stage, const Graph& graph, const Target& target,
                      const std::vector<PlaceRule>& rules, const std::string& lines) {
  if (stage == "choose-winograd" || stage == "round-operands" || stage == "materialize-operands" ||
      stage == "place-nodes" || stage == "quantize-activations" || stage == "quantize-activations by row" ||
      stage == "split-activations" || stage == "join-products") {
    Expected<Graph> result = stage == "choose-winograd"        ? schedule::choose_winograd(graph, target)
                             : stage == "quantize-activations" ? schedule::quantize_activations(graph, target)
                             : stage == "quantize-activations by row"
                                 ? schedule::quantize_activations(graph, target, /*whole_rows=*/true)
                             : stage == "join-products"     ? schedule::join_products(graph, target)
                             : stage == "split-activations" ? schedule::split_activations(graph, target)
                             : stage == "place-nodes"       ? schedule::place_nodes(graph, target, rules)
                             : stage == "round-operands"
                                 ? schedule::round_operands(graph, target, DType::kBF16)
                                 : schedule::materialize_operands(graph, target);
    if (!result) return to_string(result.errors());
    Status status = verify(*result, stage);
    EXPECT_TRUE(status) << to_string(status.errors());
    return print(*result, 64);
  }
  const bool is_step = has_pass(schedule_passes(), stage);
  Expected<schedule::Choices> choices = schedule::Choices::parse(lines, "choices");
  if (!choices) return to_string(choices.errors());
  Expected<schedule::Schedule> s = schedule_of(graph, target, is_step ? stage : "", &*choices);
  if (!s) return to_string(s.errors());
  if (is_step) return schedule::print(*s);
  EXPECT_EQ(stage, "lower");
  std::string text;
  for (const schedule::Item& item : s->items) {
    if (item.group < 0) continue;
    lower::LoweredItem lowered = lower::lower_item(*s, item, target);
    loop::Kernel& kernel = lowered.kernel;
    kernel.name = "item" + std::to_string(&item - s->items.data());
    Status status = loop::verify(kernel);
    EXPECT_TRUE(status) << to_string(status.errors());
    text += loop::to_string(kernel);
    for (size_t i = 0; i < lowered.symbols.size(); ++i)
      text += "s" + std::to_string(i) + " = " + to_string(lowered.symbols[i]) + "\n";
    if (!lowered.workgroups.is_const()) text += to_string(lowered.workgroups) + " workgroups\n";
  }
  return text;
}

class ScheduleGolden : public testing::TestWithParam<const char*> {};

TEST_P(ScheduleGolden, prints_as_expected) {
  for (TestCaseFile& file : read_test_folder(std::string(QUERNEL_GOLDEN_ROOT) + "/" + GetParam())) {
    const std::string& stage = file.keys[file.keys.count("stage") ? "stage" : "pass"];
    ASSERT_FALSE(stage.empty()) << file.path;
    Target target = target_of(file);
    for (TestCase& test : file.cases) {
      Expected<Graph> graph = parse_graph(test.sections.at("input"), file.path);
      ASSERT_TRUE(graph) << to_string(graph.errors());
      std::string text = run_stage(stage, *graph, target, rules_of(file),
                                   test.sections.count("choices") ? test.sections.at("choices") : "");
      if (!updating_golden()) {
        EXPECT_EQ(text, test.sections["expect"]) << file.path << ", case " << test.name;
      }
      test.sections["expect"] = text;
    }
    if (updating_golden()) write_test_cases(file);
  }
}
INSTANTIATE_TEST_SUITE_P(Stages, ScheduleGolden, testing::Values("schedule", "lower"));

// The name of a pass, of "simplify-algebra-2", too, as the names of its files begin.
std::string file_prefix(std::string_view pass) {
  std::string name(pass);
  while (!name.empty() && (std::isdigit(static_cast<unsigned char>(name.back())) || name.back() == '-'))
    name.pop_back();
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

TEST(GoldenFiles, every_pass_has_one) {
  std::vector<std::string> files;
  for (const char* folder : {"graph", "schedule", "loop"})
    for (const auto& entry :
         std::filesystem::directory_iterator(std::string(QUERNEL_GOLDEN_ROOT) + "/" + folder))
      files.push_back(entry.path().filename());
  std::vector<std::string> names;
  for (const GraphPass& pass : graph_passes()) names.push_back(file_prefix(pass.name));
  for (const SchedulePass& pass : schedule_passes()) names.push_back(file_prefix(pass.name));
  for (const LoopPass& pass : loop_passes()) names.push_back(file_prefix(pass.name));
  for (const ProgramPass& pass : program_passes()) names.push_back(file_prefix(pass.name));
  for (const std::string& name : names)
    EXPECT_TRUE(std::any_of(files.begin(), files.end(), [&](auto& file) { return file.starts_with(name); }))
        << name;
}

}  // namespace
}  // namespace quernel
