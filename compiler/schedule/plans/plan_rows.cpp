// Rows: a GPU's invocations keep values between stages in registers, each its own columns, where these are few;
// then also what several stages load, as far as registers last. A core's caches hold rows as well, so it does that only with
// rows of a few whole vectors, whose loops would take longer than what they repeat. Such rows are many, as a rule: a core reduces
// as many together as a vector has lanes.
#include <algorithm>
#include <bit>
#include <unordered_map>

#include "schedule/plans/access_walk.h"
#include "schedule/plans/plan_loops.h"

namespace quernel::schedule {
namespace {

constexpr int64_t kVectorsOfRow = 16;         // the most that are worth a copy of the stages each, on a GPU
constexpr int64_t kVectorsOfShortRow = 4;     // and on a core
constexpr int64_t kVectorsTogether = 64;      // of rows that are reduced together: all these are unrolled
constexpr int64_t kBytesTogether = 1 << 14;   // that stages of these rows pass on, half of a small L1
constexpr double kRegistersOfRows = 2.0 / 3;  // the others are for what is computed

class RowsPlanner {
 public:
  explicit RowsPlanner(const KernelPlace& kernel)
      : k_(kernel),
        g_(kernel.schedule.graph),
        dims_(g_.shape(g_.nodes[kernel.group.anchor].inputs[0])),
        column_(static_cast<int>(dims_.size()) - 1),
        taken_(kernel.group.stages.size(), 0) {
    plan_.lanes = lanes_of(kernel);
  }

  RowsPlan plan() {
    vectors_ = (dims_.back().value() + plan_.lanes - 1) / plan_.lanes;
    if (reduces_together()) plan_.together = plan_.lanes;
    if (plan_.lanes <= 1 || vectors_ > most_vectors()) return plan_;
    for (stage_ = 0; stage_ < static_cast<int>(k_.group.stages.size()); ++stage_)
      walk_stage(k_.group.stages[stage_]);
    plan_.in_registers = true;
    for (const auto& [v, local] : locals_)
      if (local.each && !take(g_.dtype(v), local.first, local.last)) plan_.in_registers = false;
    if (!plan_.in_registers) return plan_;
    for (const RowLoad& load : loads_) {
      if (load.first == load.last) continue;
      const DType dtype = g_.dtype(load.load.value);
      if (take(dtype, load.first, load.last))
        plan_.kept.push_back(load);
      else
        give_back(dtype, load.first, load.last);
    }
    return plan_;
  }

 private:
  // A value that stages of the kernel pass on.
  struct Local {
    bool each = false;          // an element per column; else one for the row
    int first = -1, last = -1;  // stages that compute and read it
  };

  int64_t most_vectors() const {
    if (k_.target.lanes_are_invocations()) return kVectorsOfRow;
    const bool whole = dims_.back().value() % plan_.lanes == 0;
    return whole && !k_.target.code_is_dear() ? kVectorsOfShortRow : 0;
  }
  // Whether rows are of few whole vectors, and reduced in elements whose vectors have the same lanes.
  bool reduces_together() const {
    const int64_t width = dims_.back().value();
    if (plan_.lanes <= 1 || !std::has_single_bit(static_cast<unsigned>(plan_.lanes)) ||
        k_.target.lanes_are_invocations() || k_.target.code_is_dear() || column_ < 1 ||
        width % plan_.lanes != 0 || vectors_ * plan_.lanes > kVectorsTogether)
      return false;
    const Dim& rows = dims_[static_cast<size_t>(column_ - 1)];
    const bool whole = floormod(rows, plan_.lanes) == Dim(0);
    if (!whole && (column_ > 1 || rows.bounds().hi < plan_.lanes)) return false;
    int64_t bytes = 0;
    for (const RowStage& stage : k_.group.stages) {
      const Node& node = g_.nodes[stage.anchor];
      if (stage.kind == GroupKind::kReduce && element_size(accumulator_dtype(g_, node)) != 4) return false;
      for (ValueId v : stage.locals)
        bytes += plan_.lanes * (has_columns(v) ? width : 1) * element_size(g_.dtype(v));
    }
    return bytes <= kBytesTogether;
  }
  bool has_columns(ValueId v) const { return g_.rank(v) > column_ && !(g_.shape(v).back() == Dim(1)); }

  AccessWalk walk() const {
    Shape extents;
    for (int i = 0; i < column_; ++i) extents.push_back(max(dims_[i], 1));
    extents.push_back(dims_.back());
    AccessWalk walk(k_.schedule, k_.group, extents);
    for (const auto& [v, local] : locals_) walk.locals.insert(v);
    return walk;
  }
  // The indices of a value of `rank` dims: the row, then a column.
  std::vector<IndexExpr> indices(int64_t rank, const IndexExpr& column) const {
    std::vector<IndexExpr> result;
    for (int i = 0; i < column_; ++i) result.push_back(IndexExpr::axis(i));
    if (rank > column_) result.push_back(column);
    return result;
  }

  void walk_stage(const RowStage& stage) {
    const Node& node = g_.nodes[stage.anchor];
    AccessWalk columns = walk();
    if (stage.kind == GroupKind::kReduce) {
      columns.read(node.inputs[0], indices(g_.rank(node.inputs[0]), IndexExpr::axis(column_)));
      AccessWalk result = walk();
      result.locals.insert(node.output);  // the accumulator
      read_all(result, stage, indices(g_.rank(node.output), IndexExpr(0)));
      note_locals(result);
    } else {
      const bool each = has_columns(node.output);
      read_all(columns, stage, indices(g_.rank(node.output), each ? IndexExpr::axis(column_) : IndexExpr(0)));
    }
    note_locals(columns);
    for (const ElementLoad& load : columns.unguarded) note_load(load);
    for (ValueId v : stage.locals) locals_[v] = {has_columns(v), stage_, stage_};
  }
  static void read_all(AccessWalk& walk, const RowStage& stage, const std::vector<IndexExpr>& at) {
    for (const std::vector<ValueId>* values : {&stage.locals, &stage.outputs})
      for (ValueId v : *values) walk.read(v, at);
  }
  void note_locals(const AccessWalk& walk) {
    for (ValueId v : walk.locals_read)
      if (auto local = locals_.find(v); local != locals_.end()) local->second.last = stage_;
  }
  void note_load(const ElementLoad& load) {
    if (!uses_axis(load.offset, column_)) return;
    auto known = std::find_if(loads_.begin(), loads_.end(), [&](const RowLoad& l) { return l.load == load; });
    if (known == loads_.end()) known = loads_.insert(known, {load, stage_, stage_});
    known->last = stage_;
  }

  // Takes registers for a row of this dtype from stage `first` to stage `last`; whether there are enough.
  bool take(DType dtype, int first, int last) {
    const auto room = static_cast<int64_t>(k_.target.vector_registers * kRegistersOfRows);
    bool fits = true;
    for (int s = first; s < last; ++s) {
      taken_[s] += registers(dtype);
      fits = fits && taken_[s] <= room;
    }
    return fits;
  }
  void give_back(DType dtype, int first, int last) {
    for (int s = first; s < last; ++s) taken_[s] -= registers(dtype);
  }
  int64_t registers(DType dtype) const { return vectors_ * std::max<int64_t>(1, element_size(dtype) / 4); }

  const KernelPlace& k_;
  const Graph& g_;
  const Shape& dims_;
  int column_;  // the axis of columns, behind those of the row
  RowsPlan plan_;
  int64_t vectors_ = 0;  // of a row
  int stage_ = 0;
  std::unordered_map<ValueId, Local> locals_;
  std::vector<RowLoad> loads_;
  std::vector<int64_t> taken_;  // registers, behind each stage
};

}  // namespace

RowsPlan plan_rows(const KernelPlace& kernel) { return RowsPlanner(kernel).plan(); }

}  // namespace quernel::schedule
