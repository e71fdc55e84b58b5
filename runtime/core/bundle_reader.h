// BundleReader: the checked view of a bundle in memory. open() verifies everything once; after that no
// accessor can read outside the file, and no index it returns is out of range. The only place that sees
// FlatBuffers.
#pragma once

#include <stdint.h>

#include "core/failure.h"
#include "quernel/runtime.h"

namespace quernel::schema {
struct Bundle;
struct Tensor;
struct Plan;
}  // namespace quernel::schema

namespace quernel::runtime {

// Numbers as in bundle.fbs.
enum class ArenaKind : uint8_t { kConstants, kWorkspace, kInput, kOutput, kState };
enum class Access : uint8_t { kRead, kWrite, kReadWrite };
enum class CodeFormat : uint8_t { kElfImage, kSpirv };
inline constexpr uint32_t kMaxCopyLoops = 4;
inline constexpr uint32_t kMaxWorkspaces = 64;  // of one plan

struct ArenaView {
  ArenaKind kind;
  uint64_t bytes;
  uint32_t alignment;
  const void* contents;  // constants, or the initial contents of a state; null: zeros
};

struct BindingView {
  uint32_t arena;
  Access access;
  uint64_t offset;
  uint64_t bytes;
};

struct CopyLoop {
  uint64_t count;
  uint64_t source_stride;
  uint64_t target_stride;
};

struct ItemView {
  qnl_item_kind kind;
  uint32_t kernel;
  uint64_t workgroups;
  uint32_t binding_count;
  uint64_t copy_bytes;
  uint32_t copy_loop_count;
  CopyLoop copy_loops[kMaxCopyLoops];
  const char* callback;     // "" when none
  const char* source_node;  // "" when not recorded
  uint64_t flops;
  uint64_t bytes_read;
  uint64_t bytes_written;
};

struct VariantView {
  const char* target;
  uint32_t arch;
  uint64_t required_features;
  CodeFormat code_format;
  const void* code;
  uint64_t code_bytes;
  uint32_t kernel_count;
};

struct KernelView {
  const char* name;
  uint64_t scratch_bytes;
  uint32_t stack_bytes;  // upper bound of what a call takes; 0: not known
};

struct EntryPointView {
  const char* name;
  uint32_t input_count;
  uint32_t output_count;
  uint32_t state_count;
};

class BundleReader {
 public:
  // data: 64-byte aligned, unchanged while the reader is used.
  qnl_status open(const void* data, uint64_t bytes, qnl_error* error);
  // Hashes of constants and test values, and zero bytes between them.
  qnl_status verify_weights(qnl_error* error) const;

  const char* producer() const;
  uint32_t schema_version() const;
  uint64_t file_bytes() const { return bytes_; }
  uint64_t constants_bytes() const;
  uint64_t code_bytes() const;

  uint32_t arena_count() const;
  ArenaView arena(uint32_t index) const;

  uint32_t variant_count() const;
  VariantView variant(uint32_t index) const;
  KernelView kernel(uint32_t variant, uint32_t index) const;

  uint32_t entry_point_count() const;
  EntryPointView entry_point(uint32_t index) const;
  // Tensor of a signature with data null; *arena and *offset (both optional) say where it lives.
  void tensor(uint32_t entry, qnl_tensor_role role, uint32_t index, qnl_tensor* out, uint32_t* arena,
              uint64_t* offset) const;

  uint32_t item_count(uint32_t entry, uint32_t variant) const;
  ItemView item(uint32_t entry, uint32_t variant, uint32_t index) const;
  BindingView binding(uint32_t entry, uint32_t variant, uint32_t item, uint32_t index) const;
  const char* plan_text(uint32_t entry,
                        uint32_t variant) const;  // the printed schedule; "" when not recorded
  uint32_t workspace_count(uint32_t entry, uint32_t variant) const;
  uint32_t workspace(uint32_t entry, uint32_t variant, uint32_t index) const;

 private:
  const schema::Plan* plan(uint32_t entry, uint32_t variant) const;
  qnl_status open_structure(qnl_error* error);

  const uint8_t* data_ = nullptr;
  uint64_t bytes_ = 0;
  const schema::Bundle* bundle_ = nullptr;
};

}  // namespace quernel::runtime
