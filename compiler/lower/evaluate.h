// Evaluates graph values inside a kernel, on demand: walks from the requested value through elementwise nodes
// and index maps down to loads of stored values. Every node becomes one Let per distinct index.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/ir.h"
#include "loop/ir.h"
#include "schedule/schedule.h"
#include "targets/target.h"

namespace quernel::lower {

// The dims that a kernel gets as launch-time symbols, without duplicates.
struct LaunchSymbols {
  std::vector<Dim> dims;
  // Returns a constant, or the symbol of the dim, which is added if it is new.
  loop::Expr operator()(const Dim& dim);
};

// The buffers of a kernel. Binding i of the item is kernel buffer i.
struct KernelBuffers {
  std::vector<loop::Buffer> buffers;
  std::unordered_map<ValueId, loop::Buffer> reads, writes;
  std::unordered_map<ValueId, loop::Expr>
      first;  // if a buffer holds a part of a value: the element at which the part begins
  std::vector<loop::Buffer> packed;  // of Group::packed_buffers
  loop::Buffer scratch;
};
// The dtype of a value in registers: i8 or u8 for packed dtypes, one element each; otherwise the dtype
// itself.
DType register_dtype(DType dtype);

// Returns a variable, or a name, that is unique in the kernel being lowered. restart_names begins a kernel.
// Names depend on the kernel alone, so equal kernels print alike.
loop::Var fresh_var(const std::string& name, loop::Type type);
std::string fresh_name(const std::string& base);
void restart_names();
// While it lives, names are those of a dry run, whose code is discarded. Later names reuse their numbers, so
// that the names of a kernel do not depend on how its loops were chosen.
class DryNames {
 public:
  DryNames();
  ~DryNames();
  DryNames(const DryNames&) = delete;
  DryNames& operator=(const DryNames&) = delete;

 private:
  int first_;
};

KernelBuffers make_buffers(const schedule::Schedule& schedule, const schedule::Item& item,
                           const Target& target);

class Evaluator {
 public:
  // Axes of the iteration domain. Their loop expressions must be set before anything is evaluated.
  struct Axis {
    loop::Expr value;
    Dim extent = 1;
  };

  Evaluator(const schedule::Schedule& schedule, const schedule::Group& group, const KernelBuffers& buffers,
            LaunchSymbols& symbols);

  std::vector<Axis> axes;
  // Statements that evaluated expressions need, in order. The caller moves them into the loop body.
  std::vector<loop::Stmt> statements;
  // If set, replaces each load. `loaded` reads the stored value `v` at `offset` (as offset_of returns it).
  std::function<loop::Expr(ValueId v, const IndexExpr& offset, loop::Expr loaded)> on_load;

  // Values that the kernel has computed before and keeps in a buffer. `each`: one element per position of the
  // last index; else a single element. `first`: the element at which these begin; null: the buffer's first one.
  struct Local {
    loop::Buffer buffer;
    bool each = false;
    loop::Expr first;
    loop::Expr place(const loop::Expr& column) const;
  };
  std::unordered_map<ValueId, Local> locals;

  // Returns the value of `v` at `indices`, which are expressions over the axes.
  loop::Expr evaluate(ValueId v, const std::vector<IndexExpr>& indices);
  // From here on, `v` evaluates to `value` at any indices (for an accumulator at the current indices).
  void provide(ValueId v, loop::Expr value) { provided_[v] = std::move(value); }
  // Returns the byte that holds elements `at` and `next` of a value of packed dtype, or `at` alone.
  loop::Expr packed_pair(ValueId v, const std::vector<IndexExpr>& at, const std::vector<IndexExpr>& next);
  loop::Expr packed_element(ValueId v, const std::vector<IndexExpr>& at);
  // Stores `value` as element `indices` of the stored value `v`. Requires a dtype that is not packed.
  void store(ValueId v, const std::vector<IndexExpr>& indices, loop::Expr value);
  // Begins a new scope: forgets all lets.
  void reset() { memo_.clear(), statements.clear(); }

  loop::Expr expression(const IndexExpr& e) const;
  Shape extents() const;
  // Returns the element offset of `indices` in the storage of `v`, relative to its binding.
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
  std::vector<char> computed_;  // per value: whether this kernel computes it
  std::unordered_map<ValueId, loop::Expr> provided_;
  std::unordered_map<ValueId, std::vector<Known>> memo_;
  loop::Expr predicate_;
};

}  // namespace quernel::lower
