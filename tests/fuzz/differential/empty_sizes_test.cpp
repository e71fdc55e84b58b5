// Operators on tensors without elements: of sizes that are 0 when the model is compiled, and of free sizes,
// where one compiled model runs at 0, 1 and 5. What each gives at 0 stands here, from ONNX's text and numpy;
// at other sizes, and everywhere but in the interpreter, the interpreter is compared with.
// Over 600 lines because the cases are one table.
#include <gtest/gtest.h>
#include <onnx/defs/parser.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <optional>

#include "compiled_c.h"
#include "frontends/onnx/import_model.h"
#include "graph/verify.h"
#include "join_graphs.h"
#include "on_vulkan.h"
#include "pipeline/pipeline.h"

namespace quernel::testing {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

struct Result {
  std::vector<int64_t> dims;
  std::vector<double> values;  // one: of all elements
};

// N stands for the free dim, or for 0.
struct Case {
  const char* name;
  const char* inputs;
  const char* nodes;
  std::vector<Result> results;  // y, y1, y2 at N = 0
  bool alone = false;           // sizes are found while it runs, or it has bodies: not joined with others
};

std::vector<Case> cases() {
  return {
      {"matmul_rows", "float[N,3] x, float[3,4] w", "y = MatMul(x, w)", {{{0, 4}, {}}}},
      {"matmul_columns", "float[4,3] x, float[3,N] w", "y = MatMul(x, w)", {{{4, 0}, {}}}},
      {"matmul_depth", "float[2,N] x, float[N,3] w", "y = MatMul(x, w)", {{{2, 3}, {0}}}},
      {"matmul_batch", "float[N,2,3] x, float[N,3,4] w", "y = MatMul(x, w)", {{{0, 2, 4}, {}}}},
      {"matmul_constant",
       "float[N,2] x",
       "w = Constant<value = float[2,3] {1, 2, 3, 4, 5, 6}>() y = MatMul(x, w)",
       {{{0, 3}, {}}}},
      {"matmul_f16", "float16[2,N] x, float16[N,3] w", "y = MatMul(x, w)", {{{2, 3}, {0}}}},
      {"gemm_depth",
       "float[2,N] x, float[N,3] w",
       "c = Constant<value = float[3] {1, 2, 3}>() y = Gemm(x, w, c)",
       {{{2, 3}, {1, 2, 3, 1, 2, 3}}}},
      {"add_rows", "float[N,3] x, float[3] z", "y = Add(x, z)", {{{0, 3}, {}}}},
      {"add_outer", "float[N,1] x, float[1,4] z", "y = Add(x, z)", {{{0, 4}, {}}}},
      {"add_one_row", "float[N,3] x, float[1,3] z", "a = Add(x, z) y = Relu(a)", {{{0, 3}, {}}}},
      {"concat_past",
       "float[1,N] x",
       "c = Constant<value = float[1,3] {1, 2, 3}>() y = Concat<axis = 1>(x, c)",
       {{{1, 3}, {1, 2, 3}}}},
      {"concat_after",
       "float[2,N] x",
       "c = Constant<value = float[2,2] {1, 2, 3, 4}>() y = Concat<axis = 1>(c, x)",
       {{{2, 2}, {1, 2, 3, 4}}}},
      {"concat_both", "float[N,2] x, float[N,2] z", "y = Concat<axis = 0>(x, z)", {{{0, 2}, {}}}},
      {"concat_of_batch",
       "float[N,2,3] x, float[N,4,3] z",
       "a = Exp(x) b = Exp(z) y = Concat<axis = 1>(a, b)",
       {{{0, 6, 3}, {}}}},
      {"concat_of_computed",
       "float[2,N,2] x",
       "a = Exp(x) c = Constant<value = float[2,1,2] {1, 2, 3, 4}>() b = Neg(c) y = Concat<axis = 1>(a, b, "
       "c)",
       {{{2, 2, 2}, {-1, -2, 1, 2, -3, -4, 3, 4}}}},
      {"softmax_rows", "float[N,3] x", "y = Softmax(x)", {{{0, 3}, {}}}},
      {"softmax_wide_rows", "float[N,64] x", "y = Softmax(x)", {{{0, 64}, {}}}},
      {"softmax_axis", "float[2,N] x", "y = Softmax(x)", {{{2, 0}, {}}}},
      {"log_softmax_axis", "float[N,2] x", "y = LogSoftmax<axis = 0>(x)", {{{0, 2}, {}}}},
      {"reduce_sum",
       "float[2,N] x",
       "a = Constant<value = int64[1] {1}>() y = ReduceSum(x, a)",
       {{{2, 1}, {0}}}},
      {"reduce_sum_all", "float[N,3] x", "y = ReduceSum<keepdims = 0>(x)", {{{}, {0}}}},
      {"reduce_sum_int",
       "int64[N,2] x",
       "a = Constant<value = int64[1] {0}>() y = ReduceSum<keepdims = 0>(x, a)",
       {{{2}, {0}}}},
      {"reduce_max", "float[2,N] x", "y = ReduceMax<axes = [1], keepdims = 0>(x)", {{{2}, {-kInf}}}},
      {"reduce_min", "float[N,3] x", "y = ReduceMin<axes = [0]>(x)", {{{1, 3}, {kInf}}}},
      {"reduce_max_rows", "float[N,3] x", "y = ReduceMax<axes = [1]>(x)", {{{0, 1}, {}}}},
      {"reduce_max_int_rows", "int64[N,3] x", "y = ReduceMax<axes = [1]>(x)", {{{0, 1}, {}}}},
      {"reduce_mean", "float[2,N] x", "y = ReduceMean<axes = [1], keepdims = 0>(x)", {{{2}, {kNan}}}},
      {"reduce_mean_rows", "float[N,3] x", "y = ReduceMean<axes = [1]>(x)", {{{0, 1}, {}}}},
      {"reduce_prod", "float[N,2] x", "y = ReduceProd<axes = [0], keepdims = 0>(x)", {{{2}, {1}}}},
      {"reduce_l1", "float[2,N] x", "y = ReduceL1<axes = [1], keepdims = 0>(x)", {{{2}, {0}}}},
      {"reduce_l2", "float[2,N] x", "y = ReduceL2<axes = [1], keepdims = 0>(x)", {{{2}, {0}}}},
      {"reduce_log_sum", "float[2,N] x", "y = ReduceLogSum<axes = [1], keepdims = 0>(x)", {{{2}, {-kInf}}}},
      {"reduce_log_sum_exp",
       "float[2,N] x",
       "y = ReduceLogSumExp<axes = [1], keepdims = 0>(x)",
       {{{2}, {-kInf}}}},
      {"reduce_sum_square", "float[2,N] x", "y = ReduceSumSquare<axes = [1]>(x)", {{{2, 1}, {0}}}},
      {"argmax_rows", "float[N,3] x", "y = ArgMax<axis = 1>(x)", {{{0, 1}, {}}}},
      {"topk_none",
       "float[N,5] x",
       "k = Constant<value = int64[1] {0}>() y, y1 = TopK(x, k)",
       {{{0, 0}, {}}, {{0, 0}, {}}}},
      {"topk_none_of_none",
       "float[2,N] x",
       "k = Constant<value = int64[1] {0}>() y, y1 = TopK(x, k)",
       {{{2, 0}, {}}, {{2, 0}, {}}}},
      {"topk_rows",
       "float[N,5] x",
       "k = Constant<value = int64[1] {2}>() y, y1 = TopK(x, k)",
       {{{0, 2}, {}}, {{0, 2}, {}}}},
      {"gather_no_indices", "float[4,3] x, int64[N] i", "y = Gather(x, i)", {{{0, 3}, {}}}},
      {"gather_nothing_of_nothing",
       "float[N,3] x, float[N] z",
       "s = Shape(z) i = ConstantOfShape<value = int64[1] {0}>(s) y = Gather(x, i)",
       {{{0, 3}, {}}}},
      {"gather_columns",
       "float[N,3] x",
       "i = Constant<value = int64[2] {2, 0}>() y = Gather<axis = 1>(x, i)",
       {{{0, 2}, {}}}},
      {"gather_elements", "float[3,N] x, int64[3,N] i", "y = GatherElements<axis = 0>(x, i)", {{{3, 0}, {}}}},
      {"gather_nd", "float[4,3] x, int64[N,1] i", "y = GatherND(x, i)", {{{0, 3}, {}}}},
      {"scatter_nd",
       "int64[N,1] i, float[N] u",
       "x = Constant<value = float[3] {1, 2, 3}>() y = ScatterND(x, i, u)",
       {{{3}, {1, 2, 3}}}},
      {"scatter_elements",
       "int64[N] i, float[N] u",
       "x = Constant<value = float[3] {1, 2, 3}>() y = ScatterElements(x, i, u)",
       {{{3}, {1, 2, 3}}}},
      {"scatter_into_nothing",
       "float[N,2] x, int64[N,2] i, float[N,2] u",
       "y = ScatterElements<axis = 1>(x, i, u)",
       {{{0, 2}, {}}}},
      {"slice_all_away",
       "float[4,N] x",
       "a = Constant<value = int64[1] {3}>() b = Constant<value = int64[1] {1}>() y = Slice(x, a, b)",
       {{{0, 0}, {}}}},
      {"slice_of_nothing",
       "float[N,3] x",
       "a = Constant<value = int64[1] {1}>() b = Constant<value = int64[1] {3}>() y = Slice(x, a, b)",
       {{{0, 3}, {}}}},
      {"slice_columns",
       "float[N,4] x",
       "a = Constant<value = int64[1] {1}>() b = Constant<value = int64[1] {3}>() c = Constant<value = "
       "int64[1] {1}>() "
       "y = Slice(x, a, b, c)",
       {{{0, 2}, {}}}},
      {"transpose", "float[N,3] x", "y = Transpose(x)", {{{3, 0}, {}}}},
      {"transpose_three", "float[2,N,3] x", "y = Transpose<perm = [2, 0, 1]>(x)", {{{3, 2, 0}, {}}}},
      {"reshape_copied_dim",
       "float[N,4] x",
       "s = Constant<value = int64[3] {0, 2, 2}>() y = Reshape(x, s)",
       {{{0, 2, 2}, {}}}},
      {"reshape_inferred_dim",
       "float[N,4] x",
       "s = Constant<value = int64[2] {-1, 2}>() y = Reshape(x, s)",
       {{{0, 2}, {}}}},
      {"reshape_inner",
       "float[2,N,3] x",
       "s = Constant<value = int64[2] {2, -1}>() y = Reshape(x, s)",
       {{{2, 0}, {}}}},
      {"reshape_permuted",
       "float[2,N,6] x",
       "s = Constant<value = int64[4] {2, -1, 2, 3}>() a = Reshape(x, s) b = Transpose<perm = [0, 2, 1, "
       "3]>(a) "
       "t = Constant<value = int64[2] {-1, 3}>() y = Reshape(b, t)",
       {{{0, 3}, {}}}},
      {"flatten", "float[N,2,3] x", "y = Flatten(x)", {{{0, 6}, {}}}},
      {"conv_batch", "float[N,1,4,4] x, float[2,1,3,3] w", "y = Conv(x, w)", {{{0, 2, 2, 2}, {}}}},
      {"conv_constant",
       "float[N,1,5,5] x",
       "w = Constant<value = float[1,1,2,2] {1, 2, 3, 4}>() y = Conv<pads = [1, 1, 0, 0]>(x, w)",
       {{{0, 1, 5, 5}, {}}}},
      {"conv_transpose_batch",
       "float[N,1,2,2] x, float[1,2,3,3] w",
       "y = ConvTranspose(x, w)",
       {{{0, 2, 4, 4}, {}}}},
      {"max_pool_batch",
       "float[N,1,4,4] x",
       "y = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(x)",
       {{{0, 1, 2, 2}, {}}}},
      {"average_pool_batch",
       "float[N,1,4,4] x",
       "y = AveragePool<kernel_shape = [2, 2]>(x)",
       {{{0, 1, 3, 3}, {}}}},
      {"global_pool_batch", "float[N,2,4,4] x", "y = GlobalAveragePool(x)", {{{0, 2, 1, 1}, {}}}},
      {"layer_norm_rows", "float[N,4] x, float[4] w", "y = LayerNormalization(x, w)", {{{0, 4}, {}}}},
      {"batch_norm_batch",
       "float[N,2,3] x",
       "s = Constant<value = float[2] {1, 2}>() y = BatchNormalization(x, s, s, s, s)",
       {{{0, 2, 3}, {}}}},
      {"attention_no_keys",
       "float[2,3] q, float[N,3] k, float[N,4] v",
       "t = Transpose(k) s = MatMul(q, t) p = Softmax(s) y = MatMul(p, v)",
       {{{2, 4}, {0}}}},
      {"attention_no_queries",
       "float[2,N,3] q, float[2,5,3] k, float[2,5,4] v",
       "t = Transpose<perm = [0, 2, 1]>(k) s = MatMul(q, t) p = Softmax(s) y = MatMul(p, v)",
       {{{2, 0, 4}, {}}}},
      {"attention_past",
       "float[1,2,N,3] past, float[1,2,N,3] past_v",
       "k = Constant<value = float[1,2,1,3] {1, 0, 0, 0, 1, 0}>() a = Concat<axis = 2>(past, k) b = "
       "Concat<axis = 2>(past_v, k) "
       "t = Transpose<perm = [0, 1, 3, 2]>(a) s = MatMul(k, t) p = Softmax(s) y = MatMul(p, b) y1 = "
       "Identity(a)",
       {{{1, 2, 1, 3}, {1, 0, 0, 0, 1, 0}}, {{1, 2, 1, 3}, {1, 0, 0, 0, 1, 0}}}},
      {"where", "bool[N,1] c, float[N,3] x, float[3] z", "y = Where(c, x, z)", {{{0, 3}, {}}}},
      {"cumsum", "float[N,3] x", "a = Constant<value = int64 {0}>() y = CumSum(x, a)", {{{0, 3}, {}}}},
      {"cumsum_columns",
       "float[3,N] x",
       "a = Constant<value = int64 {1}>() y = CumSum(x, a)",
       {{{3, 0}, {}}}},
      {"resize_batch",
       "float[N,1,2,2] x",
       "e = Constant<value = float[0] {}>() s = Constant<value = float[4] {1, 1, 2, 2}>() "
       "y = Resize<mode = \"linear\">(x, e, s)",
       {{{0, 1, 4, 4}, {}}}},
      {"split_none",
       "float[N,4] x",
       "s = Constant<value = int64[2] {0, 4}>() y, y1 = Split<axis = 1>(x, s)",
       {{{0, 0}, {}}, {{0, 4}, {}}}},
      {"tile_none", "float[N,2] x", "r = Constant<value = int64[2] {0, 3}>() y = Tile(x, r)", {{{0, 6}, {}}}},
      {"tile", "float[N,2] x", "r = Constant<value = int64[2] {2, 3}>() y = Tile(x, r)", {{{0, 6}, {}}}},
      {"expand", "float[1,3] x, float[N,3] z", "s = Shape(z) y = Expand(x, s)", {{{0, 3}, {}}}},
      {"shape", "float[N,3] x", "y = Shape(x) y1 = Size(x)", {{{2}, {0, 3}}, {{}, {0}}}},
      {"constant_of_shape", "float[N,3] x", "s = Shape(x) y = ConstantOfShape(s)", {{{0, 3}, {}}}},
      {"one_hot",
       "int64[N] i",
       "d = Constant<value = int64 {3}>() v = Constant<value = float[2] {0, 1}>() y = OneHot(i, d, v)",
       {{{0, 3}, {}}}},
      {"einsum_depth",
       "float[2,N] x, float[N,3] w",
       "y = Einsum<equation = \"ij,jk->ik\">(x, w)",
       {{{2, 3}, {0}}}},
      {"einsum_rows",
       "float[N,2] x, float[2,3] w",
       "y = Einsum<equation = \"ij,jk->ki\">(x, w)",
       {{{3, 0}, {}}}},
      {"pad_constant",
       "float[N,2] x",
       "p = Constant<value = int64[4] {1, 0, 1, 0}>() v = Constant<value = float {7}>() y = Pad(x, p, v)",
       {{{2, 2}, {7}}}},
      {"pad_columns_edge",
       "float[N,2] x",
       "p = Constant<value = int64[4] {0, 1, 0, 1}>() y = Pad<mode = \"edge\">(x, p)",
       {{{0, 4}, {}}}},
      {"quantize",
       "float[N,3] x",
       "s = Constant<value = float {0.5}>() z = Constant<value = uint8 {10}>() y = QuantizeLinear(x, s, z) "
       "y1 = DequantizeLinear(y, s, z)",
       {{{0, 3}, {}}, {{0, 3}, {}}}},
      {"matmul_integer_rows", "uint8[N,3] x, uint8[3,2] w", "y = MatMulInteger(x, w)", {{{0, 2}, {}}}},
      {"matmul_integer_depth", "uint8[2,N] x, int8[N,3] w", "y = MatMulInteger(x, w)", {{{2, 3}, {0}}}},
      {"depth_to_space", "float[N,4,2,2] x", "y = DepthToSpace<blocksize = 2>(x)", {{{0, 1, 4, 4}, {}}}},
      {"elementwise_chain",
       "float[N] x, float[N] z",
       "a = Exp(x) b = Mul(a, z) c = Cast<to = 6>(b) y = Cast<to = 1>(c)",
       {{{0}, {}}}},
      {"lstm_batch",
       "float[2,N,3] x, float[1,8,3] w, float[1,8,2] r",
       "y, y1, y2 = LSTM<hidden_size = 2>(x, w, r)",
       {{{2, 1, 0, 2}, {}}, {{1, 0, 2}, {}}, {{1, 0, 2}, {}}}},
      {"lstm_steps",
       "float[N,2,3] x, float[1,8,3] w, float[1,8,2] r",
       "y, y1, y2 = LSTM<hidden_size = 2>(x, w, r)",
       {{{0, 1, 2, 2}, {}}, {{1, 2, 2}, {0}}, {{1, 2, 2}, {0}}},
       true},
      {"range",
       "float[N,3] x",
       "s = Shape<start = 0, end = 1>(x) n = Squeeze(s) a = Constant<value = int64 {0}>() b = Constant<value "
       "= int64 {1}>() "
       "y = Range(a, n, b)",
       {{{0}, {}}}},
      {"loop_without_iterations",
       "float[N,2] x, float[2] z",
       "s = Shape<start = 0, end = 1>(x) m = Squeeze(s) t = Constant<value = bool {1}>() "
       "y, y1 = Loop<body = b (int64 i, bool c, float[2] a) => (bool c1, float[2] a1, float[2] e) "
       "{ c1 = Identity(c) a1 = Add(a, z) e = Mul(a, z) }>(m, t, one)",
       {{{2}, {1}}, {{0, 2}, {}}},
       true},
      {"non_zero", "float[N,3] x", "y = NonZero(x)", {{{2, 0}, {}}}, true},
      {"compress", "float[N] x, bool[N] c", "y = Compress<axis = 0>(x, c)", {{{0}, {}}}, true},
      {"unique", "float[N] x", "y, y1, y2 = Unique(x)", {{{0}, {}}, {{0}, {}}, {{0}, {}}}, true},
      {"non_max_suppression",
       "float[1,N,4] x, float[1,1,N] s",
       "m = Constant<value = int64 {3}>() y = NonMaxSuppression(x, s, m)",
       {{{0, 3}, {}}},
       true},
  };
}

std::string with_size(std::string text, const std::string& n) {
  for (size_t at = 0; (at = text.find_first_of('N', at)) != std::string::npos; ++at)
    if (at > 0 && (text[at - 1] == '[' || text[at - 1] == ',') &&
        (text[at + 1] == ']' || text[at + 1] == ','))
      text.replace(at, 1, n);
  return text;
}

Expected<ImportedModel> import_case(const char* inputs, const std::string& nodes, size_t results,
                                    const std::string& n, const ImportOptions& options = {}) {
  std::string text =
      "<ir_version: 8, opset_import: [\"\" : 17]> g (" + with_size(inputs, n) + ") => (float y";
  for (size_t i = 1; i < results; ++i) text += ", float y" + std::to_string(i);
  text += ") <float[2] one = {1, 1}> { " + nodes + " }";
  onnx::ModelProto model;
  auto parsed = onnx::OnnxParser::Parse(model, text.c_str());
  if (!parsed.IsOK()) return invalid_input(parsed.ErrorMessage());
  for (onnx::NodeProto& node : *model.mutable_graph()->mutable_node()) node.set_name("the_" + node.op_type());
  std::string bytes = model.SerializeAsString();
  return import_onnx_bytes({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, "test.onnx",
                           options);
}

Expected<Graph> graph_of(const Case& c, const std::string& n) {
  QUERNEL_TRY(ImportedModel model, import_case(c.inputs, c.nodes, c.results.size(), n));
  QUERNEL_CHECK(verify(model.graph));
  return std::move(model.graph);
}

void expect_results(const std::vector<Tensor>& got, const std::vector<Result>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].dims, want[i].dims) << "result " << i;
    for (int64_t e = 0; e < got[i].count(); ++e) {
      double value = element_as_f64(got[i], e),
             expected = want[i].values[want[i].values.size() == 1 ? 0 : static_cast<size_t>(e)];
      EXPECT_TRUE(value == expected || (std::isnan(value) && std::isnan(expected)))
          << "result " << i << ", element " << e << ": expected " << expected << ", found " << value;
    }
  }
}

std::vector<Tensor> inputs_at(const Graph& graph, int64_t n) {
  return random_inputs_at(graph, {{"n", n}}, static_cast<uint64_t>(n) + 1);
}

TEST(EmptySizes, interpreted) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    for (const char* n : {"0", "n"}) {
      SCOPED_TRACE(n);
      Expected<Graph> graph = graph_of(c, n);
      ASSERT_TRUE(graph) << to_string(graph.errors());
      if (const Symbol* symbol = graph->find_symbol("n"); symbol) {
        EXPECT_EQ(symbol->min, 0);
      }
      Expected<std::vector<Tensor>> got = interpret(*graph, inputs_at(*graph, 0), {{"n", 0}});
      ASSERT_TRUE(got) << to_string(got.errors());
      expect_results(*got, c.results);
    }
  }
}

// Compiles a graph once and runs it at each size.
void compare(const Graph& graph, const std::vector<int64_t>& sizes, const CompileOptions& options,
             unsigned threads, const qnl_vulkan_options* vulkan = nullptr) {
  Expected<CompiledGraph> compiled = CompiledGraph::make(graph, options, threads, {}, vulkan);
  ASSERT_TRUE(compiled) << to_string(compiled.errors());
  for (int64_t n : sizes) {
    SCOPED_TRACE("n = " + std::to_string(n));
    std::vector<Tensor> inputs = inputs_at(graph, n);
    Expected<std::vector<Tensor>> want = interpret(graph, inputs, {{"n", n}});
    ASSERT_TRUE(want) << to_string(want.errors());
    Expected<std::vector<Tensor>> got = compiled->run(inputs);
    ASSERT_TRUE(got) << to_string(got.errors());
    for (size_t i = 0; i < want->size(); ++i)
      EXPECT_EQ(difference((*got)[i], (*want)[i], 2e-5, 2e-5), "") << graph.outputs[i].name;
  }
}

// All cases that can be are one graph.
void compare_all(const CompileOptions& options, unsigned threads,
                 const qnl_vulkan_options* vulkan = nullptr) {
  for (const char* n : {"0", "n"}) {
    Graph all;
    std::vector<int64_t> sizes = n[0] == '0' ? std::vector<int64_t>{0} : std::vector<int64_t>{0, 5, 1, 0};
    for (const Case& c : cases()) {
      SCOPED_TRACE(std::string(c.name) + ", " + n);
      Expected<Graph> graph = graph_of(c, n);
      ASSERT_TRUE(graph) << to_string(graph.errors());
      if (c.alone)
        compare(*graph, sizes, options, threads, vulkan);
      else
        join(all, *graph, std::string(c.name) + "_");
    }
    if (!all.nodes.empty()) compare(all, sizes, options, threads, vulkan);
  }
}

TEST(EmptySizes, compiled) { compare_all({}, 1); }

TEST(EmptySizes, compiled_without_masks_for_two_threads) {
  CompileOptions options;
  options.targets = {"x86-64"};
  compare_all(options, 2);
}

TEST(EmptySizes, on_vulkan) {
  std::string why;
  if (!has_device(&why)) GTEST_SKIP() << why;
  CompileOptions options;
  options.targets = {"vulkan"};
  qnl_vulkan_options vulkan = {};
  compare_all(options, 1, &vulkan);
}

// Where too little is there to choose from a run fails, and names the node.
struct Failure {
  const char* name;
  const char* inputs;
  const char* nodes;
  const char* node;
};
const Failure kFailures[] = {
    {"argmax", "float[N] x", "y = ArgMax(x)", "the_ArgMax"},
    {"argmin", "int32[3,N] x", "y = ArgMin<axis = 1>(x)", "the_ArgMin"},
    {"reduce_max_i32", "int32[N,3] x", "y = ReduceMax<axes = [0]>(x)", "the_ReduceMax"},
    {"reduce_min_u8", "uint8[3,N] x", "y = ReduceMin<axes = [1]>(x)", "the_ReduceMin"},
    {"gather", "float[N,3] x", "i = Constant<value = int64[1] {0}>() y = Gather(x, i)", "the_Gather"},
    {"gather_elements", "float[N,3] x, int64[2,3] i", "y = GatherElements(x, i)", "the_GatherElements"},
    {"gather_nd", "float[N,3] x", "i = Constant<value = int64[1,1] {0}>() y = GatherND(x, i)",
     "the_GatherND"},
    {"pad_edge", "float[N] x", "p = Constant<value = int64[2] {1, 1}>() y = Pad<mode = \"edge\">(x, p)",
     "the_Pad"},
    {"fused", "int32[N] x, int32[2] z", "a = Mul(x, x) b = ReduceMax<axes = [0]>(a) y = Add(b, z)",
     "the_ReduceMax"},
};

void expect_failure(const Failure& f, const CompileOptions& options, const qnl_vulkan_options* vulkan) {
  SCOPED_TRACE(f.name);
  ImportOptions from_zero;
  from_zero.dim_ranges["n"] = Symbol{"n", 0, 64, 1, false, {}};
  Expected<ImportedModel> model = import_case(f.inputs, f.nodes, 1, "n", from_zero);
  ASSERT_TRUE(model) << to_string(model.errors());
  const Graph& graph = model->graph;
  // Reductions get that far without being asked.
  Expected<ImportedModel> unasked = import_case(f.inputs, f.nodes, 1, "n");
  ASSERT_TRUE(unasked) << to_string(unasked.errors());
  if (std::string(f.node).find("the_Arg") == 0 || std::string(f.node).find("the_Reduce") == 0) {
    EXPECT_EQ(unasked->graph.find_symbol("n")->min, 0);
  }
  Expected<std::vector<Tensor>> interpreted = interpret(graph, inputs_at(graph, 0), {{"n", 0}});
  ASSERT_FALSE(interpreted);
  EXPECT_NE(to_string(interpreted.errors()).find(f.node), std::string::npos)
      << to_string(interpreted.errors());
  Expected<CompiledGraph> compiled = CompiledGraph::make(graph, options, 1, {}, vulkan);
  ASSERT_TRUE(compiled) << to_string(compiled.errors());
  for (int64_t n : {0, 4, 0}) {
    std::vector<Tensor> inputs = inputs_at(graph, n);
    Expected<std::vector<Tensor>> got = compiled->run(inputs);
    ASSERT_EQ(static_cast<bool>(got), n != 0);
    if (n == 0) {
      std::string said = to_string(got.errors());
      EXPECT_NE(said.find(std::string("'") + f.node + "'"), std::string::npos) << said;
      continue;
    }
    Expected<std::vector<Tensor>> want = interpret(graph, inputs, {{"n", n}});
    ASSERT_TRUE(want) << to_string(want.errors());
    EXPECT_EQ(difference((*got)[0], (*want)[0], 0, 0), "");
  }
}

TEST(EmptySizes, what_has_no_value_fails) {
  for (const Failure& f : kFailures) expect_failure(f, {}, nullptr);
}

TEST(EmptySizes, what_has_no_value_fails_on_vulkan) {
  std::string why;
  if (!has_device(&why)) GTEST_SKIP() << why;
  CompileOptions options;
  options.targets = {"vulkan"};
  qnl_vulkan_options vulkan = {};
  for (const Failure& f : {kFailures[0], kFailures[2]}) expect_failure(f, options, &vulkan);
}

TEST(EmptySizes, what_has_no_value_is_refused_where_sizes_are_fixed) {
  for (const Failure& f : kFailures) {
    SCOPED_TRACE(f.name);
    Expected<ImportedModel> model = import_case(f.inputs, f.nodes, 1, "0");
    ASSERT_FALSE(model);
    EXPECT_NE(to_string(model.errors()).find(f.node), std::string::npos) << to_string(model.errors());
  }
}

// A branch that is not taken may have no value.
TEST(EmptySizes, only_what_runs_fails) {
  Expected<ImportedModel> model = import_case(
      "float[N] x, float[N] z, bool go",
      "y = If<then_branch = t () => (int64[1] a) { a = ArgMax(x) }, else_branch = e () => (int64[1] b) "
      "{ b = Constant<value = int64[1] {-1}>() }>(go)",
      1, "n");
  ASSERT_TRUE(model) << to_string(model.errors());
  Expected<CompiledGraph> compiled = CompiledGraph::make(model->graph, {}, 1);
  ASSERT_TRUE(compiled) << to_string(compiled.errors());
  for (bool go : {false, true, false}) {
    std::vector<Tensor> inputs = inputs_at(model->graph, 0);
    for (Tensor& t : inputs)
      if (t.dtype == DType::kBool) t.bytes = Bytes::own({static_cast<uint8_t>(go)});
    Expected<std::vector<Tensor>> got = compiled->run(inputs);
    ASSERT_EQ(static_cast<bool>(got), !go);
    if (!go) {
      EXPECT_EQ(element_as_i64((*got)[0], 0), -1);
    }
  }
}

// The last of n rows: n = 0 would make a known size a free one, so it is only allowed when it is asked for.
TEST(EmptySizes, a_size_that_is_known_stays_known) {
  const char* nodes =
      "a = Constant<value = int64[1] {-1}>() b = Constant<value = int64[1] {9223372036854775807}>() y = "
      "Slice(x, a, b)";
  Expected<ImportedModel> model = import_case("float[N,3] x", nodes, 1, "n");
  ASSERT_TRUE(model) << to_string(model.errors());
  EXPECT_EQ(model->graph.find_symbol("n")->min, 1);
  EXPECT_EQ(to_string(model->graph.shape(model->graph.outputs[0].value)), "[1,3]");
  EXPECT_EQ(model->notes.size(), 1u);
  ImportOptions from_zero;
  from_zero.dim_ranges["n"] = Symbol{"n", 0, 64, 1, false, {}};
  model = import_case("float[N,3] x", nodes, 1, "n", from_zero);
  ASSERT_TRUE(model) << to_string(model.errors());
  compare(model->graph, {0, 1, 5}, {}, 1);
  // Of two free dims, one may be 0.
  model = import_case("float[N,3] x, float[m,3] z",
                      std::string(nodes) + " q = Exp(z) y1 = Concat<axis = 0>(q, y)", 2, "n");
  ASSERT_TRUE(model) << to_string(model.errors());
  EXPECT_EQ(model->graph.find_symbol("n")->min, 1);
  EXPECT_EQ(model->graph.find_symbol("m")->min, 0);
}

// A graph of fixed sizes as C.
class ProgramInC {
 public:
  explicit ProgramInC(const Graph& graph) {
    std::string pattern = (std::filesystem::temp_directory_path() / "quernel_empty_XXXXXX").string();
    if (!mkdtemp(pattern.data())) std::abort();
    CompileOptions options;
    options.emit = Emit::kC;
    options.targets = {"x86-64"};
    options.threads = 1;
    Expected<CompileReport> report = compile_graphs({graph}, pattern + "/model", options);
    if (!report) ADD_FAILURE() << to_string(report.errors());
    std::vector<std::string> files;
    for (const std::string& file : report ? report->program->files : std::vector<std::string>())
      if (file.ends_with(".c")) files.push_back(file);
    compiled_.emplace(quernel::test::CompiledC::of_files(
        files, "-O1 -fsanitize=undefined -fsanitize-undefined-trap-on-error"));
    std::filesystem::remove_all(pattern);
    run_ = compiled_->function<Run>("model_run");
  }

  int32_t run(const std::vector<const void*>& inputs, const std::vector<void*>& outputs) const {
    return run_(compiled_->symbol("model_static_memory"), inputs.data(), outputs.data());
  }

 private:
  using Run = int32_t(const void*, const void* const*, void* const*);
  std::optional<quernel::test::CompiledC> compiled_;
  Run* run_ = nullptr;
};

TEST(EmptySizes, as_c) {
  Graph all;
  for (const Case& c : cases()) {
    if (c.alone) continue;
    Expected<Graph> graph = graph_of(c, "0");
    ASSERT_TRUE(graph) << c.name << ": " << to_string(graph.errors());
    join(all, *graph, std::string(c.name) + "_");
  }
  std::vector<Tensor> inputs = inputs_at(all, 0);
  Expected<std::vector<Tensor>> want = interpret(all, inputs);
  ASSERT_TRUE(want) << to_string(want.errors());
  std::vector<const void*> from;
  std::vector<void*> to;
  std::vector<std::vector<uint8_t>> results;
  for (const Tensor& t : inputs) from.push_back(t.bytes.size() ? t.bytes.data() : nullptr);
  for (const Tensor& t : *want) results.emplace_back(t.bytes.size(), uint8_t{0xcd});
  for (std::vector<uint8_t>& result : results) to.push_back(result.data());
  ASSERT_EQ(ProgramInC(all).run(from, to), 0);
  for (size_t i = 0; i < want->size(); ++i) {
    Tensor got = (*want)[i];
    got.bytes = Bytes::own(results[i]);
    EXPECT_EQ(difference(got, (*want)[i], 2e-5, 2e-5), "") << all.outputs[i].name;
  }
}

// Sizes that only a run finds: a status.
TEST(EmptySizes, a_program_in_c_returns_a_status) {
  Expected<ImportedModel> model =
      import_case("float[4] x", "p = NonZero(x) y = ArgMax<axis = 1, keepdims = 0>(p)", 1, "n");
  ASSERT_TRUE(model) << to_string(model.errors());
  ProgramInC program(model->graph);
  int64_t index = -1;
  const float some[4] = {0, 3, 2, 0}, none[4] = {};
  EXPECT_EQ(program.run({some}, {&index}), 0);
  EXPECT_EQ(index, 1);
  EXPECT_EQ(program.run({none}, {&index}), 17);
  EXPECT_EQ(program.run({some}, {&index}), 0);
}

}  // namespace
}  // namespace quernel::testing
