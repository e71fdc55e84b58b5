// The contents of a bundle as plain data: bundle_from_schedule fills it, write_bundle stores it.
// schemas/bundle.fbs defines the fields. Indices refer to the vectors of BundleContents unless a comment says
// otherwise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "schemas/kernel_abi.h"
#include "support/dtype.h"
#include "support/scale_rounding.h"

namespace quernel::bundle {

enum class SymbolKind : uint8_t { kBound, kRuntime };

// A run-time integer that sizes depend on: min <= value <= max, a multiple of multiple_of.
struct Symbol {
  std::string name;
  int64_t min = 0;
  int64_t max = 0;
  int64_t multiple_of = 1;
  SymbolKind kind = SymbolKind::kBound;
  int32_t max_expression = -1;  // runtime symbols: over bound symbols, replaces max in the range check
};

// Postfix code, two words per step {opcode, operand}; bundle.fbs lists the opcodes.
struct SizeExpression {
  std::vector<int64_t> code;
};

// Receives the bytes of a piece of constants, in order, in any number of calls.
using ByteSink = std::function<void(std::span<const std::byte>)>;

// A contiguous part of a constants segment: either `view` (not owned; must stay alive until write_bundle
// returns), or, if `produce` is set, exactly `bytes` bytes passed to the sink. Both allow writing a large
// model without a copy.
struct ConstantPiece {
  uint64_t offset = 0;
  uint64_t bytes = 0;
  std::span<const std::byte> view;
  std::function<void(const ByteSink&)> produce;
};

// Contents of a constants arena, or initial contents of a state arena. Pieces are in ascending order and do
// not overlap; bytes outside all pieces are zero.
struct ConstantsSegment {
  uint64_t bytes = 0;
  std::vector<ConstantPiece> pieces;
};

enum class ArenaKind : uint8_t { kConstants, kWorkspace, kInput, kOutput, kState };

// A memory that holds the workspace or a part of it.
struct MemoryRegion {
  std::string name;
  uint64_t capacity = 0;  // bytes; 0: no limit
};

struct Arena {
  std::string name;
  ArenaKind kind = ArenaKind::kWorkspace;
  uint64_t bytes = 0;
  uint32_t alignment = 64;  // a power of two, at most 4096
  int32_t constants = -1;  // index of a ConstantsSegment: constants arena (required), state arena (-1: zeros)
  int32_t bytes_expression = -1;  // over bound symbols: replaces bytes (workspace, input, output)
  uint32_t region = 0;            // workspace: index in BundleContents::regions; not stored
  bool host_access = false;       // workspace, state: items on the companion CPU use it
};

// An input, output or state tensor.
struct Tensor {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;              // -1: the dim is in shape_expressions
  std::vector<int32_t> shape_expressions;  // empty, or per dim an expression index or -1
  uint64_t bytes = 0;                      // unused if the shape is symbolic, unless in the workspace
  // Inputs and outputs: a separate arena of kind kInput / kOutput, at offset 0, or, for programs without a runtime, a
  // workspace.
  uint32_t arena = 0;
  uint64_t offset = 0;  // states, and inputs and outputs in the workspace
  float scale = 0;      // real = scale * (integer - zero_point); 0: integers stand for themselves
  int32_t zero_point = 0;
  ScaleRounding rounding = ScaleRounding::kEven;  // of a real number that becomes an integer; not stored
};

enum class Access : uint8_t { kRead, kWrite, kReadWrite };

struct Binding {
  uint32_t arena = 0;
  Access access = Access::kRead;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  int32_t offset_expression = -1;  // over bound symbols: replace offset and bytes
  int32_t bytes_expression = -1;
};

enum class EdgeKind : uint8_t { kRaw, kWar, kWaw, kAlias };

// The owning item comes after item `item` of the same plan, which has a lower index.
struct Edge {
  uint32_t item = 0;
  EdgeKind kind = EdgeKind::kRaw;
};

struct CopyLoop {
  uint64_t count = 1;
  uint64_t source_stride = 0;  // bytes
  uint64_t target_stride = 0;
};

enum class ItemKind : uint8_t { kDispatch, kCopy, kSynchronize, kHostCallback, kReadSymbol, kLoop, kBranch };

struct Item {
  ItemKind kind = ItemKind::kDispatch;
  uint32_t kernel = 0;      // dispatch: index into the variant's kernels
  uint64_t workgroups = 0;  // dispatch: total count of the linearised grid
  int32_t workgroups_expression = -1;
  bool may_fail = false;          // dispatch: its workgroups may be negative, which is a failure; not stored
  std::vector<Binding> bindings;  // in the order of qnl_kernel_args::bindings
  std::vector<Edge> edges;
  uint64_t copy_bytes = 0;            // copy: bytes per contiguous run, from bindings[0] to bindings[1]
  std::vector<CopyLoop> copy_loops;   // copy: outermost first, at most 4; empty for a plain 1-D copy
  std::string callback;               // host callback: its name
  std::string signature, attributes;  // host callback of a custom op: see bundle.fbs
  uint64_t live_bytes = 0;            // of the workspace while it runs; 0 inside bodies; not stored
  uint64_t multiply_adds = 0;  // dispatch: of contractions, an estimate if sizes are unknown; not stored
  uint64_t flops = 0;
  uint64_t bytes_read = 0;
  uint64_t bytes_written = 0;
  int32_t flops_expression = -1, bytes_read_expression = -1, bytes_written_expression = -1;
  std::vector<std::string> source_nodes;
  std::string kernel_class, key, choice;  // dispatch: see bundle.fbs
  std::vector<int32_t> symbols;  // dispatch, custom op: the expressions whose values it receives, in order
  int32_t copy_bytes_expression = -1;
  int32_t symbol = -1;            // read_symbol, loop: the runtime symbol that it sets
  DType dtype = DType::kF32;      // read_symbol: of the element that it reads
  uint32_t end = 0;               // loop, branch: index of the item after its last one
  bool on_companion = false;      // dispatch: on the companion CPU, a kernel of the variant's companion
  uint32_t else_begin = 0;        // branch: index of the first item of its else part; `end` if there is none
  int32_t count_expression = -1;  // loop
  int32_t condition_expression = -1;  // loop, branch
};

// The schedule of one entry point for one variant.
struct Plan {
  uint32_t variant = 0;
  std::vector<Item> items;
  std::string text;  // the printed schedule
};

struct EntryPoint {
  std::string name;
  std::vector<Tensor> inputs;
  std::vector<Tensor> outputs;
  std::vector<uint32_t> states;  // indices of BundleContents::states
  std::vector<Plan> plans;       // one per variant, in the variants' order
  std::string model_sha256;      // of the model's file; empty: unknown; not stored
  int64_t multiply_adds = 0;     // of contractions in a run, an estimate if sizes are unknown; not stored
};

struct Kernel {
  std::string name;
  uint64_t scratch_bytes = 0;
  uint32_t stack_bytes = 0;
};

enum class CodeFormat : uint8_t { kElfImage, kSpirv };

struct Variant {
  std::string target;              // as --target names it, e.g. "x86-64-v3"
  uint32_t arch = QNL_ARCH_NONE;   // qnl_arch
  uint64_t required_features = 0;  // QNL_<ARCH>_* bits
  CodeFormat code_format = CodeFormat::kElfImage;
  std::vector<std::byte> code;                // the image; equal images of several variants are stored once
  std::span<const std::byte> code_view = {};  // the same if `code` is empty
  std::vector<Kernel> kernels;                // kernel k is entry k of the image table
  int32_t companion = -1;                     // index in BundleContents::companions: the companion CPU's code

  std::span<const std::byte> image() const { return code.empty() ? code_view : code; }
};

// The tolerance of a computed output; see bundle.fbs.
struct TestTolerance {
  double rtol = 1e-3, atol = 1e-7;
  double mean_atol = -1;
  bool top1 = false;
  double max_share = 0;  // of an integer tensor's elements, that may be off by atol; not stored
};

// The value of one tensor in a test vector.
struct TestTensor {
  uint32_t tensor = 0;  // index into the entry point's inputs or outputs
  bool output = false;
  std::vector<std::byte> value;
  std::vector<int64_t> shape;
  TestTolerance tolerance;  // for outputs
};

struct TestVector {
  std::string name;
  uint32_t entry_point = 0;
  std::vector<TestTensor> tensors;
};

struct BundleContents {
  std::string
      producer;  // e.g. "quernel 0.1.0"; without time and host name, so that equal inputs give equal bytes
  std::string rounding;  // of quantized TensorFlow Lite operators; empty: there are none
  std::vector<std::pair<std::string, std::string>>
      properties;  // what the model's file says of itself, by name
  std::vector<Symbol> symbols;
  std::vector<SizeExpression> expressions;
  std::vector<ConstantsSegment> constants;
  std::vector<MemoryRegion> regions;  // not stored: devices that read bundles have one region
  std::vector<Arena> arenas;
  std::vector<Tensor> states;
  std::vector<Variant> variants;
  std::vector<Variant> companions;
  std::vector<EntryPoint> entry_points;
  std::vector<TestVector> test_vectors;

  // All images: of variants, then of companions.
  size_t image_count() const { return variants.size() + companions.size(); }
  const Variant& image(size_t i) const {
    return i < variants.size() ? variants[i] : companions[i - variants.size()];
  }
};

}  // namespace quernel::bundle
