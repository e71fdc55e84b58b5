// BundleReader: the checked view of a bundle in memory. open() verifies everything once. Afterwards no
// accessor can read outside the file, and no returned index is out of range. Only this class uses
// FlatBuffers.
#pragma once

#include <stdint.h>

#include "core/expression.h"
#include "core/failure.h"
#include "quernel/runtime.h"

namespace quernel::schema {
struct Bundle;
struct Tensor;
struct Plan;
struct Variant;
}  // namespace quernel::schema

namespace quernel::runtime {

// Values as in bundle.fbs.
enum class ArenaKind : uint8_t { kConstants, kWorkspace, kInput, kOutput, kState };
enum class Access : uint8_t { kRead, kWrite, kReadWrite };
enum class CodeFormat : uint8_t { kElfImage, kSpirv };
inline constexpr uint32_t kMaxCopyLoops = 4;
inline constexpr uint32_t kMaxWorkspaces = 64;  // per plan

inline constexpr uint32_t kMaxItemSymbols = 256;
inline constexpr uint32_t kMaxNesting = 32;                    // of loops and branches
inline constexpr uint64_t kMaxArenaBytes = uint64_t{1} << 46;  // far above any use, so that sums of a
inline constexpr uint64_t kMaxWorkgroups = uint64_t{1} << 48;  // few of them cannot overflow 64 bits

// Multiplies *elements by one more dim of a shape. Returns false if there would be more elements than any
// device has.
bool add_dim(int64_t dim, uint64_t* elements);

// In these views, an index of an expression is -1 if the constant next to it holds.

struct SymbolView {
  const char* name;
  int64_t min;
  int64_t max;
  int64_t multiple_of;
  bool runtime;            // it gets its value during a run
  int32_t max_expression;  // replaces max
};

struct ArenaView {
  ArenaKind kind;
  uint64_t bytes;
  uint32_t alignment;
  const void* contents;  // of constants, or the initial contents of a state; null: zeros
  int32_t bytes_expression;
  bool host_access;  // workspace, state: items on the companion CPU use it
};

struct BindingView {
  uint32_t arena;
  Access access;
  uint64_t offset;
  uint64_t bytes;
  int32_t offset_expression;
  int32_t bytes_expression;
};

struct CopyLoop {
  uint64_t count;
  uint64_t source_stride;
  uint64_t target_stride;
};

// Kinds that run a kernel.
inline bool is_dispatch(qnl_item_kind kind) {
  return kind == QNL_ITEM_DISPATCH || kind == QNL_ITEM_COMPANION_DISPATCH;
}
// Kinds that the session runs itself: a device never gets them.
inline bool is_control(qnl_item_kind kind) { return kind >= QNL_ITEM_READ_SYMBOL && kind <= QNL_ITEM_BRANCH; }
// Kinds that a device with a queue does not run on it.
inline bool leaves_device(qnl_item_kind kind) {
  return kind == QNL_ITEM_HOST_CALLBACK || kind == QNL_ITEM_COMPANION_DISPATCH;
}

// The part of an item that devices need.
struct Work {
  qnl_item_kind kind = QNL_ITEM_SYNCHRONIZE;
  uint32_t kernel = 0;
  uint64_t workgroups = 0;
  uint32_t binding_count = 0;
  uint32_t symbol_count = 0;  // numbers that the kernel receives
  uint64_t flops = 0;         // analysis, to judge whether sharing the work pays
  uint64_t bytes_read = 0;
  uint64_t bytes_written = 0;
  uint64_t copy_bytes = 0;
  uint32_t copy_loop_count = 0;
  // For kind companion_dispatch: it must come after the items with an index below `after` only.
  uint32_t after = 0;
  CopyLoop copy_loops[kMaxCopyLoops] = {};
};

struct ItemView : Work {
  const char* callback;     // "" if there is none
  const char* signature;    // of a custom op; "" otherwise
  const char* attributes;   // of a custom op
  const char* source_node;  // "" if not recorded, also for the next three
  const char* kernel_class;
  const char* key;
  const char* choice;
  int32_t flops_expression;
  int32_t bytes_read_expression;
  int32_t bytes_written_expression;
  int32_t workgroups_expression;
  int32_t copy_bytes_expression;
  int32_t symbol;  // set by the item
  qnl_dtype dtype;
  uint32_t end;
  uint32_t else_begin;
  int32_t count_expression;
  int32_t condition_expression;
};

// Returns true if a strided copy stays inside its source and its target and writes no byte twice. The latter
// also bounds its time.
bool copy_fits(const CopyLoop* loops, uint32_t count, uint64_t copy_bytes, uint64_t source_bytes,
               uint64_t target_bytes);

struct VariantView {
  const char* target;
  uint32_t arch;
  uint64_t required_features;
  CodeFormat code_format;
  const void* code;
  uint64_t code_bytes;
  uint32_t kernel_count;
  int32_t companion;  // index of the companion CPU's code, for variant(); -1: none
};

struct KernelView {
  const char* name;
  uint64_t scratch_bytes;
  uint32_t stack_bytes;  // upper bound of a call's stack; 0: unknown
};

struct EntryPointView {
  const char* name;
  uint32_t input_count;
  uint32_t output_count;
  uint32_t state_count;
};

struct TestView {
  const char* name;
  uint32_t entry;
  uint32_t tensor_count;
};

class BundleReader {
 public:
  // data: 64-byte aligned, unchanged while the reader is used.
  qnl_status open(const void* data, uint64_t bytes, qnl_error* error);
  // Checks the hashes of constants and test values, and that bytes between them are zero.
  qnl_status verify_weights(qnl_error* error) const;

  const char* producer() const;
  const char* rounding() const;  // of quantized TensorFlow Lite operators; empty: there are none
  // What the model's file said of itself.
  uint32_t property_count() const;
  const char* property_name(uint32_t index) const;
  const char* property_value(uint32_t index) const;
  uint32_t schema_version() const;
  uint64_t file_bytes() const { return bytes_; }
  uint64_t hash() const;  // covers everything in the file
  uint64_t constants_bytes() const;
  uint64_t code_bytes() const;

  uint32_t symbol_count() const;
  SymbolView symbol(uint32_t index) const;
  Expression expression(int32_t index) const;
  // Returns true if the expression uses a symbol that gets its value during a run.
  bool uses_runtime_symbols(int32_t expression) const;
  // Returns these symbols as bits `index % 64`.
  uint64_t runtime_mask(int32_t expression) const;
  // Appends "(n * 2)" to the text.
  void append_expression(TextBuilder& text, int32_t expression) const;

  uint32_t arena_count() const;
  ArenaView arena(uint32_t index) const;

  uint32_t variant_count() const;
  // Returns a variant; indices from variant_count() on are the variants' companion code.
  VariantView variant(uint32_t index) const;
  KernelView kernel(uint32_t variant, uint32_t index) const;

  uint32_t entry_point_count() const;
  EntryPointView entry_point(uint32_t index) const;
  // Describes a tensor of a signature, with data null; symbolic dims are -1, and bytes is then 0. *arena and
  // *offset (both optional) receive its place.
  void tensor(uint32_t entry, qnl_tensor_role role, uint32_t index, qnl_tensor* out, uint32_t* arena,
              uint64_t* offset) const;
  int32_t dim_expression(uint32_t entry, qnl_tensor_role role, uint32_t index, uint32_t dim) const;
  // Returns the scale of integers that stand for real numbers, scale * (integer - *zero_point); 0: they stand for
  // themselves.
  float scale(uint32_t entry, qnl_tensor_role role, uint32_t index, int32_t* zero_point) const;

  uint32_t test_count() const;
  TestView test(uint32_t index) const;
  void test_tensor(uint32_t test, uint32_t index, qnl_test_tensor* out) const;
  // Returns the index of the input or output whose value it is.
  uint32_t test_tensor_slot(uint32_t test, uint32_t index) const;

  // Returns the plan of an entry point for a variant; the next functions read it.
  const schema::Plan* plan(uint32_t entry, uint32_t variant) const;
  uint32_t item_count(const schema::Plan* plan) const;
  ItemView item(const schema::Plan* plan, uint32_t index) const;
  BindingView binding(const schema::Plan* plan, uint32_t item, uint32_t index) const;
  int32_t item_symbol(const schema::Plan* plan, uint32_t item, uint32_t index) const;
  const char* plan_text(const schema::Plan* plan) const;  // the printed schedule; "" if not recorded
  uint32_t workspace_count(const schema::Plan* plan) const;
  uint32_t workspace(const schema::Plan* plan, uint32_t index) const;

 private:
  const schema::Variant& variant_table(uint32_t index) const;
  const schema::Tensor* signature(uint32_t entry, qnl_tensor_role role, uint32_t index) const;
  qnl_status open_structure(qnl_error* error);
  void append_steps(TextBuilder& text, const Expression& expression, const uint16_t* begins, uint32_t end,
                    uint32_t depth) const;

  const uint8_t* data_ = nullptr;
  uint64_t bytes_ = 0;
  const schema::Bundle* bundle_ = nullptr;
};

}  // namespace quernel::runtime
