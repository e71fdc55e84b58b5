// Attention, a block of rows at a time: the scores' tiles, the stages over their rows and the result's tiles,
// with the block's scores in scratch. Where a GPU's workgroup holds only some keys of its rows, these follow
// one another, and the softmax is made online.
#include <algorithm>
#include <cmath>

#include "lower/loop_nest.h"
#include "lower/softmax_weight.h"
#include "schedule/attention/row_softmax.h"

namespace quernel::lower {
namespace {

using loop::Expr;
using loop::Stmt;
using schedule::Group;

class AttentionLowering {
 public:
  explicit AttentionLowering(Context& context) : c_(context), g_(context.graph()), group_(context.group) {
    scores_ = group_.parts[0].outputs[0];
    weights_ = group_.parts[1].outputs[0];
  }

  void run() {
    Shape outer = g_.shape(scores_);
    Dim width = outer.back();
    outer.pop_back();
    Dim rows = outer.back();
    outer.back() = ceildiv(rows, group_.block_rows);
    int64_t work = 0;
    for (const Group* part : {&group_.parts.front(), &group_.parts.back()}) {
      const schedule::ContractionPlan& plan = part->contraction;
      work += group_.block_rows * schedule::reduction_count(plan).estimate() *
              plan.axes[plan.vector_axis].extent.estimate();
    }
    c_.kernel.body = outer_loops(c_, outer, work, group_.work.group_work, [&](const std::vector<Expr>& at) {
      RowBlock block{
          {at.begin(), at.end() - 1}, at.back() * index(group_.block_rows), nullptr, group_.block_rows};
      if (!(floormod(rows, group_.block_rows) == Dim(0)))
        block.end = loop::binary(BinaryOp::k_min, block.begin + index(block.most), c_.symbols(rows));
      return group_.block_keys != 0 ? rows_in_parts(block, width) : rows_of_scores(block, width.value());
    });
  }

 private:
  Stmt rows_of_scores(const RowBlock& block, int64_t width) {
    KernelBuffers buffers = c_.buffers;
    std::vector<Stmt> body;
    // The last stage may write over the scores: it reads each just before.
    const std::vector<ValueId>& stored = group_.parts[1].stages.back().outputs;
    bool in_place = std::find(stored.begin(), stored.end(), weights_) != stored.end();
    loop::Buffer buffer;
    for (ValueId v : {scores_, weights_}) {
      if (!buffer || !in_place) {
        buffer = local_buffer("block", g_.dtype(v), block.most * width, loop::Scope::kShared);
        body.push_back(loop::alloc(buffer));
      }
      buffers.reads[v] = buffers.writes[v] = buffer;
      const Shape& strides = c_.schedule.storage[v].strides;
      Expr first = block.begin * c_.symbols(strides[block.outer.size()]);
      for (size_t d = 0; d < block.outer.size(); ++d) first = first + block.outer[d] * c_.symbols(strides[d]);
      buffers.first[v] = first;
    }
    auto lower = [&](const Group& part, const std::function<Stmt(Context&)>& make) {
      Context context{c_.schedule, c_.item, part, c_.target, buffers, {}, std::move(c_.symbols), {}, 1};
      body.push_back(make(context));
      c_.symbols = std::move(context.symbols);
    };
    const Node& first = g_.nodes[group_.parts[0].anchor];
    const Group& last = group_.parts[2];
    lower(group_.parts[0], [&](Context& context) {
      return contract_rows(context, block, axes_of(first.attributes.contraction.out));
    });
    lower(group_.parts[1], [&](Context& context) { return stages_of_rows(context, block); });
    lower(last, [&](Context& context) {
      int operand = last.contraction.swapped ? 1 : 0;
      return contract_rows(context, block,
                           axes_of(schedule::resolve_operand(g_, g_.nodes[last.anchor], operand).indices));
    });
    return loop::block(std::move(body));
  }

  // Keys by `block_keys`: scores of the block's rows, their largest and their sum so far, and what these
  // scores add to the rows of the result.
  Stmt rows_in_parts(const RowBlock& block, const Dim& width) {
    int64_t keys = group_.block_keys;
    auto each_row = [&](const char* name) {
      return local_buffer(name, DType::kF32, block.most, loop::Scope::kRegister);
    };
    Running running{local_buffer("block", DType::kF32, block.most * keys, loop::Scope::kShared),
                    each_row("highest"), each_row("total"), each_row("scale")};
    KernelBuffers buffers = c_.buffers;
    Expr first = block.begin * index(keys);
    for (ValueId v : {scores_, weights_}) {
      buffers.reads[v] = buffers.writes[v] = running.scores;
      buffers.first[v] = first;
    }
    auto lower = [&](LaunchSymbols& symbols, const Group& part, const Expr& of_part,
                     const std::function<Stmt(Context&)>& make) {
      Context context{c_.schedule, c_.item, part, c_.target, buffers, {}, std::move(symbols), {}, 1};
      // Its first key's score lies first in the row.
      if (of_part) context.buffers.first[scores_] = first + of_part * index(keys);
      Stmt stmt = make(context);
      symbols = std::move(context.symbols);
      return stmt;
    };
    SumInParts parts;
    parts.width = keys;
    parts.make = [&](Context& around, const Expr& part) {
      const Group& scores = group_.parts[0];
      int64_t tiles = keys / scores.contraction.tile_n();
      Stmt contract = lower(around.symbols, scores, part, [&](Context& context) {
        return contract_rows(context, block, axes_of(g_.nodes[scores.anchor].attributes.contraction.out),
                             {part * index(tiles), tiles});
      });
      Stmt softmax = lower(around.symbols, group_.parts[1], part,
                           [&](Context& context) { return add_part(context, block, running, part, width); });
      return loop::block({contract, softmax});
    };
    parts.scale = [&](const Expr& row) { return loop::load(running.scale, row); };
    bool hidden_is_zero = schedule::row_softmax(g_, group_.parts[1], scores_)->hidden_is_zero;
    bool may_be_empty = !hidden_is_zero && width.bounds().lo <= 0;
    Expr all = may_be_empty ? c_.symbols(width) : nullptr;
    parts.divisor = [&](const Expr& row) {
      Expr total = loop::load(running.total, row);
      if (hidden_is_zero)
        return loop::select(loop::binary(BinaryOp::k_eq, total, number(0)), number(1), total);
      // Without keys there is nothing to be divided.
      if (may_be_empty) return loop::select(loop::binary(BinaryOp::k_eq, all, index(0)), number(1), total);
      return total;
    };
    const Group& last = group_.parts[2];
    Stmt sums = lower(c_.symbols, last, nullptr, [&](Context& context) {
      int operand = last.contraction.swapped ? 1 : 0;
      return contract_rows_in_parts(
          context, block, axes_of(schedule::resolve_operand(g_, g_.nodes[last.anchor], operand).indices),
          parts);
    });
    loop::Var r = index_var("r");
    Stmt begin =
        loop::for_loop(r, index(block.most), loop::AxisKind::kSerial,
                       loop::block({loop::store(running.highest, loop::var_ref(r), number(-INFINITY)),
                                    loop::store(running.total, loop::var_ref(r), number(0)),
                                    loop::store(running.scale, loop::var_ref(r), number(0))}));
    return loop::block({loop::alloc(running.scores), loop::alloc(running.highest), loop::alloc(running.total),
                        loop::alloc(running.scale), begin, sums});
  }

  // Of the block's rows so far: the largest score, the sum of exponentials of what scores lack to it, and
  // what the last part has made of sums before it.
  struct Running {
    loop::Buffer scores, highest, total, scale;
  };
  static Expr number(double value) { return loop::const_float(DType::kF32, value); }

  // The present part's scores become exponentials, row by row.
  Stmt add_part(Context& context, const RowBlock& block, const Running& running, const Expr& part,
                const Dim& width) {
    ValueId x = schedule::row_softmax(g_, context.group, scores_)->x;
    int64_t keys = group_.block_keys;
    int lanes = c_.target.lanes(4);
    loop::Var r = index_var("r");
    Expr row = loop::var_ref(r), first = part * index(keys);
    loop::Buffer kept = local_buffer("x", DType::kF32, keys, loop::Scope::kRegister);
    auto for_keys = [&](const std::function<Stmt(Expr)>& body) {
      loop::Var j = index_var("j"), l = index_var("l");
      Stmt vector = loop::for_loop(l, index(lanes), loop::AxisKind::kVector,
                                   body(loop::var_ref(j) * index(lanes) + loop::var_ref(l)));
      return loop::for_loop(j, index(keys / lanes), loop::AxisKind::kUnrolled, vector);
    };
    auto fold = [&](BinaryOp op) {
      Expr all = nullptr;
      for (int64_t at = 0; at < keys; at += lanes) {
        Expr vector = loop::load(kept, loop::ramp(index(at), 1, lanes), lanes);
        all = all ? loop::binary(op, all, vector) : vector;
      }
      return loop::reduce_lanes(op, all);
    };
    std::vector<Stmt> body{loop::alloc(kept)};
    auto name = [&](const char* what, Expr value) {
      loop::Var var = fresh_var(what, {DType::kF32, 1});
      body.push_back(loop::let(var, std::move(value)));
      return loop::var_ref(var);
    };
    body.push_back(for_keys([&](Expr key) {
      // Beyond the last key, its score for the reading.
      bool whole = floormod(width, keys) == Dim(0);
      Expr column = first + key, last = context.symbols(width) - index(1);
      Evaluator e = context.evaluator();
      const Shape& dims = g_.shape(scores_);
      std::vector<IndexExpr> at;
      for (size_t d = 0; d < dims.size(); ++d) {
        Expr position = d + 1 == dims.size() ? (whole ? column : loop::binary(BinaryOp::k_min, column, last))
                        : d + 2 == dims.size() ? block.begin + row
                                               : block.outer[d];
        e.axes.push_back({position, max(dims[d], 1)});
        at.push_back(IndexExpr::axis(static_cast<int>(d)));
      }
      Expr value = e.evaluate(x, at);
      if (!whole) value = loop::select(loop::binary(BinaryOp::k_le, column, last), value, number(-INFINITY));
      e.statements.push_back(loop::store(kept, key, value));
      return loop::block(std::move(e.statements));
    }));
    Expr before = loop::load(running.highest, row);
    Expr now = name("now", loop::binary(BinaryOp::k_max, before, fold(BinaryOp::k_max)));
    // Rows that have been hidden so far: nothing is taken away, and everything is zero.
    Expr hidden = loop::binary(BinaryOp::k_eq, now, number(-INFINITY));
    Expr less = name("less", loop::select(hidden, number(0), now));
    Expr scale = name("rescaled", softmax_weight(name("risen", before - less)));
    body.push_back(for_keys([&](Expr key) {
      loop::Var below = fresh_var("below", {kept->dtype, 1});
      return loop::block({loop::let(below, loop::load(kept, key) - less),
                          loop::store(kept, key, softmax_weight(loop::var_ref(below)))});
    }));
    Expr added = name("added", fold(BinaryOp::k_add));
    body.push_back(for_keys([&](Expr key) {
      return loop::store(running.scores, row * index(keys) + key, loop::load(kept, key));
    }));
    body.push_back(loop::store(running.highest, row, now));
    body.push_back(loop::store(running.scale, row, scale));
    body.push_back(loop::store(running.total, row, loop::load(running.total, row) * scale + added));
    Expr count = index(block.most);
    if (block.end) count = loop::binary(BinaryOp::k_min, count, block.end - block.begin);
    return loop::for_loop(r, count, loop::AxisKind::kSerial, loop::block(std::move(body)));
  }

  // The axes that walk the dims of the scores up to the rows'.
  static std::vector<int> axes_of(const std::vector<IndexExpr>& indices) {
    std::vector<int> axes;
    for (size_t d = 0; d + 1 < indices.size(); ++d)
      axes.push_back(indices[d].kind() == IndexExpr::Kind::kAxis ? indices[d].axis_index() : -1);
    return axes;
  }

  Context& c_;
  const Graph& g_;
  const Group& group_;
  ValueId scores_ = kNoValue, weights_ = kNoValue;
};

}  // namespace

void lower_attention(Context& context) {
  context.group.stream ? lower_streamed_attention(context) : AttentionLowering(context).run();
}

}  // namespace quernel::lower
