// The graph IR: SSA values over tensors and nodes of the closed core op set (ops/ops.def, CORE_OPS
// semantics). A Graph is append-only and always in topological order; a pass builds a new Graph from an old
// one (graph/rewrite.h).
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
// Elementwise ops map onto scalar operations.
std::optional<UnaryOp> unary_op(OpKind op);
std::optional<BinaryOp> binary_op(OpKind op);
OpKind op_kind(UnaryOp op);
OpKind op_kind(BinaryOp op);
bool is_elementwise(OpKind op);  // unary, binary, ternary, cast
bool is_movement(OpKind op);     // reshape … view, contiguous: one input, result is an index map of it
bool is_reduce(OpKind op);
bool is_scan(OpKind op);
bool is_winograd(OpKind op);
bool is_gather(OpKind op);
bool is_scatter(OpKind op);
bool is_control(OpKind op);   // loop, branch, on_host: nodes with bodies
bool gives_token(OpKind op);  // those and custom: result nodes read what they compute

using ValueId = int32_t;
inline constexpr ValueId kNoValue = -1;

struct TensorType {
  DType dtype = DType::kF32;
  Shape shape;
  bool operator==(const TensorType&) const = default;
};
std::string to_string(const TensorType& type);  // "f32[1,3,8,8]"

// out[map_out(p)] += a[map_a(p)] * b[map_b(p)] over all points p of the axes' box. Output axes come first and
// the output map covers every element exactly once over them; reduction axes are summed. All maps are affine
// and in bounds.
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
  bool unrounded = false;  // the result is of the accumulator's type, not rounded to that of the operands
  // 2 or 4: a 3x3 convolution computed in output tiles of that side by Winograd's algorithm; 0: as it stands.
  // The interpreter always computes it as it stands.
  int winograd = 0;
  bool operator==(const Contraction&) const = default;
};

// How pad fills: with a constant, or from the input itself.
enum class PadMode : uint8_t { kConstant, kEdge, kReflect, kWrap };

// What a scatter does with an update and what stands at its place: of several updates of one place, kSet
// keeps the last in row-major order.
enum class ScatterMode : uint8_t { kSet, kAdd, kMul, kMax, kMin };

// Attributes of a node; which are used, and what they mean, by op:
//   cast, bitcast       dtype: the result's
//   reduce_arg*         dtype: the index type of the result (i32, i64); select_last
//   constant            tensor
//   dims                shape: the elements of the result, an i64 vector
//   reshape, expand     shape: the result's. expand: same rank as the input; only dims of 1 grow
//   permute             ints: result dim i is input dim ints[i]
//   winograd_input      ints: the side of the output's tiles, 2 or 4
//   winograd_output     ints: the same, rows and columns of the result
//   slice               starts, stops, steps: per dim, 0 <= start <= stop <= dim, step >= 1; the elements
//                       start, start + step … < stop
//   flip                ints: axes
//   pad                 starts: elements before, stops: elements after, per dim, >= 0; mode; fill (kConstant)
//   view                shape: the result's; map: access of the input from the result's indices; fill where a
//                       guard fails
//   cat                 ints[0]: axis
//   reduce_*            ints: axes, ascending; keepdims; accumulator (reduce_sum, reduce_prod)
//   scan_*              ints[0]: axis; exclusive; reverse; accumulator (scan_sum, scan_prod)
//   argsort             ints[0]: axis; shape[0]: how many; descending. i64 positions along the axis, the first
//                       in order of each line; equal elements keep their order, either way
//   contract            contraction
//   take                ints[0]: axis; result = x.shape with dim `axis` replaced by the indices' shape
//   gather_elements     ints[0]: axis; result shape = index shape
//   gather_nd           ints[0]: batch_dims (ONNX GatherND)
//   scatter_*           operands template, indices, updates; ints[0], shapes of indices and updates as those of
//                       indices and result of gather_elements, take (scatter_rows) and gather_nd; scatter;
//                       unique: no two updates have the same place, and none is out of range
//   loop, branch, on_host
//                       control. The value is a token without elements; result nodes read it
//   custom              custom. The value is a token, too
//   result              of a token: ints[0]: which result; dtype, shape: its type
// Indices are i32 or i64 and negative ones count from the end. Out of range: gathers clamp into range,
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
  double fill = 0;  // exact for every dtype but i64/u64 beyond 2^53, which the importer refuses
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
  ValueId output = kNoValue;  // ops with several results get one node per result
  Attributes attributes;
  Location location;  // the source node this one came from
};

struct Value {
  std::string name;  // unique in the graph
  TensorType type;
  int32_t node = -1;  // defining node, or -1 for a graph input
};

struct Graph {
  std::string name = "main";
  std::vector<Symbol> symbols;
  // Run-time symbols and the scalars they are read from; those are used like outputs.
  struct SymbolSource {
    std::string symbol;
    ValueId value = kNoValue;
  };
  std::vector<SymbolSource> symbol_sources;
  std::vector<Value> values;
  std::vector<Node> nodes;  // topological order
  std::vector<ValueId> inputs;
  // Outputs with their public names; one value may serve several outputs, and may be an input.
  struct Output {
    std::string name;
    ValueId value = kNoValue;
  };
  std::vector<Output> outputs;
  // Variables that keep their value from run to run: an input (its value when the run begins; its name is the
  // state's) and the output that is its value when the run has ended. Neither is seen by whoever runs the
  // graph.
  struct State {
    size_t input = 0, output = 0;  // indices in `inputs` and `outputs`
    Tensor initial;                // before the first run; no bytes: zeros
  };
  std::vector<State> states;
  // The state that an input or output belongs to, or null.
  const State* state_of_input(size_t index) const;
  const State* state_of_output(size_t index) const;

  ValueId add_input(std::string name, TensorType type, Location location = {});
  // Appends a node: infers the result type and checks the op's rules. An empty name gives a fresh one; a
  // taken name gets a suffix. Diagnostics carry the node's location.
  Expected<ValueId> add(OpKind op, std::vector<ValueId> inputs, Attributes attributes = {},
                        Location location = {}, std::string name = {});

  const TensorType& type(ValueId v) const { return values[v].type; }
  const Shape& shape(ValueId v) const { return values[v].type.shape; }
  int rank(ValueId v) const { return static_cast<int>(values[v].type.shape.size()); }
  DType dtype(ValueId v) const { return values[v].type.dtype; }
  const Node* def(ValueId v) const { return values[v].node < 0 ? nullptr : &nodes[values[v].node]; }
  // The constant's data if `v` is one, else null.
  const Tensor* constant(ValueId v) const;
  // Declares a symbol (or another name like it where one is taken) and returns it as a dim. A run-time symbol
  // takes its value from `source`, a scalar integer or bool, when that has been computed.
  Dim add_symbol(Symbol symbol, ValueId source = kNoValue);
  // The symbol of that name; null where none is declared.
  const Symbol* find_symbol(std::string_view symbol_name) const;
  // Where a run-time symbol gets its value; kNoValue for others.
  ValueId symbol_source(std::string_view symbol_name) const;
  // Number of uses per value (outputs count).
  std::vector<int32_t> use_counts() const;
  // Reserves and returns `name`, or a variant of it that no value has; a fresh number for an empty one.
  std::string unique_name(std::string name);
  // Fresh numbers begin after those of `other`, so that values can take over its names.
  void continue_names(const Graph& other) { next_name_ = other.next_name_; }
  // Gives a value another name (or a variant of it that is free).
  void rename(ValueId v, const std::string& name);

 private:
  std::unordered_set<std::string> names_;
  std::unordered_map<std::string, int32_t> suffixes_;
  int32_t next_name_ = 1;
};

// What loop, branch and on_host run. A body is a graph whose inputs are the node's operands, one for one and
// of the same types: it reads nothing else from outside but symbols, which have one meaning in a graph and
// all its bodies.
//   loop    one body, again and again. Its first `carried` inputs are the same outputs of the iteration
//           before, of the same types; at first, and as the results when there is no iteration, the operands.
//           Further outputs are scanned: their results have a leading dim with one entry per iteration.
//           It ends after `count` iterations, and as soon as `condition` is 0 before one. `symbol`, of kind
//           runtime, is the number of the iteration, from 0 on, and afterwards the number of iterations.
//   branch  runs the first body where `condition` is not 0, else the second; both have outputs of the same
//   types.
//   on_host runs its one body on the processor beside the device that the graph is compiled for
//   (Target::host); it has no condition.
// A condition is in general a run-time symbol, bound before the node and, by the body of a loop, once more.
struct Control {
  std::vector<Graph> bodies;
  int carried = 0;
  std::string symbol;
  std::optional<Dim> count, condition;
};

// An operator that the compiler does not know: a function of the application, bound by name when a bundle is
// loaded, or a precompiled kernel (graph/custom_op.h). It is a pure function of its operands and attributes:
// equal nodes are merged and unused ones dropped, but nothing here can evaluate it, so it is never folded.
struct CustomOp {
  std::string name;                 // "domain::Operator"
  std::string attributes;           // "alpha=0.5;axes=[1,2]", as graph/custom_op.h says
  std::vector<TensorType> results;  // at least one
  bool operator==(const CustomOp&) const = default;
};

// ---- the op table (defined in ops/)
struct OpInfo {
  std::string_view name;
  std::string_view family;
  int min_inputs = 1, max_inputs = 1;
  // Type of the result, or what is wrong with operands or attributes.
  Expected<TensorType> (*infer)(OpKind op, const std::vector<TensorType>& inputs,
                                const Attributes& attributes) = nullptr;
};
const OpInfo& op_info(OpKind op);

// Whether a node is a movement op whose access is an index map: all but edge and reflect padding, which
// importers and passes express as a take with constant indices.
bool has_index_map(const Node& node);
// The index map of a movement op's access to its input, from the result's indices (static shapes); needs
// has_index_map. contiguous is the identity.
IndexMap index_map_of(const Graph& graph, const Node& node);
// The access of `inner` seen through `outer`: inner after outer, e.g. composing view(permute(x)). `extents`:
// the outer result's dims.
IndexMap compose(const IndexMap& inner, const IndexMap& outer, const Shape& extents);

// The attributes with symbols replaced by values.
Attributes bind_symbols(const Attributes& attributes, const std::map<std::string, int64_t>& bindings);
// Every symbol that the node's attributes and result type mention.
std::vector<Symbol> symbols_of(const Graph& graph, const Node& node);

}  // namespace quernel
