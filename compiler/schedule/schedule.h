// The schedule: fusion groups (one kernel each), the place of every stored value, constants in the layout
// that kernels read, and the order of execution with its hazards. It is plain data: the steps (steps.h) fill
// it, lowering and the bundle read it, and print_schedule.h prints it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graph/ir.h"
#include "schedule/attention/stream_plan.h"
#include "schedule/contraction/contraction_plan.h"
#include "schedule/packed_constant.h"
#include "schedule/plans/loop_plan.h"
#include "schedule/plans/rows_plan.h"
#include "schedule/plans/scatter_plan.h"
#include "schedule/plans/work_plan.h"
#include "schedule/winograd/winograd_plan.h"

namespace quernel::schedule {

enum class GroupKind : uint8_t {
  kMap,       // elementwise over one iteration space, operands through index maps
  kReduce,    // a reduction with an elementwise prologue and epilogue
  kContract,  // a contraction in register tiles with an elementwise epilogue
  kWinograd,  // a transform of the tiles of an image or of their sums, with an elementwise epilogue
  kCat,       // copies of the cat operands that their producers could not write in place
  kOrdered,   // a scan, a sort or a scatter: steps in order, with an elementwise prologue
  kRows,  // stages over one row after another: reductions along the last axis, elementwise values around them
  kAttention,  // contraction, row stages, contraction; a block of rows after another
  // a loop, a branch or an on_companion node, with its results: no kernel, but schedules of the bodies
  kControl,
  kCustom,  // a custom op with its results: its implementation gets whole, dense tensors
};
std::string_view to_string(GroupKind kind);

// A reduction or an elementwise part of a kRows group. `outputs` are stored. `locals` stay in the core,
// because only later stages of the group read them.
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
  std::vector<ValueId> outputs;  // values that it stores
  std::vector<ValueId> reads;    // stored values that it loads
  ContractionPlan contraction;   // kContract, unless winograd.tile is set
  WinogradPlan winograd;         // kContract
  WorkPlan work;
  std::vector<MapPlan> maps;  // kMap: one; kCat: one for each of `copied`
  ReducePlan reduce;          // kReduce
  LoopPlan scan;              // kOrdered: a scan's
  ScatterPlan scatter;        // kOrdered: a scatter's
  RowsPlan rows;              // kRows
  std::string key;            // of its choice in a file of choices; "": nothing can be chosen
  // kContract: the buffers of the packed vector operand: elements, then scales and zero points of a quantised one. Empty:
  // it is not packed.
  std::vector<int> packed_buffers;
  int scratch_buffer = -1;    // workspace that nothing else reads: a sort's, or that of bodies
  std::vector<int> copied;    // kCat: operands (positions) that the kernel copies
  bool on_companion = false;  // kControl: an on_companion node, whose body is scheduled for the companion CPU
  std::vector<Schedule> bodies;      // kControl
  std::vector<RowStage> stages;      // kRows
  std::vector<Group> parts;          // kAttention: kContract, kRows, kContract
  int64_t block_rows = 0;            // kAttention
  int64_t block_keys = 0;            // kAttention: elements of its rows per part; 0: all
  std::optional<StreamPlan> stream;  // kAttention of few rows
};
// Returns the kind of the kernel that computes the group: gemm, batched_gemm, gemv, conv1x1, conv3x3,
// grouped3x3, depthwise3x3, winograd, …; for other groups the group's kind.
std::string kernel_class(const Group& group);
// Returns what has been chosen about the kernel, as a file of choices says it; "" for a group without a key.
std::string choice_text(const Group& group);

enum class BufferKind : uint8_t {
  kConstant,
  kWorkspace,
  kInput,
  kOutput,
  kState,
  kBlock,  // the current block of rows of a kAttention group, inside its kernel
};

// A separate memory for a part of the workspace. The most used buffers are in the first regions.
struct Region {
  std::string name;
  int64_t capacity = 0;  // bytes; 0: no limit
  Dim bytes = 0;         // used by the plan; more than the capacity if not everything fits
  bool shared = false;   // accessible to a GPU and its companion CPU; holds what the companion CPU accesses
};

struct Buffer {
  BufferKind kind = BufferKind::kWorkspace;
  DType dtype = DType::kF32;
  Dim bytes = 0;   // over bound symbols only: run-time ones count as their bounds
  Dim offset = 0;  // in its arena (kConstant) or region (kWorkspace)
  int region = 0;  // kWorkspace: index in Schedule::regions
  int slot =
      -1;  // kInput, kOutput (kWorkspace: of these, or -1), kState: index in graph.inputs, .outputs, .states
  Tensor data;  // kConstant, unless it is packed
  std::shared_ptr<const PackedConstant> packed;
  int first_item = -1, last_item = -1;  // kWorkspace: live range over items
  int shares = -1;  // kWorkspace: the buffer that it overwrites, whose lifetime ends there
  std::string name;
};

// The place of a stored value: element index = offset + sum of indices[i] * strides[i].
struct Storage {
  int buffer = -1;
  Dim offset = 0;
  Shape strides;
  bool valid() const { return buffer >= 0; }
};

// The place of a body's input or output in the enclosing schedule: elements as in Storage, counted from byte
// `base` of one of its buffers.
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

// The memory of a kernel's binding: the elements of a stored value (or a packed constant) within a buffer.
struct Binding {
  ValueId value = kNoValue;  // kNoValue: the group's packed operand, or (written) its scratch
  int buffer = -1;
  Dim offset = 0, bytes = 0;  // within the buffer, over bound symbols only
  bool write = false;
  bool whole = false;  // every byte of it is written
};

// A dispatch of one kernel. Without a group: the reading of a run-time symbol from its one binding. Bindings:
// the group's outputs, its reads, the packed operand, its scratch. A custom op binds its operands in order,
// then its results, each dense. A loop or branch as a whole binds the outer values that its bodies read and
// write.
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
  std::vector<Storage> storage;                         // per value of the graph; invalid if not stored
  std::vector<Item> items;                              // in execution order
  std::vector<Region> regions = {{"workspace", 0, 0}};  // of the workspace; a body has one
  int64_t constant_bytes = 0;
  bool io_in_workspace = false;  // inputs and outputs are buffers of the workspace
  bool is_body = false;
  std::vector<Port> inputs, outputs;  // a body's; its constants and workspace belong to itself
};

// Returns a schedule before the first step. `regions`: the workspace's memories, fastest first; none: one
// without a limit.
Schedule empty_schedule(Graph graph, std::vector<Region> regions = {});

}  // namespace quernel::schedule
