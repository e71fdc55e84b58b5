// Contractions over very many terms as contractions over parts of them. Where the parts' results are few they
// are one contraction with an axis of parts, and a sum; else one contraction after another adds its part to
// those before it.
#include <algorithm>
#include <numeric>
#include <optional>

#include "graph/passes/passes.h"
#include "graph/quantized.h"
#include "graph/rewrite.h"

namespace quernel {
namespace {

constexpr int64_t kMostPartResults = 1 << 22;  // elements

// The part's size that divides `extent`, in [wanted / 2, wanted], a multiple of `step`; 0: none.
int64_t divisor_up_to(int64_t extent, int64_t wanted, int64_t step = 1) {
  for (int64_t d = wanted / step * step; d > 1 && d >= wanted / 2; d -= step)
    if (extent % d == 0) return d;
  return 0;
}

class Splitter {
 public:
  Splitter(Rewriter& r, const Node& node, const ContractionLimits& limits)
      : r_(r), node_(node), limits_(limits), whole_(node.attributes.contraction) {
    whole_.unrounded = true;
  }

  ValueId run() {
    if (!decide()) return kNoValue;
    const int64_t extent = whole_.axes[axis_].extent.value(), parts = (extent + size_ - 1) / size_;
    ValueId sum = kNoValue;
    if (results_ * parts <= kMostPartResults) {
      const int64_t divisor = extent % size_ == 0 ? size_ : divisor_up_to(extent, size_),
                    size = divisor != 0 ? divisor : size_;
      sum = add(side_by_side(size), extent % size == 0 ? kNoValue : part(extent / size * size, extent));
    } else {
      for (int64_t begin = 0; begin < extent; begin += size_)
        sum = add(part(begin, std::min(extent, begin + size_)), sum);
    }
    return r_.build.cast(sum, r_.old.dtype(node_.output));
  }

 private:
  // Chooses the axis that is split, the longest one, and the size of a part along it.
  bool decide() {
    Dim terms = 1, results = 1;
    for (size_t i = 0; i < whole_.axes.size(); ++i) {
      const Contraction::Axis& axis = whole_.axes[i];
      (axis.reduction ? terms : results) *= axis.extent;
      if (!axis.reduction || !axis.extent.is_const()) continue;
      if (axis_ < 0 || whole_.axes[axis_].extent.value() < axis.extent.value()) axis_ = static_cast<int>(i);
    }
    if (!terms.is_const() || axis_ < 0 || whole_.winograd != 0) return false;
    if (terms == Dim(0)) return false;    // an empty sum
    if (results == Dim(1)) return false;  // materialize-operands makes a product and a reduction of it
    results_ = std::max<int64_t>(results.estimate(), 1);
    const int64_t others = terms.value() / whole_.axes[axis_].extent.value();
    if ((size_ = size_of_busy_part(terms.value(), others)) > 0) return true;
    bool alone = terms.value() > limits_.longest_shared && results_ <= limits_.few_results &&
                 terms.value() >= limits_.least_shared / results_;
    if (!alone && terms.value() <= limits_.most_terms) return false;
    size_ = std::max<int64_t>(1, limits_.part_terms / others);
    return size_ < whole_.axes[axis_].extent.value();
  }

  // Parts that are computed side by side where one of all terms would leave invocations idle. `others`: terms for a position
  // on the axis.
  int64_t size_of_busy_part(int64_t terms, int64_t others) const {
    constexpr int64_t kTogether = 16;  // neighbours that kernels fetch at a time
    if (limits_.busy_results == 0 || results_ >= limits_.busy_results || terms < 2 * limits_.busy_terms)
      return 0;
    bool constant = false;
    int64_t step = kTogether;
    for (ValueId v : node_.inputs) {
      while (const Node* moved = r_.old.def(v)) {
        if (!has_index_map(*moved)) break;
        v = moved->inputs[0];
      }
      constant |= is_constant_operand(r_.old, v);
      // No part ends within a block that shares a scale.
      if (const std::optional<QuantizedConstant> q = quantized_constant(r_.old, v))
        for (size_t d = 0; d < q->groups->size(); ++d)
          if (q->scales->dims[d] > 1) step = std::lcm(step, (*q->groups)[d]);
    }
    if (!constant) return 0;
    const int64_t most_parts = limits_.busy_results / results_,
                  wanted = std::max(limits_.busy_terms, terms / most_parts) / others;
    const int64_t extent = whole_.axes[axis_].extent.value();
    return wanted < extent ? divisor_up_to(extent, wanted, step) : 0;
  }

  ValueId add(ValueId a, ValueId b) const {
    return b == kNoValue ? a : r_.build.binary(BinaryOp::k_add, a, b);
  }

  // Puts these positions on the axes into all accesses.
  static void place(Contraction& c, const std::vector<IndexExpr>& positions) {
    for (std::vector<IndexExpr>* map : {&c.a, &c.b, &c.out})
      for (IndexExpr& e : *map) e = substitute(e, positions);
  }
  ValueId contract(Contraction c) const {
    return r_.build.contract(r_(node_.inputs[0]), r_(node_.inputs[1]), std::move(c));
  }

  // The terms from `begin` to `end`.
  ValueId part(int64_t begin, int64_t end) const {
    Contraction c = whole_;
    c.axes[axis_].extent = end - begin;
    std::vector<IndexExpr> positions;
    for (size_t i = 0; i < c.axes.size(); ++i) positions.push_back(IndexExpr::axis(static_cast<int>(i)));
    positions[axis_] = positions[axis_] + begin;
    place(c, positions);
    return contract(std::move(c));
  }

  // The sum of all whole parts of that size.
  ValueId side_by_side(int64_t size) const {
    Contraction c = whole_;
    const int64_t parts = c.axes[axis_].extent.value() / size;
    c.axes[axis_].extent = size;
    c.axes.insert(c.axes.begin(), Contraction::Axis{"part", parts, false});
    std::vector<IndexExpr> positions;
    for (size_t i = 0; i < whole_.axes.size(); ++i)
      positions.push_back(IndexExpr::axis(static_cast<int>(i) + 1));
    positions[axis_] = IndexExpr::axis(0) * size + positions[axis_];
    place(c, positions);
    c.out.insert(c.out.begin(), IndexExpr::axis(0));
    ValueId results = contract(std::move(c));
    return r_.build.reduce(OpKind::k_reduce_sum, results, {0}, false);
  }

  Rewriter& r_;
  const Node& node_;
  const ContractionLimits& limits_;
  Contraction whole_;
  int axis_ = -1;
  int64_t size_ = 0, results_ = 1;
};

}  // namespace

Expected<Graph> split_long_contractions(const Graph& graph, const ContractionLimits& limits) {
  return rewrite(graph, [&](Rewriter& r, const Node& node) {
    return node.op == OpKind::k_contract ? Splitter(r, node, limits).run() : kNoValue;
  });
}

}  // namespace quernel
