// The schedule: fusion groups (one kernel each), where every stored value lives, constants in the layout the
// kernels read, and the order of execution with its hazards. It is data: lowering and the bundle read it, and
// it prints.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/ir.h"
#include "graph/place_rule.h"
#include "schedule/tiling.h"
#include "support/expected.h"
#include "targets/target.h"

namespace quernel::schedule {

enum class GroupKind : uint8_t {
  kMap,       // elementwise over one iteration space, operands through index maps
  kReduce,    // a reduction, elementwise prologue and epilogue
  kContract,  // a contraction in register tiles, elementwise epilogue
  kWinograd,  // a transform of the tiles of an image or of their sums, elementwise epilogue
  kCat,       // copies of the cat operands that their producers could not write in place
  kOrdered,   // a scan, a sort or a scatter: steps in order; elementwise prologue
  kRows,  // stages over one row after the other: reductions along the last axis, elementwise values around
          // them
  kAttention,  // a contraction, stages over the rows of its result, a contraction of those: a block of rows
               // after the other
  kControl,    // a loop, a branch or what runs on the host, and its results: no kernel, but schedules of the
               // bodies
  kCustom,     // a custom op and its results: whoever computes it sees whole, dense tensors
};
std::string_view to_string(GroupKind kind);

// Depthwise sums of up to so many steps, 3x3, are unrolled whole.
constexpr int64_t kUnrolledSteps = 9;

// How windows slide over one dim of an image: position p of the output and position k of the window see
// element p * step + k * window_step, which lies `stride` after the one before; there are none, but zeros,
// outside of [begin, end).
struct Slide {
  int position = -1, window = -1;  // axes of the plan; no window: of one element
  int64_t step = 1, window_step = 0, stride = 0;
  int64_t begin = 0, end = 0;
};

// The tiling of a contraction: its axes merged as far as the strides allow and given roles. Strides in
// elements; roles are indices into `axes`. "a" is the operand that is broadcast (or, elementwise, the one
// that is read in rows), "b" the one that is read in vectors and shared by the rows of a tile.
struct ContractionPlan {
  struct Axis {
    std::string name;
    Dim extent = 1;
    bool reduction = false;
    Dim a = 0, b = 0,
        out = 0;  // strides; b's is meaningless where b is packed and the axis has several members
    std::vector<int> members;  // the contraction's axes merged into it, outermost first
  };
  std::vector<Axis> axes;
  // Per axis of the contraction: its value as an expression over `axes`.
  std::vector<IndexExpr> axis_values;
  Dim a_offset = 0, b_offset = 0;
  bool swapped = false;      // "a" is the contraction's second operand
  int vector_axis = -1;      // output axis along which vectors run; -1: none can
  bool elementwise = false;  // a is read in vectors, too (depthwise); b may be the same all along them
  // Where windows reach beyond the image or step over elements of its rows: what a block of rows needs of the
  // operand that vectors slide over ("a" where elementwise, else "b") is put together in scratch first, each
  // row in `columns.step` lines, so that what vectors read lies together.
  struct Image {
    Slide rows, columns;
    std::vector<int> planes;  // further reduction axes: images that a sum sees, each in lines of its own
  };
  std::optional<Image> staged;
  // Where a is elementwise and lies as vectors read it: how windows slide along the one axis of rows, and
  // along grid axes. Only what sees elements is summed. Rows share the elements that several of their windows
  // see.
  std::vector<Slide> windows;
  bool integers = false;  // what is added up
  bool packed = false;    // "b" is a constant, packed to [grid axes][panel][reduction][panel_n]
  // 4: a step of the sum takes four neighbours along the last reduction axis, of one byte each, as words of
  // 32 bits; packed to [grid axes][panel][reduction, its last axis / 4][panel_n][4]. 2: the same of bf16.
  // Else 1.
  int dot = 1;
  // What is added to the bytes of "a", 128 or -128, where the target has no instruction for their sign but
  // one for the other: the sums begin with what that takes away again, a row of words before each panel.
  int dot_shift = 0;
  // On a GPU with local memory: steps of the sum along its last axis whose elements of "a" the invocations of
  // a workgroup fetch together, each once, for all to read; tiles of few rows read theirs in place
  // (shares_rows). 0: all tiles do.
  int shared_steps = 0;
  // On a GPU: "a" lies in the workgroup's memory already, an attention kernel's block.
  bool rows_in_workgroup = false;
  int copy_operand =
      -1;  // contraction operand (0, 1) that must be copied first to be contiguous along the vector axis
  std::vector<int> row_axes;   // output axes that "b" does not depend on: flattened into the rows of a tile
  std::vector<int> grid_axes;  // other output axes
  std::vector<int> reduction_axes;
  Shape member_extents, member_b_strides;  // per axis of the contraction
  int lanes = 1;                           // of one vector
  int tile_m = 1;                          // rows of a register tile
  int tile_v = 1;                          // vectors of a register tile
  int panel_v = 1;                         // vectors of a panel: a multiple of tile_v, or a divisor
  TileOrder order = TileOrder::kRows;
  int64_t group_work = Tiling::kGroupWork;  // multiply-adds of a workgroup, at least
  int64_t tile_n() const { return int64_t{lanes} * tile_v; }
  int64_t panel_n() const { return int64_t{lanes} * panel_v; }
  std::string reason;  // how the tile was chosen, for people
};

// A 3x3 convolution of stride 1 as Winograd's algorithm sees it. Members are indices into the contraction's
// axes; those of extent 1 play no part.
struct WinogradForm {
  int batch = -1;                                   // -1: one image
  int group = -1;                                   // of a grouped convolution; -1: one group
  int y = -1, x = -1;                               // output positions, along which the window slides
  int window_y = -1, window_x = -1, channels = -1;  // reduced
  int columns = -1;                                 // output channels (of a group)
  // Where along y + window_y and x + window_x the operand has elements; it is zero elsewhere.
  int64_t y_begin = 0, y_end = 0, x_begin = 0, x_end = 0;
};
// The output in tiles of side `tile`, for each of which (tile + 2)^2 products of transformed inputs and
// transformed weights are summed over the channels: so many matrix products, of `block` tiles at a time.
struct WinogradPlan {
  WinogradForm form;
  int tile = 0;  // 0: the contraction is computed as it stands
  int64_t tiles_y = 0, tiles_x = 0, groups = 1, channels = 0, columns = 0;
  // Operand a: elements per step; channels are contiguous.
  Dim offset = 0, batch_stride = 0, group_stride = 0, y_stride = 0, x_stride = 0;
  int lanes = 1, tile_m = 1, tile_v = 1;  // of the register tile: tiles times vectors of output channels
  int64_t block = 1;                      // tiles that a workgroup transforms at once, a multiple of tile_m
  int64_t panels_per_group = 1;           // panels of output channels that a workgroup computes
  double cycles = 0;                      // estimated, of one core for one group of one image
  int64_t points() const { return int64_t{tile + 2} * (tile + 2); }
  int64_t panel_n() const { return int64_t{lanes} * tile_v; }
  int64_t panels() const { return (columns + panel_n() - 1) / panel_n(); }
};

// A reduction or an elementwise part of a kRows group. Values that only later stages of the group read stay
// in the core: those are in `locals`, what is stored in `outputs`.
struct RowStage {
  GroupKind kind = GroupKind::kMap;  // or kReduce
  int anchor = -1;
  std::vector<ValueId> outputs, locals;
};

struct Schedule;
struct Group {
  GroupKind kind = GroupKind::kMap;
  int anchor = -1;               // node: the reduction, contraction or cat; for kMap the first node
  std::vector<int> nodes;        // nodes computed at the group's own indices, in order (anchor included)
  std::vector<int> inlined;      // nodes evaluated inside it through index maps (movement, prologues)
  std::vector<ValueId> outputs;  // values it stores
  std::vector<ValueId> reads;    // stored values it loads
  ContractionPlan contraction;   // kContract, unless winograd.tile is set
  WinogradPlan winograd;         // kContract
  std::string contraction_text;  // kContract: by which choices of tilings are found
  int packed_buffer = -1;        // kContract: the buffer of the packed vector operand, where there is one
  int scratch_buffer = -1;       // a sort's, or of bodies: workspace that nothing else reads
  std::vector<int> copied;       // kCat: operands (positions) that the kernel copies
  bool on_host = false;          // kControl: an on_host node, whose body is scheduled for that processor
  std::vector<Schedule> bodies;  // kControl
  std::vector<RowStage> stages;  // kRows
  std::vector<Group> parts;      // kAttention: kContract, kRows, kContract
  int64_t block_rows = 0;        // kAttention
  int64_t block_keys = 0;        // kAttention: elements of its rows at a time; 0: all
};

enum class BufferKind : uint8_t {
  kConstant,
  kWorkspace,
  kInput,
  kOutput,
  kState,
  kBlock,  // of a kAttention group: its kernel holds the present block of rows
};

// A part of the workspace that is memory of its own. Hot buffers lie in the first ones.
struct Region {
  std::string name;
  int64_t capacity = 0;  // bytes; 0: no limit
  Dim bytes = 0;         // that the plan uses; more than the capacity where not all fits
  bool shared = false;   // a GPU and the processor beside it both reach it: what that one touches lies here
};

struct Buffer {
  BufferKind kind = BufferKind::kWorkspace;
  DType dtype = DType::kF32;
  Dim bytes = 0;                        // over bound symbols only: run-time ones count as their bounds
  Dim offset = 0;                       // in its arena (kConstant) or region (kWorkspace)
  int region = 0;                       // kWorkspace: of Schedule::regions
  int slot = -1;                        // kInput, kOutput, kState: index in graph.inputs, .outputs, .states
  Tensor data;                          // kConstant
  int first_item = -1, last_item = -1;  // kWorkspace: live range over items
  int shares = -1;                      // kWorkspace: written in place over this buffer, which dies there
  std::string name;
};

// Where a stored value lives: element index = offset + sum of indices[i] * strides[i].
struct Storage {
  int buffer = -1;
  Dim offset = 0;
  Shape strides;
  bool valid() const { return buffer >= 0; }
};

// Where an input or output of a body lies in the schedule around it: elements as in Storage, of the bytes
// from `base` on in one of its buffers.
struct Port {
  int buffer = -1;
  Dim base = 0, bytes = 0;  // over bound symbols only
  Dim offset = 0;
  Shape strides;
};

enum class Hazard : uint8_t { kReadAfterWrite, kWriteAfterRead, kWriteAfterWrite, kAlias };
std::string_view to_string(Hazard hazard);

struct Dependency {
  int item = 0;  // an earlier item
  Hazard hazard = Hazard::kReadAfterWrite;
};

// What a kernel's binding sees: the elements of a stored value (or a packed constant) within a buffer.
struct Binding {
  ValueId value = kNoValue;  // kNoValue: the group's packed operand, or (written) its scratch
  int buffer = -1;
  Dim offset = 0, bytes = 0;  // within the buffer, over bound symbols only
  bool write = false;
  bool whole = false;  // every byte of it is written
};

// A dispatch of one kernel; bindings: the group's outputs, its reads, the packed operand, its scratch; of a
// custom op: its operands in order, then its results, each dense. Or,
// without a group, the reading of a run-time symbol from its one binding. A loop or branch as a whole binds
// what its bodies read and write around them.
struct Item {
  int group = -1;
  std::string symbol;
  std::vector<Binding> bindings;
  std::vector<Dependency> dependencies;
  Dim flops = 0, bytes_read = 0, bytes_written = 0;
};

struct Schedule {
  Graph graph;
  std::vector<Group> groups;
  std::vector<Buffer> buffers;
  std::vector<Storage> storage;                         // per value of the graph; invalid where not stored
  std::vector<Item> items;                              // in execution order
  std::vector<Region> regions = {{"workspace", 0, 0}};  // of the workspace; a body's is one
  int64_t constant_bytes = 0;
  std::vector<Port> inputs, outputs;  // of a body; its constants and workspace are its own
};

// Bytes of `count` elements.
Dim byte_size(DType dtype, const Dim& count);
// Elements from the first to one past the last that a stored value spans.
Dim span(const Shape& dims, const Shape& strides);

// ---- the steps, in order

// For a GPU with a processor beside it: the nodes that run there become bodies of on_host nodes. The last
// rule that names a node decides; where none does, the cheapest division by estimate. Invalid where a rule
// names a node that only the GPU's side can run.
Expected<Graph> place_nodes(const Graph& graph, const Target& target, const std::vector<PlaceRule>& rules);
// Whether the rule's pattern is the name of a node.
bool names_a_node(const PlaceRule& rule, const Graph& graph);

// Convolutions that Winograd's algorithm is estimated, or chosen, to compute are marked so; for a GPU they
// become its transforms with the products between them.
Expected<Graph> choose_winograd(const Graph& graph, const Target& target, Tilings* tilings = nullptr,
                                DType precision = DType::kF32);
// Whether, for a target that multiplies `precision`, operands of this contraction are rounded to it: of those
// with large weights and sums that take neighbours. Winograd's algorithm, whose transforms add to rounding
// errors, keeps f32.
bool rounds_operands(const Graph& graph, const Node& node, const Target& target, DType precision);
// Rounds them; the sums stay f32.
Expected<Graph> round_operands(const Graph& graph, const Target& target, DType precision);
// Operands that a contraction kernel cannot read in place get an explicit copy: non-affine accesses, guarded
// ones that it does not stage, and vector operands that are not contiguous along the vector axis.
//   contract(q, k) -> contract(q, contiguous(permute(k)))
Expected<Graph> materialize_operands(const Graph& graph, const Target& target);
// Fusion: which nodes share a kernel, and which values are stored.
Expected<Schedule> form_groups(Graph graph, const Target& target);
// Groups that follow one another and work on the same rows become one kernel where nothing but its own later
// stages reads what the earlier ones compute:  reduce_max, map exp, reduce_sum, map div -> rows
// Rows that are longer than what a GPU's workgroup shares have the groups that they are made of as parts.
void form_rows(Schedule& schedule, const Target& target);
// Rows that have parts become these again, and shorter chains of them.
void split_long_rows(Schedule& schedule, const Target& target);
// Softmax(q k) v becomes one kernel without the matrix of scores:
//   contract(q, k), rows, contract(that, v) -> attention
// `schedule.inputs` must be known.
// On a GPU whose workgroups hold only a part of a row of scores, parts of keys follow one another, and what
// has been summed is scaled whenever a row's largest score changes (M. Milakov, N. Gimelshein, "Online
// normalizer calculation for softmax", 2018). Rows that none of it takes, and that are too long for a
// workgroup, become kernels of their own again.
void form_attention(Schedule& schedule, const Target& target);
// Whether the plan's tiles run over rows of the value that the contraction accesses at `indices`: row tiles
// along the last dim but one, a grid over some before it, vectors along something else.
bool follows_rows(const ContractionPlan& plan, const std::vector<IndexExpr>& indices);
// What an attention kernel keeps of its rows of scores, in bytes of a GPU's workgroup.
struct ScoreRows {
  Dim width = 0;
  bool in_place = false;    // the last stage writes over the scores
  bool in_parts = false;    // the stages are a softmax
  int64_t block_bytes = 0;  // of each row of a block
  int64_t row_bytes = 0;    // of the row that goes through the stages
  // Without an attention kernel: those of the rows, and how often these write and read as much as all scores.
  int kernels = 1, passes = 2;
};
ScoreRows score_rows(const Graph& graph, const Group& rows, ValueId scores);
// A softmax of `x` along rows, for which it is enough to see a part of the row at a time.
struct RowSoftmax {
  ValueId x = kNoValue;         // the scores, or what is computed of each of them for itself
  bool hidden_is_zero = false;  // weights of a row without a finite score; else they are NaN
};
// What the stages of `rows` do to scores, where that is just a softmax.
//   max = reduce_max x; e = exp(x - max); weights = e / reduce_sum e
//   or = e * recip reduce_sum e, with 0 in place of a max of -inf, and then with 1 in place of a sum of 0
std::optional<RowSoftmax> row_softmax(const Graph& graph, const Group& rows, ValueId scores);

struct AttentionBlock {
  int64_t rows = 0;  // 0: none fits a workgroup's memory
  int64_t keys = 0;  // of a row at a time; 0: all
};
// The block of an attention kernel, and both contractions with tiles for it.
AttentionBlock plan_block(ContractionPlan& scores, ContractionPlan& result, const ScoreRows& rows,
                          const Target& target);
// Whether one kernel is estimated to take less time than three.
bool attention_pays(const ContractionPlan& scores, const ContractionPlan& result, const ScoreRows& rows,
                    const Target& target);
// Buffers and strides of stored values; cat operands are written in place where they can be; packs constants.
class Packings;
Status assign_storage(Schedule& schedule, const Target& target, Packings& packings);
// Whether an argsort finds the first elements of its lines by a heap: a known number of them. In firmware
// only for lines of known length of elements of one word, and where that takes no more memory than a merge
// sort.
bool selects_first(const Graph& graph, const Node& argsort, const Target& target);
// Numbers of i64 of an element in that heap: 1 where its key and its position fit in one, else 2.
int selection_words(const Graph& graph, const Node& argsort);
// Elements of the scratch buffer, for each line: those of a binary tree that holds `kept`.
int64_t selection_slots(int64_t kept);
// States' next values are written over the present ones where everything that reads those has been computed,
// or reads just the element that it writes. Returns the states where that is not so: indices in graph.states.
std::vector<size_t> place_states(Schedule& schedule);
// Schedules of all bodies, in the storage that their inputs and outputs have been given. A carried value
// lives in two slots: iteration i reads slot i mod 2 and writes the other; the initial value is written to
// slot 0.
Status schedule_bodies(Schedule& schedule, const Target& target, Packings& packings);
// Items with analysis and hazards, live ranges and arena offsets.
Status plan_memory(Schedule& schedule);

// Before the steps: every output gets a value of its own that a kernel or body writes, and so does what a
// body reads and carries, and what a custom op reads; every node that gives a token gets all of its results.
Expected<Graph> give_values_storage(const Graph& graph, bool is_body);
// Elements from one slot of a carried value to the other.
Dim slot_elements(const TensorType& type);
// Whether the node is a result that its loop carries.
bool is_carried(const Graph& graph, const Node& node);
// Whether the node is a result of a custom op.
bool is_custom_result(const Graph& graph, const Node& node);
// Of a custom op, for whoever computes it: the dims of all operands, then of all results, in order; and its
// dtypes and ranks, "f32[?,?],i64[?]->f32[?,?]".
Shape custom_dims(const Graph& graph, const Node& node);
std::string custom_signature(const Graph& graph, const Node& node);
// The graph with a further operand, the last, of every custom op that has a kernel: its attributes, as text
// with a terminating zero, u8[length].
Expected<Graph> give_kernels_attributes(Graph graph,
                                        const std::function<bool(const std::string& name)>& has_kernel);

// Whether the group may write `result` over `operand`, which has the same strides: it reads each element of
// it just before it writes that very element, or it is a scatter into it.
bool may_write_over(const Schedule& schedule, const Group& group, ValueId operand, ValueId result);
// The buffer over which, perhaps through others, `buffer` is written in place.
int root_buffer(const Schedule& schedule, int buffer);
// Whether two stored values live at the same place.
bool same_place(const Schedule& schedule, ValueId a, ValueId b);

// How constants have been packed so far, by their contents and order: schedules of one bundle that share this
// pack equal weights alike, so that they are stored once. `tilings`: choices for their contractions, may be
// null.
class Packings {
 public:
  explicit Packings(Tilings* tilings = nullptr) : tilings_(tilings) {}
  // Those of the processor beside the GPU that the others are for.
  Packings& of_host() {
    if (!host_) host_ = std::make_unique<Packings>(tilings_);
    return *host_;
  }
  Tilings* tilings() const { return tilings_; }
  // The vectors of a panel; `wanted` becomes those where the constant is new.
  int panel_v(const Tensor& data, const std::string& order, int wanted);

 private:
  struct Known {
    Tensor data;
    std::string order;
    int panel_v;
  };
  Tilings* tilings_;
  std::unordered_multimap<size_t, Known> known_;  // by hash
  std::unique_ptr<Packings> host_;
};

// All steps. `regions`: the workspace's memory, fastest first; none: one without limit. `inputs` and
// `outputs`: of a body.
Expected<Schedule> make_schedule(Graph graph, const Target& target, Packings& packings,
                                 std::vector<Region> regions = {}, std::vector<Port> inputs = {},
                                 std::vector<Port> outputs = {});

// Bytes of the workspace that hold something while an item runs, per item; at least so many are needed.
std::vector<int64_t> live_bytes(const Schedule& schedule);

// A table of groups, buffers and items.
std::string print(const Schedule& schedule);

// Tiling of the contraction `node`. `a`, `b`, `out` strides: elements per step of each dim of the operand as
// stored.
struct OperandAccess {
  ValueId base = kNoValue;         // the stored value that is read
  std::vector<IndexExpr> indices;  // of the base, over the contraction's axes
  std::vector<IndexGuard> guards;  // outside of which an element is `fill`, where there are any
  double fill = 0;                 // NaN: different fills
  bool affine = false;
  bool direct() const { return affine && guards.empty(); }
};
// The operand seen through its movement ops. `operand` is 0 or 1.
OperandAccess resolve_operand(const Graph& graph, const Node& contract, int operand);
// Strides of an operand along the contraction's axes, from the strides of its stored value.
struct OperandStrides {
  Shape axis;
  Dim offset = 0;
  bool constant = false;
  DType dtype = DType::kF32;
  std::vector<char> copyable;  // per axis: a permuted copy would be contiguous along it
  // Per axis: the dim of the stored value that it walks, and by what steps; -1: none, -2: several.
  std::vector<int> dim;
  Shape step;
  Shape dim_strides;
  std::vector<IndexGuard> guards;  // outside of which elements are zero; where staged, or read by windows
};
OperandStrides operand_strides(const Graph& graph, const OperandAccess& access, const Shape& dim_strides,
                               const Dim& offset, size_t axes);
// Products that a step of a sum takes at a time where operands of these dtypes lie in words of 32 bits.
int dot_width(DType a, DType b, DType accumulator, const Target& target);
struct PlanOptions {
  bool may_copy = false;  // an operand may be copied first; else vector_axis is -1 where one had to be
  int panel_v = 0;  // the width of panels that the tile has to fit; 0: panels become as wide as the tile
};
ContractionPlan plan_contraction(const Contraction& contraction, const OperandStrides& a,
                                 const OperandStrides& b, const Target& target,
                                 const PlanOptions& options = {});
// The register tiles that the kernel may have, of the fewest estimated cycles first. `panel_v`: those that
// fit panels of so many vectors; 0: all.
std::vector<Tiling> tilings(const ContractionPlan& plan, const Target& target, int panel_v = 0);
Tiling tiling_of(const ContractionPlan& plan);
// The plan with another tiling, one of `tilings` in any order and with any work of a group; panels are as
// wide as the tile, unless those of `panel_v` vectors fit.
void set_tiling(ContractionPlan& plan, const Tiling& tiling, int panel_v = 0);
// The contraction in terms of its plan's axes, extent:a:b:out (without b where it is packed), as a file of
// choices names it:
//   gemm f32*f32 packed rows 49:512:1024 columns 1024:0:1 reduce 512:1:0
std::string contraction_text(const Graph& graph, const Node& contract, const ContractionPlan& plan);
// What kind of kernel computes the group: gemm, batched, gemv, conv1x1, conv3x3, grouped3x3, depthwise,
// winograd…; else the group's kind.
std::string kernel_class(const Group& group);
// The constant vector operand in packed order: [grid axes it depends on][panel][reduction axes][panel_n],
// zero-filled.
Tensor pack_operand(const Tensor& data, const ContractionPlan& plan);
// Stride of grid axis `axis` in the packed operand, in elements; 0 where it does not depend on it.
Dim packed_stride(const ContractionPlan& plan, int axis);
Dim panel_count(const ContractionPlan& plan);
Dim column_tile_count(const ContractionPlan& plan);
// Whether results lie contiguous along the rows of tiles and not along their columns, so that tiles are
// turned round before they are stored.
bool turns_tiles(const ContractionPlan& plan, const Target& target);
// The vectors of a row of a register tile: whole ones, then perhaps a short one.
struct TileVectors {
  int vectors = 0, short_lanes = 0;
  bool operator==(const TileVectors&) const = default;
};
// Of the last tile of columns, where it has fewer than the others and is worth code of its own.
std::optional<TileVectors> rest_of_columns(const ContractionPlan& plan, const Target& target);
// Whether workgroups have the elements of a that a tile needs in memory of their own, `shared_steps` at a
// time.
bool shares_rows(const ContractionPlan& plan);
// From one step's elements there to the next one's: the tile's rows as many as whole fetches bring, and a
// gap, so that steps begin in different banks.
int64_t shared_pitch(const ContractionPlan& plan);
// Seconds that the tiles take on a GPU, by estimate. `workgroups`: that share them; 0: each tile has its own.
double contraction_seconds(const ContractionPlan& plan, const Target& target, double workgroups = 0);
Dim reduction_count(const ContractionPlan& plan);
// Rows of panel_n elements, or words, of a panel.
Dim panel_rows(const ContractionPlan& plan);
// How windows slide along the rows of a tile, which share what they see of a then; null where none do.
const Slide* windows_along_rows(const ContractionPlan& plan);
Dim row_count(const ContractionPlan& plan);

// The contraction as Winograd's algorithm sees it, nullopt where it does not apply. `any_order`: also where
// channels are not contiguous, which no kernel reads.
std::optional<WinogradForm> winograd_form(const Graph& graph, const Node& contract, bool any_order = false);
// `a`: strides of the first operand. `tile`: 2 or 4. `panel_v`: vectors of a panel of the weights; 0: free.
WinogradPlan plan_winograd(const Contraction& contraction, const WinogradForm& form, int tile,
                           const OperandStrides& a, const Target& target, int panel_v = 0);
// The tilings of the algorithm with the plan's output tiles, of the fewest estimated cycles first, each with
// its best block.
std::vector<Tiling> tilings(const WinogradPlan& plan, const Target& target);
Tiling tiling_of(const WinogradPlan& plan);
// Whether the tile and the block are possible.
bool is_legal(const WinogradPlan& plan, const Target& target, const Tiling& tiling);
void set_tiling(WinogradPlan& plan, const Tiling& tiling);
// A convolution that may be computed so, as a file of choices names it:
//   winograd f32 image 56x56 channels 64 columns 64
std::string contraction_text(const Contraction& contraction, const WinogradForm& form);
// The weights, transformed: [panel][point][channel][panel_n], zero-filled. `b`: strides of the weights.
Tensor winograd_weights(const Tensor& data, const WinogradPlan& plan, const OperandStrides& b);

}  // namespace quernel::schedule
