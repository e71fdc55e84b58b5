// Random graphs with symbols in their shapes: one graph, interpreted and compiled, at several values of the
// symbols.
#include <gtest/gtest.h>

#include <algorithm>

#include "graph/build.h"
#include "graph/interpret.h"
#include "graph/text.h"
#include "graph/verify.h"
#include "pipeline.h"
#include "random_graph/random_graph.h"
#include "run_compiled.h"

namespace quernel::testing {
namespace {

// Elementwise chains, reductions, products and movement over values whose dims are n, m, small constants, and
// what ops make of them. All data are small integers in f32, so that sums are exact in any order.
class SymbolicGraph {
 public:
  explicit SymbolicGraph(uint64_t seed) : random_(seed), build_(graph) {
    n_ = graph.add_symbol({"n", 1, 40, 1, false, {}});
    m_ = graph.add_symbol({"m", 2, 32, 2, false, {}});
    for (int i = 0; i < 2; ++i) {
      Shape shape = random_shape();
      shape.insert(shape.begin() + random_.below(static_cast<int64_t>(shape.size()) + 1), i == 0 ? n_ : m_);
      values_.push_back(graph.add_input("x" + std::to_string(i), {DType::kF32, shape}));
    }
    // Both symbols are bound by a dim that is nothing else.
    for (int64_t steps = random_.between(4, 12); steps > 0 && build_.ok(); --steps) step();
    for (size_t i = 0; i < values_.size(); ++i)
      if (i + 3 >= values_.size() || random_.chance(20))
        graph.outputs.push_back({"y" + std::to_string(i), values_[i]});
    Attributes sizes;
    sizes.shape = {n_ * 3 - 1, floordiv(n_ + m_, 2), m_};
    graph.outputs.push_back({"sizes", build_.add(OpKind::k_dims, {}, std::move(sizes))});
    EXPECT_TRUE(build_.ok()) << to_string(build_.take_status().errors());
  }

  Graph graph;

 private:
  Shape random_shape() {
    Shape shape;
    for (int64_t rank = random_.between(0, 2); rank > 0; --rank)
      shape.push_back(random_.chance(40) ? (random_.chance(50) ? n_ : m_) : Dim(random_.between(1, 5)));
    return shape;
  }
  ValueId pick() { return random_.pick(values_); }
  size_t pick_axis(const Shape& shape) {
    return static_cast<size_t>(random_.below(static_cast<int64_t>(shape.size())));
  }
  void keep(ValueId v) {
    // Values of too many elements, or none, are of no interest.
    const Shape& shape = graph.shape(v);
    for (const Dim& d : shape)
      if (d.bounds().lo < 1) return;
    if (element_count(shape).bounds().hi <= 200000 && shape.size() <= 5) values_.push_back(v);
  }
  // Back to small integers.
  ValueId tame(ValueId v) {
    ValueId low = build_.full(DType::kF32, graph.shape(v), -8),
            high = build_.full(DType::kF32, graph.shape(v), 8);
    return build_.add(OpKind::k_clamp, {v, low, high});
  }

  void step() {
    ValueId x = pick();
    Shape shape = graph.shape(x);
    switch (random_.below(12)) {
      case 0:
        return keep(build_.unary(random_.chance(50) ? UnaryOp::k_neg : UnaryOp::k_abs, x));
      case 1: {
        ValueId y = pick();
        if (!broadcast_shapes(shape, graph.shape(y))) return;
        BinaryOp op =
            random_.pick(std::vector{BinaryOp::k_add, BinaryOp::k_sub, BinaryOp::k_max, BinaryOp::k_mul});
        return keep(tame(build_.binary(op, x, y)));
      }
      case 2: {
        std::vector<int64_t> perm;
        for (size_t i = 0; i < shape.size(); ++i) perm.insert(perm.begin() + random_.below(i + 1), i);
        return keep(build_.permute(x, perm));
      }
      case 3: {  // two neighbours become one dim, or one dim two
        if (shape.size() >= 2 && random_.chance(60)) {
          size_t i = static_cast<size_t>(random_.below(static_cast<int64_t>(shape.size()) - 1));
          shape[i] = shape[i] * shape[i + 1];
          shape.erase(shape.begin() + i + 1);
          return keep(build_.reshape(x, shape));
        }
        if (shape.empty()) return;
        size_t i = pick_axis(shape);
        for (const Dim& part : {n_, m_, Dim(2), Dim(3)})
          if (std::optional<Dim> rest = divide_exactly(shape[i], part)) {
            shape[i] = *rest;
            shape.insert(shape.begin() + i + random_.below(2), part);
            return keep(build_.reshape(x, shape));
          }
        return;
      }
      case 4: {
        if (shape.empty()) return;
        Shape starts(shape.size(), Dim(0)), stops = shape;
        std::vector<int64_t> steps(shape.size(), 1);
        size_t i = pick_axis(shape);
        if (always_le(3, shape[i])) starts[i] = 1;
        if (random_.chance(40)) stops[i] = ceildiv(shape[i] + 1, 2), starts[i] = 0;
        if (random_.chance(30)) steps[i] = 2;
        return keep(build_.slice(x, starts, stops, steps));
      }
      case 5: {
        if (shape.empty()) return;
        Shape before(shape.size(), Dim(0)), after(shape.size(), Dim(0));
        size_t i = pick_axis(shape);
        before[i] = random_.below(3);
        after[i] = random_.chance(30) ? m_ : Dim(random_.below(3));
        bool edge = random_.chance(30);
        return keep(build_.pad(x, before, after, edge ? PadMode::kEdge : PadMode::kConstant, edge ? 0 : 1));
      }
      case 6: {
        if (shape.empty()) return;
        return keep(build_.flip(x, {static_cast<int64_t>(pick_axis(shape))}));
      }
      case 7: {
        if (shape.empty()) return;
        size_t axis = pick_axis(shape);
        ValueId y = random_.chance(50) ? x : build_.unary(UnaryOp::k_neg, x);
        return keep(build_.cat({x, y}, static_cast<int64_t>(axis)));
      }
      case 8: {
        std::vector<int64_t> axes;
        for (size_t i = 0; i < shape.size(); ++i)
          if (random_.chance(50)) axes.push_back(static_cast<int64_t>(i));
        OpKind op =
            random_.pick(std::vector{OpKind::k_reduce_sum, OpKind::k_reduce_max, OpKind::k_reduce_min});
        return keep(tame(build_.reduce(op, x, axes, random_.chance(50))));
      }
      case 9: {  // x [..., k] with weights or with another value that has k
        if (shape.empty()) return;
        ValueId y = pick();
        Shape other = graph.shape(y);
        if (shape.back().is_const()) {
          y = build_.constant(weights(shape.back().value(), random_.between(1, 20)));
          other = graph.shape(y);
        }
        if (other.empty() || !(other[0] == shape.back()) || shape.size() + other.size() > 6) return;
        Contraction c;
        for (size_t i = 0; i + 1 < shape.size(); ++i) c.out.push_back(axis(c, shape[i], false));
        c.a = c.out;
        std::vector<IndexExpr> columns;
        for (size_t i = 1; i < other.size(); ++i) columns.push_back(axis(c, other[i], false));
        c.out.insert(c.out.end(), columns.begin(), columns.end());
        IndexExpr k = axis(c, shape.back(), true);
        c.a.push_back(k);
        c.b = {k};
        c.b.insert(c.b.end(), columns.begin(), columns.end());
        Dim work = element_count(shape);
        for (const Dim& d : other) work *= d;
        if (work.bounds().hi > 4000000) return;
        return keep(tame(build_.contract(x, y, std::move(c))));
      }
      case 10: {
        if (shape.empty()) return;
        Attributes a;
        a.ints = {static_cast<int64_t>(pick_axis(shape))};
        a.accumulator = DType::kF32;
        a.exclusive = random_.chance(30);
        a.reverse = random_.chance(30);
        return keep(tame(build_.add(OpKind::k_scan_sum, {x}, std::move(a))));
      }
      default: {
        if (shape.empty()) return;
        ValueId rows = build_.constant(i64_tensor({3}, {0, -1, 0}));
        return keep(build_.take(x, rows, static_cast<int64_t>(pick_axis(shape))));
      }
    }
  }

  static IndexExpr axis(Contraction& c, const Dim& extent, bool reduction) {
    c.axes.push_back({"d" + std::to_string(c.axes.size()), extent, reduction});
    return IndexExpr::axis(static_cast<int>(c.axes.size()) - 1);
  }
  Tensor weights(int64_t rows, int64_t columns) {
    std::vector<float> data(static_cast<size_t>(rows * columns));
    for (float& w : data) w = static_cast<float>(random_.between(-2, 2));
    return f32_tensor({rows, columns}, data);
  }

  Random random_;
  GraphBuilder build_;
  Dim n_, m_;
  std::vector<ValueId> values_;
};

std::vector<Tensor> inputs_at(const Graph& graph, const std::map<std::string, int64_t>& at, uint64_t seed) {
  Random random(seed);
  std::vector<Tensor> inputs;
  for (ValueId v : graph.inputs) {
    std::vector<int64_t> dims;
    for (const Dim& d : graph.shape(v)) dims.push_back(*d.evaluate(at));
    std::vector<float> data(static_cast<size_t>(*element_count(dims)));
    for (float& x : data) x = static_cast<float>(random.between(-3, 3));
    inputs.push_back(f32_tensor(dims, data));
  }
  return inputs;
}

void compare(uint64_t seed, const CompileOptions& options) {
  SymbolicGraph made(seed);
  const Graph& graph = made.graph;
  Status valid = verify(graph);
  ASSERT_TRUE(valid) << "seed " << seed << ": " << to_string(valid.errors()) << print(graph);
  for (auto [n, m] : {std::pair<int64_t, int64_t>{1, 2}, {7, 8}, {40, 32}, {33, 14}}) {
    std::vector<Tensor> inputs = inputs_at(graph, {{"n", n}, {"m", m}}, seed);
    Expected<std::vector<Tensor>> want = interpret(graph, inputs, {{"n", n}, {"m", m}});
    ASSERT_TRUE(want) << "seed " << seed << ": " << to_string(want.errors()) << print(graph);
    Expected<std::vector<Tensor>> got = run_compiled(graph, inputs, options, 1 + seed % 2);
    ASSERT_TRUE(got) << "seed " << seed << ": " << to_string(got.errors()) << print(graph);
    for (size_t i = 0; i < want->size(); ++i)
      ASSERT_EQ(difference((*got)[i], (*want)[i], 0, 0), "")
          << "seed " << seed << ", n " << n << ", m " << m << ", output " << graph.outputs[i].name << "\n"
          << print(graph, 64);
  }
}

TEST(Symbolic, NativeTarget) {
  for (uint64_t seed = 1; seed <= 150 && !HasFatalFailure(); ++seed) compare(seed, {});
}

// No masks, other vector lengths.
TEST(Symbolic, BaselineTarget) {
  CompileOptions options;
  options.targets = {"x86-64"};
  for (uint64_t seed = 1; seed <= 60 && !HasFatalFailure(); ++seed) compare(seed, options);
}

TEST(Symbolic, EveryGraphPassDisabledInTurn) {
  for (const GraphPass& pass : graph_passes()) {
    if (!pass.optional) continue;
    CompileOptions options;
    options.disabled_passes = {std::string(pass.name)};
    for (uint64_t seed = 1; seed <= 8 && !HasFatalFailure(); ++seed) compare(seed, options);
  }
}

}  // namespace
}  // namespace quernel::testing
