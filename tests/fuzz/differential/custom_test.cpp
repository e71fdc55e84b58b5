// Custom ops, compiled: operands and results of every kind of origin, in bodies and with free sizes, compared
// with the interpreter. The functions read all of their operands in order, so a wrong layout shows.
#include <gtest/gtest.h>

#include <algorithm>

#include "graph/control.h"
#include "graph/interpret.h"
#include "graph/passes/passes.h"
#include "graph/rewrite.h"
#include "graph/text.h"
#include "graph/verify.h"
#include "random_graph/random_graph.h"
#include "run_compiled.h"

namespace quernel::testing {
namespace {

// result_k[i] = k + sum over operands j of (j + 1) * operand_j[(i + k) mod its count] + i mod 3, in any
// dtypes.
Expected<std::vector<Tensor>> mix(const CustomOp& op, const std::vector<const Tensor*>& operands) {
  std::vector<Tensor> results;
  for (size_t k = 0; k < op.results.size(); ++k) {
    DType dtype = op.results[k].dtype;
    std::vector<int64_t> dims = static_dims(op.results[k].shape);
    int64_t count = element_count(dims).value();
    std::vector<uint8_t> bytes(static_cast<size_t>(byte_size(dtype, count)));
    for (int64_t i = 0; i < count; ++i) {
      double value = static_cast<double>(k) + static_cast<double>(i % 3);
      for (size_t j = 0; j < operands.size(); ++j)
        if (int64_t n = operands[j]->count(); n > 0)
          value +=
              static_cast<double>(j + 1) * element_as_f64(*operands[j], (i + static_cast<int64_t>(k)) % n);
      if (!is_float(dtype)) {
        store_i64(dtype, bytes.data(), i, static_cast<int64_t>(value));
      } else {
        store_f64(dtype, bytes.data(), i, value);
      }
    }
    results.push_back({dtype, std::move(dims), Bytes::own(std::move(bytes))});
  }
  return results;
}

Expected<std::vector<Tensor>> give_attributes(const CustomOp& op, const std::vector<const Tensor*>&) {
  std::vector<uint8_t> bytes(op.attributes.begin(), op.attributes.end());
  bytes.resize(static_cast<size_t>(op.results[0].shape[0].value()));
  return std::vector<Tensor>{{DType::kU8, static_dims(op.results[0].shape), Bytes::own(std::move(bytes))}};
}

Expected<std::vector<Tensor>> give_operands(const CustomOp&, const std::vector<const Tensor*>& operands) {
  std::vector<Tensor> results;
  for (const Tensor* operand : operands) results.push_back(*operand);
  return results;
}

// The graph with custom ops that give their operands as they are, between some of its nodes and in its
// bodies.
Graph with_custom_ops(const Graph& graph, Random& random) {
  std::vector<ValueId> earlier;  // in the new graph
  Expected<Graph> result = rewrite(graph, [&](Rewriter& r, const Node& node) -> ValueId {
    ValueId v = r.copy(node);
    if (gives_token(node.op)) return v;
    if (random.chance(30)) {
      std::vector<ValueId> operands{v};
      if (!earlier.empty() && random.chance(40)) operands.insert(operands.begin(), random.pick(earlier));
      if (random.chance(20)) operands.push_back(v);
      auto custom = std::make_shared<CustomOp>(CustomOp{"demo::Same", "", {}});
      for (ValueId operand : operands) custom->results.push_back(r.graph.values[operand].type);
      Attributes attributes;
      attributes.custom = std::move(custom);
      size_t which = operands.front() == v ? 0 : 1;
      ValueId token = r.build.add(OpKind::k_custom, operands, std::move(attributes));
      v = add_result(r.build, token, static_cast<int64_t>(which));
    }
    earlier.push_back(v);
    return v;
  });
  if (result)
    result = transform_bodies(std::move(*result), [&](const Node&, const Graph& body) -> Expected<Graph> {
      return with_custom_ops(body, random);
    });
  if (!result) throw std::runtime_error(to_string(result.errors()));
  return std::move(*result);
}

const CustomFunctions kFunctions = {
    {"demo::Mix", mix}, {"demo::Attributes", give_attributes}, {"demo::Same", give_operands}};

Graph graph_of(const std::string& text) {
  Expected<Graph> graph = parse_graph(text);
  if (!graph) throw std::runtime_error(to_string(graph.errors()) + text);
  return std::move(*graph);
}

void expect_same(const std::string& text, const std::vector<std::vector<int64_t>>& shapes = {}) {
  Graph graph = graph_of(text);
  std::vector<Tensor> inputs;
  if (shapes.empty()) {
    inputs = random_inputs(graph, 1);
  } else {
    for (const std::vector<int64_t>& dims : shapes) {
      std::vector<float> values(static_cast<size_t>(element_count(dims).value()));
      for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 17) - 5;
      inputs.push_back(make_tensor<float>(DType::kF32, dims, values));
    }
  }
  EXPECT_EQ(print(graph_of(print(graph))), print(graph));
  Expected<std::vector<Tensor>> want = interpret(graph, inputs, {}, kFunctions);
  ASSERT_TRUE(want) << to_string(want.errors());
  for (unsigned threads : {1u, 2u}) {
    CompileOptions options;
    options.verify_each = true;
    Expected<std::vector<Tensor>> got = run_compiled(graph, inputs, options, threads, kFunctions);
    ASSERT_TRUE(got) << to_string(got.errors()) << print(graph);
    for (size_t i = 0; i < want->size(); ++i)
      EXPECT_EQ(difference((*got)[i], (*want)[i], 1e-5, 1e-5), "")
          << graph.outputs[i].name << print(graph, 64);
  }
}

TEST(Custom, inputs_and_outputs) {
  expect_same(R"(graph @g(%x: f32[3,5], %y: i64[4]) {
  %t = custom %x, %y, %x "demo::Mix" "" gives f32[5,3], i64[7], u8[2,2]
  %a = result %t {0} : f32[5,3]
  %b = result %t {1} : i64[7]
  %c = result %t {2} : u8[2,2]
  return a = %a, b = %b, c = %c
})");
}

TEST(Custom, without_operands) {
  expect_same(R"(graph @g() {
  %t = custom "demo::Attributes" "alpha=0.5;mode=\"a\\x00b\"" gives u8[40]
  %a = result %t {0} : u8[40]
  return a = %a
})");
}

// Views, constants of one and of many elements, and values that would be fused are stored for it, densely.
TEST(Custom, operands_of_every_origin) {
  expect_same(R"(graph @g(%x: f32[4,6]) {
  %p = permute %x {1, 0} : f32[6,4]
  %s = slice %x [1:3, 0:6:2] : f32[2,3]
  %one = constant f32[] {2.5}
  %some = constant f32[3] {1, 2, 3}
  %e = expand %one : f32[]
  %n = neg %x : f32[4,6]
  %q = exp %n : f32[4,6]
  %r = reshape %q : f32[24]
  %t = custom %p, %s, %one, %some, %e, %r "demo::Mix" "" gives f32[9]
  %a = result %t {0} : f32[9]
  return a = %a
})");
}

TEST(Custom, results_of_every_use) {
  expect_same(R"(graph @g(%x: f32[4,6]) {
  %t = custom %x "demo::Mix" "" gives f32[4,6], f32[4,6], f32[]
  %a = result %t {0} : f32[4,6]
  %b = result %t {1} : f32[4,6]
  %c = result %t {2} : f32[]
  %p = permute %a {1, 0} : f32[6,4]
  %s = reduce_sum %b {1} acc f32 : f32[4]
  %e = reshape %c : f32[1]
  %w = expand %e : f32[4]
  %m = mul %s, %w : f32[4]
  %k = contract %a, %p axes(i: 4, j: 4 | k: 6) a[i, k] b[k, j] out[i, j] acc f32 : f32[4,4]
  return p = %p, m = %m, k = %k, same = %a, again = %a
})");
}

// Neither what it writes nor what it reads lies within a concatenation.
TEST(Custom, beside_concatenations) {
  expect_same(R"(graph @g(%x: f32[4,6], %z: f32[4,2]) {
  %t = custom %x "demo::Mix" "" gives f32[4,3]
  %a = result %t {0} : f32[4,3]
  %n = neg %z : f32[4,2]
  %c = cat %a, %n {1} : f32[4,5]
  %u = custom %n, %c "demo::Mix" "" gives f32[2,5], f32[4,1]
  %d = result %u {0} : f32[2,5]
  %f = result %u {1} : f32[4,1]
  %w = cat %c, %f {1} : f32[4,6]
  return c = %c, d = %d, w = %w
})");
}

TEST(Custom, chains_of_them) {
  expect_same(R"(graph @g(%x: f32[64]) {
  %t = custom %x "demo::Mix" "a=1" gives f32[64]
  %a = result %t {0} : f32[64]
  %u = custom %a, %a "demo::Mix" "a=2" gives f32[64], f32[32]
  %b = result %u {0} : f32[64]
  %v = custom %b "demo::Mix" "" gives f32[64]
  %c = result %v {0} : f32[64]
  %d = add %c, %x : f32[64]
  return d = %d
})");
}

TEST(Custom, nothing_and_packed) {
  expect_same(R"(graph @g(%x: f32[0,3], %q: i4[3,5]) {
  %t = custom %x, %q "demo::Mix" "" gives f32[2], f32[0,4], u4[7]
  %a = result %t {0} : f32[2]
  %b = result %t {1} : f32[0,4]
  %c = result %t {2} : u4[7]
  return a = %a, b = %b, c = %c
})");
}

TEST(Custom, free_sizes) {
  expect_same(R"(symbol n min=0 max=64
symbol m min=1
graph @g(%x: f32[n,4], %y: f32[m]) {
  %t = custom %x, %y "demo::Mix" "" gives f32[m,n], f32[(n floordiv 2)]
  %a = result %t {0} : f32[m,n]
  %b = result %t {1} : f32[(n floordiv 2)]
  %c = exp %b : f32[(n floordiv 2)]
  return a = %a, c = %c
})",
              {{6, 4}, {5}});
}

// Sizes that are known only when an earlier kernel has run.
TEST(Custom, sizes_found_while_running) {
  expect_same(R"(symbol k min=0 max=8 runtime bound=8
graph @g(%x: f32[8]) {
  %z = constant f32[] {0}
  %z1 = reshape %z : f32[1]
  %e = expand %z1 : f32[8]
  %c = gt %x, %e : bool[8]
  %i = cast %c : i64[8]
  %s = reduce_sum %i {0} acc i64 : i64[]
  bind k = %s
  %p = argsort %c {0} descending : i64[k]
  %v = take %x, %p {0} : f32[k]
  %t = custom %v "demo::Mix" "" gives f32[k], f32[(k + 1)]
  %a = result %t {0} : f32[k]
  %b = result %t {1} : f32[(k + 1)]
  return a = %a, b = %b
})",
              {{8}});
}

// Operands and results that a loop carries, scans, or that lie around its body.
TEST(Custom, in_loops) {
  expect_same(R"(symbol i min=0 max=5 runtime bound=5
graph @g(%x: f32[5,4], %h0: f32[4]) {
  %l = loop %h0, %x carry 1 for i below 5 do (%h: f32[4], %x: f32[5,4]) {
    %s = slice %x [i:(i + 1), 0:4] : f32[1,4]
    %r = reshape %s : f32[4]
    %n = neg %h : f32[4]
    %t = custom %h, %r, %x, %n "demo::Mix" "" gives f32[4], f32[2,2]
    %a = result %t {0} : f32[4]
    %b = result %t {1} : f32[2,2]
    %q = constant f32[] {0.0625}
    %q1 = reshape %q : f32[1]
    %e = expand %q1 : f32[4]
    %d = mul %a, %e : f32[4]
    return h = %d, all = %b, also = %a, minus = %n
  }
  %h = result %l {0} : f32[4]
  %all = result %l {1} : f32[5,2,2]
  %also = result %l {2} : f32[5,4]
  %minus = result %l {3} : f32[5,4]
  %u = custom %h, %all "demo::Mix" "" gives f32[6]
  %o = result %u {0} : f32[6]
  return h = %h, all = %all, also = %also, minus = %minus, o = %o
})");
}

// A body that reads nothing from outside is one all the same: what it gives has a place for each iteration.
TEST(Custom, in_loops_without_operands) {
  expect_same(R"(symbol i min=0 max=3 runtime bound=3
graph @g() {
  %l = loop carry 0 for i below 3 do () {
    %d = dims [i] : i64[1]
    %t = custom %d "demo::Mix" "" gives i64[2]
    %a = result %t {0} : i64[2]
    return a = %a
  }
  %a = result %l {0} : i64[3,2]
  return a = %a
})");
}

TEST(Custom, in_branches) {
  for (const char* chosen : {"true", "false"})
    expect_same(
        std::string("symbol go min=0 max=1 runtime\ngraph @g(%x: f32[4,3]) {\n  %y = constant bool[] {") +
        chosen + R"(}
  bind go = %y
  %l = branch %x if go then (%x: f32[4,3]) {
    %t = custom %x "demo::Mix" "" gives f32[3,4]
    %a = result %t {0} : f32[3,4]
    return a = %a
  } else (%x: f32[4,3]) {
    %p = permute %x {1, 0} : f32[3,4]
    %t = custom %p, %p "demo::Mix" "" gives f32[3,4]
    %a = result %t {0} : f32[3,4]
    return a = %a
  }
  %a = result %l {0} : f32[3,4]
  return a = %a
})");
}

TEST(Custom, between_the_nodes_of_random_graphs) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    RandomGraphOptions made_of;
    made_of.control = seed % 2 == 0;
    made_of.storage_dtypes = !made_of.control;
    Graph plain = random_graph(seed, made_of);
    Random random(seed);
    Graph graph = with_custom_ops(plain, random);
    Status valid = verify(graph);
    ASSERT_TRUE(valid) << to_string(valid.errors());
    std::vector<Tensor> inputs = random_inputs(plain, seed);
    Expected<std::vector<Tensor>> want = interpret(plain, inputs);
    ASSERT_TRUE(want) << to_string(want.errors());
    CompileOptions options;
    options.verify_each = true;
    Expected<std::vector<Tensor>> got = run_compiled(graph, inputs, options, 1 + seed % 2, kFunctions);
    ASSERT_TRUE(got) << "seed " << seed << ": " << to_string(got.errors()) << print(graph, 64);
    EXPECT_EQ(differences(plain, *got, *want), "") << "seed " << seed << "\n" << print(graph, 64);
  }
}

// The next value of a state, once while the present one is still read.
TEST(Custom, states) {
  Graph graph = graph_of(R"(graph @g(state %s: f32[4], %x: f32[4]) {
  %t = custom %s, %x "demo::Mix" "" gives f32[4]
  %n = result %t {0} : f32[4]
  %y = add %n, %s : f32[4]
  return state %s = %n, y = %y
})");
  Tensor state = make_tensor<float>(DType::kF32, {4}, {0, 0, 0, 0});
  Expected<CompiledGraph> compiled = CompiledGraph::make(graph, {}, 1, kFunctions);
  ASSERT_TRUE(compiled) << to_string(compiled.errors());
  for (int run = 0; run < 3; ++run) {
    Tensor x = make_tensor<float>(DType::kF32, {4}, {1, 2, 3, static_cast<float>(run)});
    Expected<std::vector<Tensor>> want = interpret(graph, {state, x}, {}, kFunctions);
    ASSERT_TRUE(want) << to_string(want.errors());
    Expected<std::vector<Tensor>> got = compiled->run({x});
    ASSERT_TRUE(got) << to_string(got.errors());
    EXPECT_EQ(difference((*got)[0], (*want)[1], 1e-6, 0), "");
    state = (*want)[0];
  }
}

TEST(Custom, equal_ones_are_merged_and_unused_ones_dropped) {
  Graph graph = graph_of(R"(graph @g(%x: f32[4]) {
  %c = constant f32[4] {1, 2, 3, 4}
  %t = custom %x, %c "demo::Mix" "a=1" gives f32[4]
  %a = result %t {0} : f32[4]
  %u = custom %x, %c "demo::Mix" "a=1" gives f32[4]
  %b = result %u {0} : f32[4]
  %v = custom %x, %c "demo::Mix" "a=2" gives f32[4]
  %d = result %v {0} : f32[4]
  %w = custom %c "demo::Mix" "" gives f32[4]
  %e = result %w {0} : f32[4]
  %z = custom %x "demo::Mix" "" gives f32[4]
  return a = %a, b = %b, d = %d, e = %e
})");
  Expected<Graph> merged = merge_common_subexpressions(graph);
  ASSERT_TRUE(merged) << to_string(merged.errors());
  EXPECT_EQ(std::count_if(merged->nodes.begin(), merged->nodes.end(),
                          [](const Node& node) { return node.op == OpKind::k_custom; }),
            3);
  Expected<Graph> folded = fold_constants(*merged);
  ASSERT_TRUE(folded) << to_string(folded.errors());
  EXPECT_EQ(print(*folded), print(*merged));
}

TEST(Custom, the_interpreter_needs_a_function) {
  Graph graph = graph_of(R"(graph @g(%x: f32[4]) {
  %t = custom %x "demo::Other" "" gives f32[4]
  %a = result %t {0} : f32[4]
  return a = %a
})");
  Tensor x = make_tensor<float>(DType::kF32, {4}, {1, 2, 3, 4});
  Expected<std::vector<Tensor>> outputs = interpret(graph, {x}, {}, kFunctions);
  ASSERT_FALSE(outputs);
  EXPECT_EQ(outputs.errors()[0].message, "the interpreter does not know custom op 'demo::Other'");
  CustomFunction wrong = [&](const CustomOp&,
                             const std::vector<const Tensor*>&) -> Expected<std::vector<Tensor>> {
    return std::vector<Tensor>{make_tensor<float>(DType::kF32, {1}, {0})};
  };
  outputs = interpret(graph, {x}, {}, {{"demo::Other", wrong}});
  ASSERT_FALSE(outputs);
  EXPECT_EQ(outputs.errors()[0].message, "custom op 'demo::Other', result 0: expected f32[4], found f32[1]");
}

}  // namespace
}  // namespace quernel::testing
