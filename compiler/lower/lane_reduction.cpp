#include "lower/lane_reduction.h"

#include <algorithm>

namespace quernel::lower {

using loop::AxisKind;
using loop::Expr;
using loop::Stmt;

namespace {
constexpr int kAccumulators = 4;
}

Reducer reducer_of(const Node& node, DType dtype) {
  Reducer r;
  r.accumulator = dtype;
  switch (node.op) {
    case OpKind::k_reduce_sum:
    case OpKind::k_reduce_prod: {
      r.accumulator = node.attributes.accumulator;
      r.op = node.op == OpKind::k_reduce_sum ? BinaryOp::k_add : BinaryOp::k_mul;
      int64_t unit = node.op == OpKind::k_reduce_sum ? 0 : 1;
      r.identity = is_float(r.accumulator) ? loop::const_float(r.accumulator, static_cast<double>(unit))
                                           : loop::const_int(r.accumulator, unit);
      break;
    }
    case OpKind::k_reduce_max:
    case OpKind::k_reduce_argmax:
      r.op = BinaryOp::k_max, r.identity = extreme_value(dtype, true);
      break;
    case OpKind::k_reduce_min:
    case OpKind::k_reduce_argmin:
      r.op = BinaryOp::k_min, r.identity = extreme_value(dtype, false);
      break;
    case OpKind::k_reduce_and:
      r.op = BinaryOp::k_and;
      r.identity = dtype == DType::kBool ? loop::const_int(dtype, 1) : loop::const_int(dtype, -1);
      break;
    default:
      r.op = BinaryOp::k_or, r.identity = loop::const_int(dtype, 0);
      break;
  }
  return r;
}

Reducer vector_reducer_of(const Graph& graph, const Node& node, const Target& target) {
  constexpr int64_t kMinusInfinity = -0x800000;  // f32's bits, as i32: below those of all magnitudes
  const ValueId x = node.inputs[0];
  Reducer r = reducer_of(node, graph.dtype(x));
  const Node* def = graph.def(x);
  if (node.op != OpKind::k_reduce_max || graph.dtype(x) != DType::kF32 || !def || def->op != OpKind::k_abs ||
      target.lanes_are_invocations())
    return r;
  r.accumulator = DType::kI32, r.identity = loop::const_int(DType::kI32, kMinusInfinity), r.of_bits = true;
  return r;
}

Expr Reducer::in_accumulator(Expr element) const {
  return of_bits ? loop::bitcast({DType::kI32, element->type.lanes}, element)
                 : loop::cast(accumulator, element);
}
Expr Reducer::in_elements(Expr accumulated) const {
  return of_bits ? loop::bitcast({DType::kF32, accumulated->type.lanes}, accumulated) : accumulated;
}

LaneReduction::LaneReduction(Context& context, const Reducer& reducer, const Dim& extent, int lanes,
                             AxisKind steps, Dim times)
    : c_(context),
      reducer_(reducer),
      extent_(extent),
      times_(std::move(times)),
      lanes_(lanes),
      steps_(steps) {
  const int64_t vectors = extent.estimate() / lanes;
  if (vectors > 1)
    wide_ = extent.is_const() ? static_cast<int>(std::min<int64_t>(vectors, kAccumulators)) : kAccumulators;
  chain_ = saturating_sum(most(extent) / (int64_t{wide_} * lanes), wide_);
  in_blocks_ = rounds_sums(reducer_.op, reducer_.accumulator) &&
               saturating_product(chain_, most(times_)) > kLongestChain;
  acc_ = local_buffer("acc", reducer_.accumulator, int64_t{wide_} * lanes, loop::Scope::kRegister);
}

Stmt LaneReduction::each_lane(int64_t vectors, const std::function<Stmt(Expr slot)>& body) const {
  loop::Var j = index_var("j"), l = index_var("l");
  Expr slot = (vectors > 1 ? loop::var_ref(j) * index(lanes_) : index(0)) + loop::var_ref(l);
  Stmt stmt = loop::for_loop(l, index(lanes_), AxisKind::kVector, body(slot));
  return vectors > 1 ? loop::for_loop(j, index(vectors), AxisKind::kUnrolled, stmt) : stmt;
}

std::vector<Stmt> LaneReduction::begin() {
  return {loop::alloc(acc_),
          each_lane(wide_, [&](Expr slot) { return loop::store(acc_, slot, reducer_.identity); })};
}

BlockSums LaneReduction::blocks() const {
  return {reducer_.accumulator, int64_t{wide_} * lanes_, kBlockTerms,
          [this](const std::function<Stmt(Expr)>& body) { return each_lane(wide_, body); }};
}

Stmt LaneReduction::fold(const std::function<std::vector<TermLoop>()>& loops, const ValueAt& value_at) {
  auto chain = [&] {
    std::vector<TermLoop> around = loops();
    Stmt stmt = fold_axis(acc_, value_at, false);
    for (size_t i = around.size(); i-- > 0;)
      stmt = loop::for_loop(around[i].var, around[i].extent, around[i].kind, stmt);
    return stmt;
  };
  if (!in_blocks_) return chain();
  Expr steps = loop::binary(BinaryOp::k_idiv, c_.symbols(extent_), index(int64_t{wide_} * lanes_));
  return chain_or_blocks((steps + index(wide_)) * c_.symbols(times_), kLongestChain, chain, [&] {
    return blocks().sum(loops(), chain_, acc_,
                        [&](const loop::Buffer& acc) { return fold_axis(acc, value_at, true); });
  });
}

Stmt LaneReduction::fold_axis(const loop::Buffer& all, const ValueAt& value_at, bool in_blocks) {
  auto accumulate = [&](const loop::Buffer& acc, Expr position, Expr slot) {
    std::vector<Stmt> statements;
    Expr value = value_at(position, statements);
    value = reducer_.in_accumulator(std::move(value));
    statements.push_back(loop::store(acc, slot, loop::binary(reducer_.op, loop::load(acc, slot), value)));
    return loop::block(std::move(statements));
  };
  std::vector<Stmt> parts;
  Expr n = c_.symbols(extent_), done = index(0);
  bool known = extent_.is_const();
  for (int64_t vectors : {int64_t{wide_}, int64_t{1}}) {
    Expr step = index(vectors * lanes_), times = loop::binary(BinaryOp::k_idiv, n - done, step);
    int64_t count = -1;
    if (loop::as_const_int(times, &count) && count == 0) continue;
    loop::Var i = index_var("k" + std::to_string(vectors));
    Expr base = done + (count != 1 ? loop::var_ref(i) * step : index(0));
    auto vectors_at = [&](const loop::Buffer& acc) {
      return each_lane(vectors, [&](Expr slot) { return accumulate(acc, base + slot, slot); });
    };
    if (in_blocks && vectors == wide_ && count != 1)
      parts.push_back(blocks().sum({{i, times, chain_, steps_}}, 1, all, vectors_at));
    else
      parts.push_back(count != 1 ? loop::for_loop(i, times, steps_, vectors_at(all)) : vectors_at(all));
    done = done + times * step;
    if (wide_ == 1) break;
  }
  Expr rest = n - done;
  if (!known || extent_.value() % lanes_ != 0) {
    if (c_.target.has_masks) {
      Stmt masked = each_lane(1, [&](Expr slot) {
        return loop::if_then(loop::binary(BinaryOp::k_lt, slot, rest), accumulate(all, done + slot, slot));
      });
      parts.push_back(known ? masked : loop::if_then(loop::binary(BinaryOp::k_gt, rest, index(0)), masked));
    } else {
      loop::Var t = index_var("t");
      parts.push_back(
          loop::for_loop(t, rest, AxisKind::kReduction, accumulate(all, done + loop::var_ref(t), index(0))));
    }
  }
  return loop::block(std::move(parts));
}

Expr LaneReduction::result() const {
  Expr sum = loop::load(acc_, loop::ramp(index(0), 1, lanes_), lanes_);
  for (int j = 1; j < wide_; ++j)
    sum = loop::binary(reducer_.op, sum, loop::load(acc_, loop::ramp(index(j * lanes_), 1, lanes_), lanes_));
  return reducer_.in_elements(loop::reduce_lanes(reducer_.op, sum));
}

Expr fold_lanes(std::vector<Stmt>& body, BinaryOp op, std::vector<Expr> vectors) {
  while (vectors.size() > 1) {
    const size_t half = vectors.size() / 2;
    std::vector<Expr> folded;
    for (size_t i = 0; i < half; ++i) {
      Expr a = named(body, "v", vectors[i]), b = named(body, "v", vectors[i + half]);
      folded.push_back(loop::binary(op, loop::interleave(false, a, b), loop::interleave(true, a, b)));
    }
    vectors = std::move(folded);
  }
  return vectors[0];
}

}  // namespace quernel::lower
