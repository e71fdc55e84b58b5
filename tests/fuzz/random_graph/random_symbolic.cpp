// Random graphs with symbols in their shapes: elementwise chains, reductions, products, movement, gathers,
// scans and sorts over values whose dims are n, m, small constants, and what ops make of them.
#include <algorithm>

#include "graph/build.h"
#include "random_graph/random_graph.h"

namespace quernel {
namespace {

// Integers from -bound, or 0, to bound.
Tensor small_integers(DType dtype, const std::vector<int64_t>& dims, int64_t bound, Random& random) {
  Tensor tensor{dtype, dims, {}};
  std::vector<uint8_t> bytes(static_cast<size_t>(byte_size(dtype, tensor.count())));
  for (int64_t i = 0; i < tensor.count(); ++i) {
    int64_t value = random.between(is_unsigned_integer(dtype) ? 0 : -bound, bound);
    if (is_float(dtype))
      store_f64(dtype, bytes.data(), i, static_cast<double>(value));
    else
      store_i64(dtype, bytes.data(), i, value);
  }
  tensor.bytes = Bytes::own(std::move(bytes));
  return tensor;
}

class SymbolicGraph {
 public:
  SymbolicGraph(uint64_t seed, int min_nodes, int max_nodes) : random_(seed), build_(graph) {
    static const std::vector<DType> kDTypes{DType::kF32,  DType::kF32, DType::kF32, DType::kF64, DType::kF16,
                                            DType::kBF16, DType::kI8,  DType::kU8,  DType::kI16, DType::kU16,
                                            DType::kI32,  DType::kU32, DType::kI64, DType::kU64};
    DType dtype = random_.pick(kDTypes);
    n_ = graph.add_symbol({"n", 1, 40, 1, false, {}});
    m_ = graph.add_symbol({"m", 2, 32, 2, false, {}});
    for (int i = 0; i < 2; ++i) {
      Shape shape = random_shape();
      shape.insert(shape.begin() + random_.below(static_cast<int64_t>(shape.size()) + 1), i == 0 ? n_ : m_);
      values_.push_back(graph.add_input("x" + std::to_string(i), {dtype, shape}));
    }
    // Both symbols are bound by a dim that is nothing else.
    for (int64_t steps = random_.between(min_nodes, max_nodes); steps > 0 && build_.ok(); --steps) step();
    for (size_t i = 0; i < values_.size(); ++i)
      if (i + 3 >= values_.size() || random_.chance(20))
        graph.outputs.push_back({"y" + std::to_string(i), values_[i]});
    Attributes sizes;
    sizes.shape = {n_ * 3 - 1, floordiv(n_ + m_, 2), m_};
    graph.outputs.push_back({"sizes", build_.add(OpKind::k_dims, {}, std::move(sizes))});
    if (!build_.ok()) fatal(__FILE__, __LINE__, to_string(build_.take_status().errors()));
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
    DType dtype = graph.dtype(v);
    ValueId low = build_.full(dtype, graph.shape(v), is_unsigned_integer(dtype) ? 0 : -8),
            high = build_.full(dtype, graph.shape(v), 8);
    return build_.add(OpKind::k_clamp, {v, low, high});
  }

  void step() {
    ValueId x = pick();
    Shape shape = graph.shape(x);
    switch (random_.below(15)) {
      case 0:
        return keep(tame(build_.unary(random_.chance(50) ? UnaryOp::k_neg : UnaryOp::k_abs, x)));
      case 1: {
        ValueId y = pick();
        if (graph.dtype(y) != graph.dtype(x) || !broadcast_shapes(shape, graph.shape(y))) return;
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
        ValueId y = random_.chance(50) ? x : tame(build_.unary(UnaryOp::k_neg, x));
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
          y = build_.constant(weights(graph.dtype(x), shape.back().value(), random_.between(1, 20)));
          other = graph.shape(y);
        }
        if (other.empty() || graph.dtype(y) != graph.dtype(x) || !(other[0] == shape.back()) ||
            shape.size() + other.size() > 6)
          return;
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
        c.accumulator = default_accumulator(graph.dtype(x));
        return keep(tame(as(build_.contract(x, y, std::move(c)), graph.dtype(x))));
      }
      case 10: {
        if (shape.empty()) return;
        Attributes a;
        a.ints = {static_cast<int64_t>(pick_axis(shape))};
        a.accumulator = default_accumulator(graph.dtype(x));
        a.exclusive = random_.chance(30);
        a.reverse = random_.chance(30);
        return keep(tame(build_.add(OpKind::k_scan_sum, {x}, std::move(a))));
      }
      case 11: {
        DType to =
            random_.pick(std::vector{DType::kF32, DType::kF16, DType::kI8, DType::kI32, DType::kU8,
                                     DType::kI64, DType::kF64, DType::kBF16, DType::kI4, DType::kF8E4M3});
        if (to < DType::kI4) return keep(tame(build_.cast(x, to)));
        return keep(tame(build_.cast(build_.cast(x, to), graph.dtype(x))));  // through storage
      }
      case 12: {
        ValueId y = pick();
        if (graph.dtype(y) != graph.dtype(x) || !(graph.shape(y) == shape))
          y = build_.full(graph.dtype(x), shape, 2);
        ValueId condition = build_.binary(random_.chance(50) ? BinaryOp::k_lt : BinaryOp::k_eq, x, y);
        return keep(build_.where(condition, y, x));
      }
      case 13: {
        if (shape.empty()) return;
        int64_t axis = static_cast<int64_t>(pick_axis(shape));
        const Dim size = shape[static_cast<size_t>(axis)];
        ValueId order = build_.argsort(x, axis, size, random_.chance(50));
        Attributes along;
        along.ints = {axis};
        return keep(build_.add(OpKind::k_gather_elements, {x, order}, std::move(along)));
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
  // Contractions of narrow integers give i32.
  ValueId as(ValueId v, DType dtype) { return graph.dtype(v) == dtype ? v : build_.cast(v, dtype); }
  Tensor weights(DType dtype, int64_t rows, int64_t columns) {
    return small_integers(dtype, {rows, columns}, 2, random_);
  }

  Random random_;
  GraphBuilder build_;
  Dim n_, m_;
  std::vector<ValueId> values_;
};

}  // namespace

Graph random_symbolic_graph(uint64_t seed, int min_nodes, int max_nodes) {
  return std::move(SymbolicGraph(seed, min_nodes, max_nodes).graph);
}

std::vector<Tensor> random_inputs_at(const Graph& graph, const std::map<std::string, int64_t>& symbols,
                                     uint64_t seed) {
  Random random(seed);
  std::vector<Tensor> inputs;
  for (ValueId v : graph.inputs) {
    std::vector<int64_t> dims;
    for (const Dim& d : graph.shape(v)) dims.push_back(*d.evaluate(symbols));
    inputs.push_back(small_integers(graph.dtype(v), dims, 3, random));
  }
  return inputs;
}

}  // namespace quernel
