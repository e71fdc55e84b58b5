// Evaluation of graph values inside a kernel: a demand-driven walk from the value that is wanted, through
// elementwise nodes and index maps, down to loads of stored values. Every node becomes one Let per distinct
// index.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/ir.h"
#include "loop/ir.h"
#include "schedule/schedule.h"

namespace quernel::lower {

// The dims that a kernel gets as launch-time symbols, each once.
struct LaunchSymbols {
  std::vector<Dim> dims;
  // A constant, or the symbol of a dim.
  loop::Expr operator()(const Dim& dim);
};

// The buffers of a kernel: binding i of the item is kernel buffer i.
struct KernelBuffers {
  std::vector<loop::Buffer> buffers;
  std::unordered_map<ValueId, loop::Buffer> reads, writes;
  std::unordered_map<ValueId, loop::Expr>
      first;  // of a value of which a buffer holds a part: its element there
  loop::Buffer packed, scratch;
};
// What a value is in a kernel's registers: packed dtypes one element each in i8 and u8; the others as they
// are.
DType register_dtype(DType dtype);

// A variable whose name is unique in the kernel being lowered; restart_names begins a kernel. Names depend on
// the kernel alone, so that equal kernels print alike.
loop::Var fresh_var(const std::string& name, loop::Type type);
std::string fresh_name(const std::string& base);
void restart_names();

KernelBuffers make_buffers(const schedule::Schedule& schedule, const schedule::Item& item);

class Evaluator {
 public:
  // Axes of the iteration domain. Their loop expressions may be set later, before anything is evaluated.
  struct Axis {
    loop::Expr value;
    Dim extent = 1;
  };

  Evaluator(const schedule::Schedule& schedule, const schedule::Group& group, const KernelBuffers& buffers,
            LaunchSymbols& symbols);

  std::vector<Axis> axes;
  // Statements that the evaluated expressions need, in order; the caller moves them into the loop body.
  std::vector<loop::Stmt> statements;
  // Element offsets of all loads, for choosing loops (recorded by a dry run), and guard expressions.
  std::vector<IndexExpr> accesses, guards;
  // Ranges within which padding neither mirrors nor clamps a position (recorded by a dry run, too).
  std::vector<IndexGuard> unpadded;
  // When set: what is used instead of `loaded`, which reads the stored value `v` at `offset` (as offset_of
  // gives it).
  std::function<loop::Expr(ValueId v, const IndexExpr& offset, loop::Expr loaded)> on_load;

  // Values that the kernel has computed before and kept: one element, or one for each position of the last
  // index.
  struct Local {
    loop::Buffer buffer;
    bool each = false;
  };
  std::unordered_map<ValueId, Local> locals;

  // The value of `v` at `indices` (over the axes).
  loop::Expr evaluate(ValueId v, const std::vector<IndexExpr>& indices);
  // From here on, `v` is `value` wherever it is asked for (an accumulator at the present indices).
  void provide(ValueId v, loop::Expr value) { provided_[v] = std::move(value); }
  // The byte that holds elements `at` and `next` of a value of packed dtype, or `at` alone.
  loop::Expr packed_pair(ValueId v, const std::vector<IndexExpr>& at, const std::vector<IndexExpr>& next);
  loop::Expr packed_element(ValueId v, const std::vector<IndexExpr>& at);
  // Stores `value` as element `indices` of the stored value `v`, which is not packed.
  void store(ValueId v, const std::vector<IndexExpr>& indices, loop::Expr value);
  // Forgets lets (a new scope begins).
  void reset() { memo_.clear(), statements.clear(); }

  loop::Expr expression(const IndexExpr& e) const;
  Shape extents() const;
  // Element offset of `indices` in the storage of `v`, relative to its binding.
  IndexExpr offset_of(ValueId v, const std::vector<IndexExpr>& indices) const;
  loop::Expr name_value(std::string name, loop::Expr value);

 private:
  struct Known {
    std::vector<IndexExpr> indices;
    loop::Expr predicate;
    loop::Expr value;
  };

  loop::Expr evaluate_node(const Node& node, const std::vector<IndexExpr>& indices);
  loop::Expr place_of(ValueId v, const IndexExpr& offset) const;
  loop::Expr load_value(ValueId v, const std::vector<IndexExpr>& indices);
  loop::Expr dim_element(const Node& node, const IndexExpr& index);
  loop::Expr load_packed(const loop::Buffer& buffer, DType dtype, const IndexExpr& offset);
  loop::Expr load_element(const loop::Buffer& buffer, loop::Expr index);
  loop::Expr convert(loop::Expr x, DType from, DType to);
  loop::Expr reinterpret(const Node& node, const std::vector<IndexExpr>& indices);
  loop::Expr reinterpret_packed(const Node& node, const std::vector<IndexExpr>& indices);
  std::vector<IndexExpr> padded_indices(const Node& node, const std::vector<IndexExpr>& indices);
  loop::Expr through_map(const Node& node, const std::vector<IndexExpr>& indices);
  std::vector<IndexExpr> gather_indices(const Node& node, const std::vector<IndexExpr>& indices);
  IndexExpr dynamic_axis(ValueId index_value, const std::vector<IndexExpr>& at, const Dim& extent);

  const schedule::Schedule& schedule_;
  const Graph& graph_;
  const KernelBuffers& buffers_;
  LaunchSymbols& symbols_;
  std::vector<char> computed_;  // per value: computed in this kernel
  std::unordered_map<ValueId, loop::Expr> provided_;
  std::unordered_map<ValueId, std::vector<Known>> memo_;
  loop::Expr predicate_;
};

}  // namespace quernel::lower
