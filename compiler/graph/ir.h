// The graph IR: SSA values over tensors, and nodes of the closed core op set (ops/ops.def). A Graph is
// append-only and always in topological order. A pass builds a new Graph from an old one (graph/rewrite.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "graph/dim.h"
#include "graph/index_map.h"
#include "graph/tensor.h"
#include "support/dtype.h"
#include "support/expected.h"
#include "support/scalar_ops.h"

namespace quernel {

enum class OpKind : uint8_t {
#define QUERNEL_OP(name, family) k_##name,
#include "ops/ops.def"
};
std::string_view to_string(OpKind op);
std::optional<OpKind> parse_op_kind(std::string_view name);
// The scalar operation of an elementwise op, and the reverse.
std::optional<UnaryOp> unary_op(OpKind op);
std::optional<BinaryOp> binary_op(OpKind op);
OpKind op_kind(UnaryOp op);
OpKind op_kind(BinaryOp op);
bool is_elementwise(OpKind op);  // unary, binary, ternary, cast
bool is_movement(OpKind op);     // reshape … view, contiguous: the result is an index map of one input
bool is_reduce(OpKind op);
bool is_scan(OpKind op);
bool is_winograd(OpKind op);
bool is_gather(OpKind op);
bool is_scatter(OpKind op);
bool is_control(OpKind op);   // loop, branch, on_companion: nodes with bodies
bool gives_token(OpKind op);  // control ops and custom: multi-result, read by result nodes

using ValueId = int32_t;
inline constexpr ValueId kNoValue = -1;

struct TensorType {
  DType dtype = DType::kF32;
  Shape shape;
  bool operator==(const TensorType&) const = default;
};
std::string to_string(const TensorType& type);  // "f32[1,3,8,8]"

// out[map_out(p)] += a[map_a(p)] * b[map_b(p)] for all points p of the axes' extents. Output axes come first;
// over these, the output map covers every element exactly once. Reduction axes are summed. All maps are
// affine and in bounds.
struct Contraction {
  struct Axis {
    std::string name;
    Dim extent = 1;
    bool reduction = false;
    bool operator==(const Axis&) const = default;
  };
  std::vector<Axis> axes;
  std::vector<IndexExpr> a, b, out;  // one expression per dim of the operand
  DType accumulator = DType::kF32;
  bool unrounded = false;  // the result has the accumulator's dtype, not the operands'
  // 2 or 4: kernels compute this 3x3 convolution by Winograd's algorithm, in output tiles of that side.
  // 0: they compute it directly, as the interpreter always does.
  int winograd = 0;
  bool operator==(const Contraction&) const = default;
};

// How pad fills: with a constant, or from the input.
enum class PadMode : uint8_t { kConstant, kEdge, kReflect, kWrap };

// How a scatter combines an update with the element at its place. If several updates have one place, kSet
// keeps the last in row-major order.
enum class ScatterMode : uint8_t { kSet, kAdd, kMul, kMax, kMin };

// Attributes of a node. Which are used, and what they mean, by op:
//   cast, bitcast       dtype: the result's
//   reduce_arg*         dtype: the index type of the result (i32, i64); select_last
//   dequantize          operands: elements, scales and, optionally, zero points. ints: per dim, how many neighbours share
//                       a scale and a zero point. The result is f32
//   constant            tensor: the value
//   dims                shape: the elements of the result, an i64 vector
//   reshape, expand     shape: the result's. expand: same rank as the input; only dims of 1 grow
//   permute             ints: result dim i is input dim ints[i]
//   winograd_input      ints: the side of the output's tiles, 2 or 4
//   winograd_output     ints: the same, rows and columns of the result
//   slice               starts, stops, steps: per dim, 0 <= start <= stop <= dim, step >= 1; the elements
//                       start, start + step … < stop
//   flip                ints: axes
//   pad                 starts: elements before, stops: elements after, per dim, >= 0; mode; fill (kConstant)
//   view                shape: the result's; map: the input's indices from the result's; fill: the value if a
//                       guard fails
//   cat                 ints[0]: axis
//   reduce_*            ints: axes, ascending; keepdims; accumulator (reduce_sum, reduce_prod)
//   scan_*              ints[0]: axis; exclusive; reverse; accumulator (scan_sum, scan_prod)
//   argsort             ints[0]: axis; shape[0]: how many; descending. i64 positions along the axis, the
//                       first of each sorted line; equal elements keep their order, also if descending
//   contract            contraction
//   take                ints[0]: axis; result = x.shape with dim `axis` replaced by the indices' shape
//   gather_elements     ints[0]: axis; result shape = index shape
//   gather_nd           ints[0]: batch_dims (ONNX GatherND)
//   scatter_*           operands: template, indices, updates. ints[0], shapes of indices and updates: as for
//                       indices and result of gather_elements, take (scatter_rows) and gather_nd.
//                       scatter: mode. unique: no two updates have one place, none is out of range
//   loop, branch, on_companion
//                       control: the bodies. Multi-result: the value is a token, which result nodes read
//   custom              custom: the operator. Multi-result, too
//   result              ints[0]: number of the result; dtype, shape: its type. The operand is a token
// Indices are i32, i64 or u8; negative ones count from the end. Out of range, gathers clamp into range and
// scatters ignore the update.
struct Control;
struct CustomOp;
struct Attributes {
  DType dtype = DType::kF32;
  DType accumulator = DType::kF32;
  Shape shape;
  std::vector<int64_t> ints;
  Shape starts, stops;
  std::vector<int64_t> steps;
  PadMode mode = PadMode::kConstant;
  double fill = 0;  // exact, except for i64/u64 beyond 2^53, which the importer refuses
  bool keepdims = false;
  bool select_last = false;
  bool exclusive = false, reverse = false;
  bool descending = false;
  ScatterMode scatter = ScatterMode::kSet;
  bool unique = false;
  IndexMap map;
  Contraction contraction;
  Tensor tensor;
  std::shared_ptr<const Control> control;
  std::shared_ptr<const CustomOp> custom;
};

struct Node {
  OpKind op = OpKind::k_constant;
  std::vector<ValueId> inputs;
  ValueId output = kNoValue;  // exactly one; see control.h for multi-result nodes
  Attributes attributes;
  Location location;  // of the source node
};

struct Value {
  std::string name;  // unique in the graph
  TensorType type;
  int32_t node = -1;  // defining node, or -1 for a graph input
};

struct Graph {
  std::string name = "main";
  std::vector<Symbol> symbols;
  // Run-time symbols and the scalars that they are read from. These scalars count as used, like outputs.
  struct SymbolSource {
    std::string symbol;
    ValueId value = kNoValue;
  };
  std::vector<SymbolSource> symbol_sources;
  std::vector<Value> values;
  std::vector<Node> nodes;  // topological order
  std::vector<ValueId> inputs;
  // Outputs with their public names. One value may serve several outputs, and may be an input.
  struct Output {
    std::string name;
    ValueId value = kNoValue;
  };
  std::vector<Output> outputs;
  // Variables that keep their value from run to run. The input is the value when a run begins, and names the
  // state; the output is the value when the run has ended. Callers of the graph see neither.
  struct State {
    size_t input = 0, output = 0;  // indices in `inputs` and `outputs`
    Tensor initial;                // value before the first run; no bytes: zeros
  };
  std::vector<State> states;
  // Return the state that an input or output belongs to, or null.
  const State* state_of_input(size_t index) const;
  const State* state_of_output(size_t index) const;

  ValueId add_input(std::string name, TensorType type, Location location = {});
  // Appends a node: infers the result's type and checks the op's rules. An empty name becomes a fresh one; a
  // name that is taken gets a suffix. Diagnostics carry the node's location.
  Expected<ValueId> add(OpKind op, std::vector<ValueId> inputs, Attributes attributes = {},
                        Location location = {}, std::string name = {});

  const TensorType& type(ValueId v) const { return values[v].type; }
  const Shape& shape(ValueId v) const { return values[v].type.shape; }
  int rank(ValueId v) const { return static_cast<int>(values[v].type.shape.size()); }
  DType dtype(ValueId v) const { return values[v].type.dtype; }
  const Node* def(ValueId v) const { return values[v].node < 0 ? nullptr : &nodes[values[v].node]; }
  // Returns the data of a constant, or null if `v` is none.
  const Tensor* constant(ValueId v) const;
  // Declares a symbol, under a similar name if its name is taken, and returns it as a dim. A run-time symbol
  // gets its value from `source`, a scalar integer or bool, when that has been computed.
  Dim add_symbol(Symbol symbol, ValueId source = kNoValue);
  // Returns the symbol of that name, or null if none is declared.
  const Symbol* find_symbol(std::string_view symbol_name) const;
  // Returns the value that a run-time symbol is read from, or kNoValue.
  ValueId symbol_source(std::string_view symbol_name) const;
  // Returns the number of uses per value; outputs count.
  std::vector<int32_t> use_counts() const;
  // Reserves and returns `name`, or a variant of it that is free; a fresh number if it is empty.
  std::string unique_name(std::string name);
  // Lets fresh numbers begin after those of `other`, so values can take over its names.
  void continue_names(const Graph& other) { next_name_ = other.next_name_; }
  // Renames a value to `name`, or to a variant of it that is free.
  void rename(ValueId v, const std::string& name);

 private:
  std::unordered_set<std::string> names_;
  std::unordered_map<std::string, int32_t> suffixes_;
  int32_t next_name_ = 1;
};

// The bodies of a loop, branch or on_companion node. A body is a graph. Its inputs are the node's operands,
// one for one and of the same types. It reads nothing else from outside, except symbols, which have one
// meaning in a graph and all its bodies.
//   loop    runs one body repeatedly. The first `carried` outputs are the first inputs of the next iteration,
//           of the same types. The operands are the first iteration's inputs, and the results if there is
//           none. Further outputs are scanned: their results have a leading dim with one entry per iteration.
//           The loop ends after `count` iterations, or before an iteration if `condition` is 0. `symbol`, of
//           kind runtime, is the iteration's number, from 0 on, and afterwards the number of iterations.
//   branch  runs the first body if `condition` is not 0, else the second. Both give the same types.
//   on_companion
//           runs its only body on the companion CPU (Target::companion). It has no condition.
// In general a condition is a run-time symbol, bound before the node and, in a loop, again by the body.
struct Control {
  std::vector<Graph> bodies;
  int carried = 0;
  std::string symbol;
  std::optional<Dim> count, condition;
};

// An operator that the compiler does not know: a function of the application, bound by name when a bundle is
// loaded, or a precompiled kernel (graph/custom_op.h). It is a pure function of its operands and attributes.
// Equal nodes are merged and unused ones dropped, but it is never folded, because the compiler cannot
// evaluate it.
struct CustomOp {
  std::string name;                 // "domain::Operator"
  std::string attributes;           // "alpha=0.5;axes=[1,2]", as in graph/custom_op.h
  std::vector<TensorType> results;  // at least one
  bool operator==(const CustomOp&) const = default;
};

// ---- the op table, defined in ops/
struct OpInfo {
  std::string_view name;
  std::string_view family;
  int min_inputs = 1, max_inputs = 1;
  // Returns the result's type, or what is wrong with operands or attributes.
  Expected<TensorType> (*infer)(OpKind op, const std::vector<TensorType>& inputs,
                                const Attributes& attributes) = nullptr;
};
const OpInfo& op_info(OpKind op);

// Whether a node is a movement op with an index map: all except edge and reflect padding.
bool has_index_map(const Node& node);
// Returns the index map from a movement op's result to its input. Requires has_index_map. contiguous is the
// identity.
IndexMap index_map_of(const Graph& graph, const Node& node);
// Returns the composed index map of outer(inner(x)), for example of view(permute(x)). `extents`: the dims of
// the outer result.
IndexMap compose(const IndexMap& inner, const IndexMap& outer, const Shape& extents);

// Returns the attributes with symbols replaced by values.
Attributes bind_symbols(const Attributes& attributes, const std::map<std::string, int64_t>& bindings);
// Returns every symbol that the node's attributes and result type mention.
std::vector<Symbol> symbols_of(const Graph& graph, const Node& node);

}  // namespace quernel
