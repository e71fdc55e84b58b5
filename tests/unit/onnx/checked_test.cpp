// Indices that are computed while a model runs and are out of range: with OnnxChoices::checked the run fails
// and names node and index; without it nothing fails.
#include <gtest/gtest.h>
#include <onnx/defs/parser.h>

#include <filesystem>
#include <random>

#include "compiled_c.h"
#include "host_targets.h"
#include "pipeline/pipeline.h"
#include "run_compiled.h"
#include "run_model.h"

namespace quernel::onnx_test {
namespace {

// A node "picks" of operands a (data), i (indices) and u, with indices into dims of these sizes by turns.
struct Family {
  std::string name, node;
  std::vector<int64_t> data, indices, updates;
  std::vector<int64_t> sizes;
  std::vector<std::string> data_names = {};  // of free dims
  std::string what = "index";
};

const std::vector<Family> kFamilies = {
    {"gather", "y = Gather <axis = 1> (a, i)", {3, 5}, {2, 2}, {}, {5}},
    {"gather_one", "y = Gather (a, i)", {7}, {}, {}, {7}},
    {"gather_free", "y = Gather <axis = 1> (a, i)", {3, 5}, {4}, {}, {5}, {"", "m"}},
    {"gather_elements", "y = GatherElements <axis = 1> (a, i)", {3, 5}, {3, 2}, {}, {5}},
    {"gather_elements_free", "y = GatherElements <axis = 0> (a, i)", {6, 2}, {4, 2}, {}, {6}, {"n", ""}},
    {"gather_nd", "y = GatherND (a, i)", {3, 5}, {4, 2}, {}, {3, 5}},
    {"gather_nd_rows", "y = GatherND (a, i)", {3, 5}, {4, 1}, {}, {3}},
    {"gather_nd_batch", "y = GatherND <batch_dims = 1> (a, i)", {3, 5, 2}, {3, 1}, {}, {5}},
    {"scatter_elements", "y = ScatterElements <axis = 1> (a, i, u)", {3, 5}, {3, 2}, {3, 2}, {5}},
    {"scatter_elements_free", "y = ScatterElements (a, i, u)", {6, 2}, {3, 2}, {3, 2}, {6}, {"n", ""}},
    {"scatter_nd", "y = ScatterND <reduction = \"add\"> (a, i, u)", {3, 5}, {4, 2}, {4}, {3, 5}},
    {"scatter_nd_rows", "y = ScatterND (a, i, u)", {4, 5}, {2, 1}, {2, 5}, {4}},
    {"tensor_scatter", "y = TensorScatter (a, u, i)", {2, 5, 3}, {2}, {2, 1, 3}, {5}},
    {"loss", "y = NegativeLogLikelihoodLoss (a, i)", {3, 5}, {3}, {}, {5}, {}, "target"},
    {"unpool", "y = MaxUnpool <kernel_shape = [2], strides = [2]> (a, i)", {1, 1, 3}, {1, 1, 3}, {}, {6}},
};

int64_t count_of(const std::vector<int64_t>& dims) {
  int64_t count = 1;
  for (int64_t d : dims) count *= d;
  return count;
}

Tensor ramp(const std::vector<int64_t>& dims) {
  std::vector<float> values(static_cast<size_t>(count_of(dims)));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  return f32_tensor(dims, values);
}

ModelBuilder model_of(const Family& family) {
  ModelBuilder m(24);
  m.input("a", family.data, kFloat, family.data_names).input("i", family.indices, kInt64).output("y");
  if (!family.updates.empty()) m.input("u", family.updates);
  onnx::OnnxParser parser(family.node.c_str());
  onnx::NodeProto node;
  EXPECT_TRUE(parser.Parse(node).IsOK()) << family.node;
  node.set_name("picks");
  *m.graph().add_node() = node;
  return m;
}

struct Trial {
  std::vector<Tensor> inputs;
  std::string text;  // that the error contains; empty: the run succeeds
};

// Indices in range, then runs with one index out of range, anywhere and on either side.
std::vector<Trial> runs_of(const Family& family, std::mt19937& random) {
  auto below = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
  size_t width = family.sizes.size();
  std::vector<Trial> runs;
  for (int run = 0; run < 5; ++run) {
    std::vector<int64_t> indices(static_cast<size_t>(count_of(family.indices)));
    for (size_t i = 0; i < indices.size(); ++i) {
      int64_t size = family.sizes[i % width];
      indices[i] = below(2 * size) - size;
    }
    std::string text;
    if (run > 0) {
      size_t at = static_cast<size_t>(below(static_cast<int64_t>(indices.size()))), column = at % width;
      int64_t size = family.sizes[column];
      const int64_t wrong[] = {size, -size - 1, size + 1 + below(1000), INT64_MIN + 1 + below(1000)};
      indices[at] = wrong[run - 1];
      text = family.what + (width > 1 ? " " + std::to_string(column) : "") + " of node picks'";
    }
    Trial r{{ramp(family.data), i64_tensor(family.indices, indices)}, text};
    if (!family.updates.empty()) r.inputs.push_back(ramp(family.updates));
    if (!text.empty()) {
      auto is_wrong = [&](size_t i) {
        return indices[i] >= family.sizes[i % width] || indices[i] < -family.sizes[i % width];
      };
      for (size_t i = 0; i < indices.size(); ++i)
        if (is_wrong(i)) r.text += "|found " + std::to_string(indices[i]);
    }
    runs.push_back(std::move(r));
  }
  return runs;
}

// Every part of the text, divided by '|'.
void expect_failure(const Expected<std::vector<Tensor>>& got, const std::string& text,
                    const std::string& where) {
  ASSERT_FALSE(got) << where << " ran";
  std::string said = got.errors()[0].message;
  for (size_t begin = 0; begin <= text.size();) {
    size_t end = std::min(text.find('|', begin), text.size());
    EXPECT_NE(said.find(text.substr(begin, end - begin)), std::string::npos) << where << ": " << said;
    begin = end + 1;
  }
}

Expected<Graph> import(const ModelBuilder& m, bool checked) {
  ImportOptions options;
  options.choices.checked = checked;
  QUERNEL_TRY(ImportedModel imported, m.import(options));
  return std::move(imported.graph);
}

class CheckedIndices : public ::testing::TestWithParam<Family> {};

TEST_P(CheckedIndices, end_a_run_with_node_and_index) {
  std::mt19937 random(1);
  ModelBuilder m = model_of(GetParam());
  Expected<Graph> graph = import(m, true);
  ASSERT_TRUE(graph) << to_string(graph.errors());
  Status sound = verify(*graph);
  ASSERT_TRUE(sound) << to_string(sound.errors());
  CompileOptions options;
  Expected<testing::CompiledGraph> compiled = testing::CompiledGraph::make(*graph, options, 1);
  ASSERT_TRUE(compiled) << to_string(compiled.errors());
  Expected<Graph> unchecked = import(m, false);
  ASSERT_TRUE(unchecked) << to_string(unchecked.errors());
  EXPECT_TRUE(unchecked->symbol_sources.empty()) << "checks that nobody has asked for";
  for (const Trial& run : runs_of(GetParam(), random)) {
    Expected<std::vector<Tensor>> interpreted = interpret(*graph, run.inputs),
                                  ran = compiled->run(run.inputs),
                                  without = interpret(*unchecked, run.inputs);
    ASSERT_TRUE(without) << to_string(without.errors());
    if (!run.text.empty()) {
      expect_failure(interpreted, run.text, "interpreted");
      expect_failure(ran, run.text, "compiled");
      continue;
    }
    ASSERT_TRUE(interpreted) << to_string(interpreted.errors());
    ASSERT_TRUE(ran) << to_string(ran.errors());
    EXPECT_EQ(testing::difference(ran->at(0), without->at(0), 1e-6, 1e-6), "");
    EXPECT_EQ(testing::difference(interpreted->at(0), without->at(0), 1e-6, 1e-6), "");
  }
}

INSTANTIATE_TEST_SUITE_P(families, CheckedIndices, ::testing::ValuesIn(kFamilies),
                         [](const ::testing::TestParamInfo<Family>& info) { return info.param.name; });

// Known indices are refused while importing, of every operator of the kind and with or without checks.
TEST(Checked, constants_are_refused_at_compile_time) {
  std::mt19937 random(2);
  for (const Family& family : kFamilies) {
    if (!family.data_names.empty()) continue;
    for (const Trial& run : runs_of(family, random)) {
      ModelBuilder m = model_of(family);
      m.ints("i", family.indices,
             std::vector<int64_t>(
                 reinterpret_cast<const int64_t*>(run.inputs[1].bytes.data()),
                 reinterpret_cast<const int64_t*>(run.inputs[1].bytes.data()) + run.inputs[1].count()));
      auto* inputs = m.graph().mutable_input();
      inputs->DeleteSubrange(1, 1);
      Expected<Graph> graph = import(m, false);
      EXPECT_EQ(static_cast<bool>(graph), run.text.empty()) << family.name;
      if (graph) continue;
      EXPECT_NE(graph.errors()[0].message.find("is out of range for a dim of "), std::string::npos)
          << to_string(graph.errors());
    }
  }
}

ModelBuilder parsed(const std::string& text) {
  ModelBuilder m;
  m.model.Clear();
  auto status = onnx::OnnxParser::Parse(m.model, text.c_str());
  EXPECT_TRUE(status.IsOK()) << status.ErrorMessage();
  return m;
}

void expect_checked(const ModelBuilder& m, const std::vector<Tensor>& right, const std::vector<Tensor>& wrong,
                    const std::string& text) {
  Expected<Graph> graph = import(m, true);
  ASSERT_TRUE(graph) << to_string(graph.errors());
  Expected<testing::CompiledGraph> compiled = testing::CompiledGraph::make(*graph, {}, 1);
  ASSERT_TRUE(compiled) << to_string(compiled.errors());
  for (int again = 0; again < 2; ++again) {
    Expected<std::vector<Tensor>> ran = compiled->run(right);
    EXPECT_TRUE(ran) << to_string(ran.errors());
    EXPECT_TRUE(interpret(*graph, right));
    expect_failure(compiled->run(wrong), text, "compiled");
    expect_failure(interpret(*graph, wrong), text, "interpreted");
  }
}

TEST(Checked, indices_inside_a_loop) {
  ModelBuilder m = parsed(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[5] a, int64[3] i, int64 n) => (float y) {
      yes = Constant <value = bool {1}> ()
      zero = Constant <value = float {0}> ()
      y = Loop (n, yes, zero) <body = b (int64 t, bool go, float sum) => (bool goes, float more) {
        goes = Identity (go)
        j = Gather (i, t)
        p = Gather (a, j)
        more = Add (sum, p)
      }>
    })");
  for (onnx::NodeProto& node : *m.graph().mutable_node())
    for (onnx::AttributeProto& a : *node.mutable_attribute())
      if (a.has_g()) a.mutable_g()->mutable_node(2)->set_name("inner");
  std::vector<Tensor> right = {ramp({5}), i64_tensor({3}, {4, 0, -5}), i64_tensor({}, {3})}, wrong = right;
  wrong[1] = i64_tensor({3}, {4, 5, 0});
  expect_checked(m, right, wrong, "index of node inner'|found 5");
}

TEST(Checked, indices_inside_a_branch) {
  ModelBuilder m = parsed(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[5] a, int64[1] i, bool c) => (float[1] y) {
      y = If (c) <then_branch = t () => (float[1] p) { p = Gather (a, i) },
                  else_branch = e () => (float[1] q) { q = Gather (a, i) }>
    })");
  Tensor yes = make_tensor<uint8_t>(DType::kBool, {}, {1});
  expect_checked(m, {ramp({5}), i64_tensor({1}, {4}), yes}, {ramp({5}), i64_tensor({1}, {-6}), yes},
                 "index of node p'|found -6");
}

// A branch that does not run checks nothing.
TEST(Checked, indices_of_the_other_branch) {
  ModelBuilder m = parsed(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[5] a, int64[1] i, bool c) => (float[1] y) {
      y = If (c) <then_branch = t () => (float[1] p) { p = Gather (a, i) },
                  else_branch = e () => (float[1] q) { h = Sin (a) j = Abs (i) q = Gather (h, j) }>
    })");
  Tensor yes = make_tensor<uint8_t>(DType::kBool, {}, {1}), no = make_tensor<uint8_t>(DType::kBool, {}, {0});
  expect_checked(m, {ramp({5}), i64_tensor({1}, {-5}), yes}, {ramp({5}), i64_tensor({1}, {-5}), no},
                 "index of node q'|found 5");
}

// Sizes that a run computes, and free ones.
TEST(Checked, indices_into_dims_of_any_size) {
  ModelBuilder m = parsed(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[n] a, int64[k] i) => (float[k] y) { t = NonZero (a) s = Transpose (t) f = Cast <to = 1> (s) y = Gather (f, i) })");
  Tensor a = f32_tensor({4}, {0, 1, 1, 0});
  std::vector<Tensor> right = {a, i64_tensor({2}, {1, -2})};
  expect_checked(m, right, {a, i64_tensor({1}, {2})}, "index of node y'|found 2");
  expect_checked(m, right, {a, i64_tensor({1}, {-3})}, "index of node y'|found -3");
  ModelBuilder plain = parsed(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[n] a, int64[k] i) => (float[k] y) { y = Gather (a, i) })");
  expect_checked(plain, {ramp({3}), i64_tensor({1}, {-3})}, {ramp({2}), i64_tensor({1}, {-3})},
                 "index of node y'|found -3");
}

// An ignored target need not be a class.
TEST(Checked, ignored_targets) {
  ModelBuilder m = parsed(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2, 3] a, int64[2] i) => (float y) { y = NegativeLogLikelihoodLoss <ignore_index = 9> (a, i) })");
  expect_checked(m, {ramp({2, 3}), i64_tensor({2}, {9, 1})}, {ramp({2, 3}), i64_tensor({2}, {9, 8})},
                 "target of node y'|found 8");
}

TEST(Checked, the_c_form_returns_a_status) {
  ModelBuilder m = parsed(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[5] a, int64[2] i) => (float[2] y) { y = Gather (a, i) })");
  Expected<Graph> graph = import(m, true);
  ASSERT_TRUE(graph) << to_string(graph.errors());
  std::string folder = (std::filesystem::temp_directory_path() / "quernel_checked_XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  CompileOptions options;
  options.emit = Emit::kC;
  Expected<CompileReport> report = compile_graphs({*graph}, folder + "/model", options);
  ASSERT_TRUE(report) << to_string(report.errors());
  std::vector<std::string> files;
  for (const std::string& file : report->program->files)
    if (file.ends_with(".c")) files.push_back(file);
  test::CompiledC compiled = test::CompiledC::of_files(files, "-O1");
  std::filesystem::remove_all(folder);
  ASSERT_TRUE(compiled.ok());
  auto* run = compiled.function<int32_t(const void*, void* const*, void* const*)>("model_run");
  float a[5] = {0, 1, 2, 3, 4}, y[2];
  for (int64_t index : {int64_t{4}, int64_t{-5}, int64_t{5}, int64_t{-6}}) {
    int64_t i[2] = {0, index};
    void *in[] = {a, i}, *out[] = {y};
    bool right = index >= -5 && index < 5;
    EXPECT_EQ(run(compiled.symbol("model_static_memory"), in, out) == 0, right) << index;
  }
}

}  // namespace
}  // namespace quernel::onnx_test
