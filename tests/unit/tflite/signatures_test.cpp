// Signatures of a model are its entry points.
#include <gtest/gtest.h>

#include "model_builder.h"

namespace quernel::tflite_test {
namespace {

// The first subgraph computes -x, the second |x|.
struct TwoSubgraphs {
  ModelBuilder first, second;
  TwoSubgraphs() {
    int x = first.input("x", {2}), y = first.output("y", {2});
    first.node(Op::NEG, {x}, {y});
    int a = second.input("a", {2}), b = second.output("b", {2});
    second.node(Op::ABS, {a}, {b});
    first.second = &second;
    first.signatures = {{"negate", 0, {{"in", 0}}, {{"out", 1}}}, {"absolute", 1, {{"in", 0}}, {{"out", 1}}}};
  }
};

ImportOptions called(const std::string& signature) {
  ImportOptions options;
  options.signature = signature;
  return options;
}

TEST(TfliteSignatures, each_is_an_entry_point) {
  TwoSubgraphs m;
  const std::vector<Tensor> x = {f32_tensor({2}, {-1, 2})};
  expect_values(m.first.run(x), {2}, {1, -2});
  expect_values(m.first.run(x, called("negate")), {2}, {1, -2});
  expect_values(m.first.run(x, called("absolute")), {2}, {1, 2});
  Expected<ImportedModel> imported = m.first.import(called("absolute"));
  ASSERT_TRUE(imported);
  EXPECT_EQ(imported->graph.name, "absolute");
  EXPECT_EQ(imported->graph.values[static_cast<size_t>(imported->graph.inputs[0])].name, "a");
  EXPECT_TRUE(imported->notes.empty());
}

TEST(TfliteSignatures, others_than_the_first_are_noted) {
  Expected<ImportedModel> imported = TwoSubgraphs().first.import();
  ASSERT_TRUE(imported);
  ASSERT_EQ(imported->notes.size(), 1u);
  EXPECT_EQ(
      imported->notes[0],
      "the model has the signatures 'negate', 'absolute': this is the first subgraph; --entry NAME chooses "
      "another");
}

TEST(TfliteSignatures, unknown_names_are_diagnosed) {
  TwoSubgraphs m;
  EXPECT_NE(
      m.first.errors(called("other"))
          .find("expected an entry point of the name of a signature ('negate', 'absolute'), found 'other'"),
      std::string::npos);
  m.first.signatures.pop_back();  // of a model with one entry point any name is its name
  EXPECT_EQ(m.first.errors(called("other")), "no error");
}

TEST(TfliteSignatures, numbers_are_checked) {
  TwoSubgraphs m;
  m.first.signatures[1].subgraph = 2;
  EXPECT_NE(m.first.errors().find("signature 1: subgraph: expected a number from 0 to 1, found 2"),
            std::string::npos)
      << m.first.errors();
  m.first.signatures[1].subgraph = 1;
  m.first.signatures[1].outputs["out"] = 2;
  EXPECT_NE(m.first.errors().find("signature 1: input or output: expected a number from 0 to 1, found 2"),
            std::string::npos)
      << m.first.errors();
}

}  // namespace
}  // namespace quernel::tflite_test
