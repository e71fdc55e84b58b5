// Attention, a block of rows at a time: the scores' tiles, the stages over their rows and the result's tiles,
// with the block's scores in scratch.
#include <algorithm>

#include "lower/loop_nest.h"

namespace quernel::lower {
namespace {

using loop::Expr;
using loop::Stmt;
using schedule::Group;

constexpr int64_t kWorkPerGroup = 1 << 16;  // multiply-adds

class Lowering {
 public:
  explicit Lowering(Context& context) : c_(context), g_(context.graph()), group_(context.group) {
    scores_ = group_.parts[0].outputs[0];
    weights_ = group_.parts[1].outputs[0];
  }

  void run() {
    Shape outer = g_.shape(scores_);
    int64_t width = outer.back().value();
    outer.pop_back();
    Dim rows = outer.back();
    outer.back() = ceildiv(rows, group_.block_rows);
    int64_t work = 0;
    for (const Group* part : {&group_.parts.front(), &group_.parts.back()}) {
      const schedule::ContractionPlan& plan = part->contraction;
      work += group_.block_rows * schedule::reduction_count(plan).estimate() *
              plan.axes[plan.vector_axis].extent.estimate();
    }
    c_.kernel.body = outer_loops(c_, outer, work, kWorkPerGroup, [&](const std::vector<Expr>& at) {
      RowBlock block{
          {at.begin(), at.end() - 1}, at.back() * index(group_.block_rows), nullptr, group_.block_rows};
      if (!(floormod(rows, group_.block_rows) == Dim(0)))
        block.end = loop::binary(BinaryOp::k_min, block.begin + index(block.most), c_.symbols(rows));
      return rows_of_scores(block, width);
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

void lower_attention(Context& context) { Lowering(context).run(); }

}  // namespace quernel::lower
