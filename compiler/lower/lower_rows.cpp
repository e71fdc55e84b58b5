// Groups of stages over rows: all stages of a row, then the next row. What only later stages read is in a
// buffer of one row. A GPU's invocations have the row in registers where it fits there, each its own columns,
// and what several stages read of memory, too: it is loaded once. A core takes short rows together, as many as a vector has lanes:
// one stage of all of them, then the next.
#include <algorithm>
#include <utility>

#include "lower/lane_reduction.h"

namespace quernel::lower {
namespace {

using loop::Expr;
using loop::Stmt;

class RowsLowering {
 public:
  explicit RowsLowering(Context& context)
      : c_(context),
        g_(context.graph()),
        group_(context.group),
        lanes_(group_.rows.lanes),
        in_registers_(group_.rows.in_registers) {
    const Shape& dims = g_.shape(g_.nodes[group_.anchor].inputs[0]);
    rows_.assign(dims.begin(), dims.end() - 1);
    width_ = dims.back().value();
    for (const schedule::RowLoad& load : group_.rows.kept) kept_.push_back({&load, {}});
  }

  void run() {
    const int64_t together = group_.rows.together;
    int64_t work = width_ * static_cast<int64_t>(group_.stages.size()) * together;
    Shape blocks = rows_;
    if (together > 1) blocks.back() = ceildiv(rows_.back(), together);
    c_.kernel.body = outer_loops(c_, blocks, work, group_.work.group_work, [&](const std::vector<Expr>& at) {
      return together > 1 ? block_of_rows(at) : stages(at);
    });
  }

  // All stages of one row.
  Stmt stages(std::vector<Expr> row) {
    row_ = std::move(row);
    std::vector<Stmt> body;
    known_.clear();
    for (Kept& kept : kept_) {
      kept.buffer = row_buffer(g_.dtype(kept.plan->load.value));
      body.push_back(loop::alloc(kept.buffer));
    }
    stage_ = -1;
    for (const schedule::RowStage& stage : group_.stages) {
      ++stage_;
      std::unordered_map<ValueId, Evaluator::Local> made;
      for (ValueId v : stage.locals) {
        bool each = has_columns(v);
        loop::Buffer buffer =
            each ? row_buffer(g_.dtype(v)) : local_buffer("row", g_.dtype(v), 1, loop::Scope::kShared);
        body.push_back(loop::alloc(buffer));
        made[v] = {buffer, each};
      }
      local_ = &made;
      body.push_back(stage.kind == schedule::GroupKind::kReduce ? reduce(stage) : map(stage));
      known_.insert(made.begin(), made.end());
    }
    return loop::block(std::move(body));
  }

 private:
  // A load that several stages do, and its row of registers.
  struct Kept {
    const schedule::RowLoad* plan;
    loop::Buffer buffer;
  };

  // A block of rows together, or the rows that remain.
  Stmt block_of_rows(std::vector<Expr> row) {
    const int64_t together = group_.rows.together;
    const Dim& count = rows_.back();
    const Expr first = row.back() * index(together), rest = c_.symbols(count) - first;
    row.back() = first;
    Stmt whole = stages_together(row);
    if (floormod(count, together) == Dim(0)) return whole;
    return loop::if_then(loop::binary(BinaryOp::k_ge, rest, index(together)), whole,
                         serial_loop("r", rest, [&](const Expr& r) {
                           row.back() = first + r;
                           return stages(row);
                         }));
  }

  // All stages of a block of rows from `first` on.
  Stmt stages_together(std::vector<Expr> first) {
    const int64_t together = group_.rows.together;
    row_ = std::move(first);
    std::vector<Stmt> body;
    known_.clear();
    for (const schedule::RowStage& stage : group_.stages) {
      std::unordered_map<ValueId, Evaluator::Local> made;
      for (ValueId v : stage.locals) {
        const bool each = has_columns(v);
        made[v] = {local_buffer("rows", g_.dtype(v), together * (each ? width_ : 1), loop::Scope::kShared),
                   each, nullptr};
        body.push_back(loop::alloc(made[v].buffer));
      }
      local_ = &made;
      if (stage.kind == schedule::GroupKind::kReduce)
        body.push_back(reduce_together(stage));
      else if (has_columns(g_.nodes[stage.anchor].output))
        body.push_back(serial_loop("r", index(together), [&](const Expr& r) {
          in_block_ = r;
          return map(stage);
        }));
      else
        body.push_back(over_rows([&] { return map(stage); }));
      known_.insert(made.begin(), made.end());
    }
    in_block_ = nullptr;
    return loop::block(std::move(body));
  }
  // What each row of the block has one of, in vectors.
  Stmt over_rows(const std::function<Stmt()>& of_row) {
    return vector_loop("r", index(group_.rows.together), lanes_, c_.target, [&](const Expr& r) {
      in_block_ = r;
      return of_row();
    });
  }
  // Each row of the block in one vector, then the lanes of these vectors.
  Stmt reduce_together(const schedule::RowStage& stage) {
    const Node& node = g_.nodes[stage.anchor];
    const Reducer reducer = vector_reducer_of(g_, node, c_.target);
    const int64_t together = group_.rows.together;
    loop::Buffer acc = local_buffer("acc", reducer.accumulator, together * lanes_, loop::Scope::kRegister),
                 results = local_buffer("results", reducer.accumulator, together, loop::Scope::kRegister);
    std::vector<Stmt> body{loop::alloc(acc), loop::alloc(results)};
    std::vector<Expr> vectors;
    for (int64_t r = 0; r < together; ++r) {
      in_block_ = index(r);
      for (int64_t c = 0; c < width_; c += lanes_)
        body.push_back(vector_loop("c", index(lanes_), lanes_, c_.target, [&](const Expr& lane) {
          const Expr column = index(c) + lane, slot = index(r * lanes_) + lane;
          Evaluator e = evaluator(column);
          Expr value = reducer.in_accumulator(
              e.evaluate(node.inputs[0], indices(g_.rank(node.inputs[0]), column_axis())));
          if (c > 0) value = loop::binary(reducer.op, loop::load(acc, slot), value);
          e.statements.push_back(loop::store(acc, slot, value));
          return loop::block(std::move(e.statements));
        }));
      vectors.push_back(loop::load(acc, loop::ramp(index(r * lanes_), 1, lanes_), lanes_));
    }
    body.push_back(loop::store(results, loop::ramp(index(0), 1, lanes_),
                               fold_lanes(body, reducer.op, std::move(vectors))));
    body.push_back(
        over_rows([&] { return store_result(stage, reducer.in_elements(loop::load(results, in_block_))); }));
    return loop::block(std::move(body));
  }

  bool has_columns(ValueId v) const {
    return g_.rank(v) > static_cast<int64_t>(rows_.size()) && !(g_.shape(v).back() == Dim(1));
  }
  int64_t vectors() const { return (width_ + lanes_ - 1) / lanes_; }
  loop::Buffer row_buffer(DType dtype) const {
    return in_registers_ ? local_buffer("row", dtype, vectors() * lanes_, loop::Scope::kRegister)
                         : local_buffer("row", dtype, width_, loop::Scope::kShared);
  }

  // What is used instead of an element that was just loaded.
  Expr keep(Evaluator& e, const Expr& column, ValueId v, const IndexExpr& offset, Expr loaded) {
    bool guarded = e.statements.back()->value->args.size() > 1;
    if (guarded || !uses_axis(offset, static_cast<int>(rows_.size()))) return loaded;
    auto kept = std::find_if(kept_.begin(), kept_.end(), [&](const Kept& k) {
      return k.plan->load == schedule::ElementLoad{v, offset};
    });
    if (kept == kept_.end()) return loaded;
    if (kept->plan->first != stage_) return e.name_value("x", loop::load(kept->buffer, column));
    e.statements.push_back(loop::store(kept->buffer, column, loaded));
    return loaded;
  }

  Stmt over_columns(const std::function<Stmt(Expr column)>& body) {
    return vector_loop("c", index(width_), lanes_, c_.target, body,
                       in_registers_ ? loop::AxisKind::kUnrolled : loop::AxisKind::kSerial);
  }

  Evaluator evaluator(const Expr& column) {
    Evaluator e = c_.evaluator();
    for (size_t i = 0; i < rows_.size(); ++i) {
      const bool last = i + 1 == rows_.size();
      e.axes.push_back({last && in_block_ ? row_[i] + in_block_ : row_[i], max(rows_[i], 1)});
    }
    e.axes.push_back({column, width_});
    e.locals = known_;
    for (auto& [v, local] : e.locals) local.first = first_of_row(local);
    return e;
  }
  // The element at which a local of the present row begins.
  Expr first_of_row(const Evaluator::Local& local) const {
    return in_block_ ? in_block_ * index(local.each ? width_ : 1) : nullptr;
  }
  void watch_loads(Evaluator& e, const Expr& column) {
    if (!in_registers_ || in_block_) return;
    e.on_load = [this, &e, column](ValueId v, const IndexExpr& offset, Expr loaded) {
      return keep(e, column, v, offset, std::move(loaded));
    };
  }
  // The indices of a value of `rank` dims: the row, then a column.
  std::vector<IndexExpr> indices(int64_t rank, const IndexExpr& column) const {
    std::vector<IndexExpr> result;
    for (size_t i = 0; i < rows_.size(); ++i) result.push_back(IndexExpr::axis(static_cast<int>(i)));
    if (rank > static_cast<int64_t>(rows_.size())) result.push_back(column);
    return result;
  }
  IndexExpr column_axis() const { return IndexExpr::axis(static_cast<int>(rows_.size())); }

  Stmt map(const schedule::RowStage& stage) {
    const Shape& dims = g_.shape(g_.nodes[stage.anchor].output);
    bool each = has_columns(g_.nodes[stage.anchor].output);
    auto point = [&](Expr column) {
      Evaluator e = evaluator(column);
      watch_loads(e, column);
      std::vector<IndexExpr> at =
          indices(static_cast<int64_t>(dims.size()), each ? column_axis() : IndexExpr(0));
      store_all(e, stage, at, column);
      return loop::block(std::move(e.statements));
    };
    return each ? over_columns(point) : point(index(0));
  }

  Stmt reduce(const schedule::RowStage& stage) {
    const Node& node = g_.nodes[stage.anchor];
    ValueId x = node.inputs[0];
    LaneReduction lanes(c_, vector_reducer_of(g_, node, c_.target), width_, lanes_,
                        in_registers_ ? loop::AxisKind::kUnrolled : loop::AxisKind::kReduction);
    std::vector<Stmt> body = lanes.begin();
    body.push_back(lanes.fold([] { return std::vector<TermLoop>(); },
                              [&](Expr column, std::vector<Stmt>& statements) {
                                Evaluator e = evaluator(column);
                                watch_loads(e, column);
                                Expr value = e.evaluate(x, indices(g_.rank(x), column_axis()));
                                statements = std::move(e.statements);
                                return value;
                              }));
    body.push_back(store_result(stage, lanes.result()));
    return loop::block(std::move(body));
  }

  // Stores what a stage makes of the result of its reduction.
  Stmt store_result(const schedule::RowStage& stage, const Expr& result) {
    const Node& node = g_.nodes[stage.anchor];
    Evaluator e = evaluator(index(0));
    e.provide(node.output, e.name_value("result", loop::cast(g_.dtype(node.output), result)));
    store_all(e, stage, indices(g_.rank(node.output), IndexExpr(0)), index(0));
    return loop::block(std::move(e.statements));
  }

  void store_all(Evaluator& e, const schedule::RowStage& stage, const std::vector<IndexExpr>& at,
                 const Expr& column) {
    std::vector<Expr> locals, outputs;
    for (ValueId v : stage.locals) locals.push_back(e.evaluate(v, at));
    for (ValueId v : stage.outputs) outputs.push_back(e.evaluate(v, at));
    for (size_t i = 0; i < locals.size(); ++i) {
      Evaluator::Local local = local_->at(stage.locals[i]);
      local.first = first_of_row(local);
      e.statements.push_back(loop::store(local.buffer, local.place(column), locals[i]));
    }
    for (size_t i = 0; i < outputs.size(); ++i) e.store(stage.outputs[i], at, outputs[i]);
  }

  Context& c_;
  const Graph& g_;
  const schedule::Group& group_;
  Shape rows_;
  int64_t width_ = 0;
  int lanes_;
  bool in_registers_;
  std::vector<Kept> kept_;
  int stage_ = -1;
  std::vector<Expr> row_;
  Expr in_block_;  // the row of a block of rows that starts at row_; null: none but row_ itself
  std::unordered_map<ValueId, Evaluator::Local> known_;                   // of earlier stages
  const std::unordered_map<ValueId, Evaluator::Local>* local_ = nullptr;  // of the present one
};

}  // namespace

void lower_rows(Context& context) { RowsLowering(context).run(); }

Stmt stages_of_rows(Context& context, const RowBlock& block) {
  loop::Var r = index_var("r");
  std::vector<Expr> row = block.outer;
  row.push_back(block.begin + loop::var_ref(r));
  Expr count = block.end ? loop::binary(BinaryOp::k_min, index(block.most), block.end - block.begin)
                         : index(block.most);
  return loop::for_loop(r, count, loop::AxisKind::kSerial, RowsLowering(context).stages(std::move(row)));
}

}  // namespace quernel::lower
