// A target: the facts of one kind of processor, or of GPUs, that scheduling, lowering and code generation
// need. Data, no behaviour. Presets are listed in targets.def; each lives in its own file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "support/dtype.h"
#include "support/expected.h"

namespace quernel {

enum class Arch : uint8_t { kX86_64, kAArch64, kArm, kRiscV64, kRiscV32, kSpirv };

struct Target {
  std::string name;         // what --target names, e.g. "x86-64-v4", "cortex-a76+i8mm"
  std::string description;  // one line for `quernel targets`
  Arch arch = Arch::kX86_64;
  std::string triple;              // LLVM's, normalised; empty for GPUs
  std::string cpu;                 // LLVM's -mcpu
  std::string features;            // LLVM's feature string, "+fma,+avx2"
  uint64_t required_features = 0;  // QNL_FEATURE_* bits of schemas/kernel_abi.h that a device must have

  int vector_bytes = 16;         // widest vector register worth using; 4: no vectors, a lane is a scalar
  int vector_registers = 16;     // architectural vector registers; those of f32 where there are no vectors
  int integer_registers = 0;     // where there are no vectors: those that sums of integers can have
  bool has_f32 = true;           // f32 arithmetic in hardware, square roots too
  bool has_f64 = true;           // f64 arithmetic
  bool has_fma = false;          // fused multiply-add in hardware, for what of f32 and f64 there is
  bool has_masks = false;        // predicated vector loads and stores are cheap
  bool has_gather = false;       // vector gather loads are worth using
  bool has_f16 = false;          // f16 <-> f32 conversion in hardware
  bool has_dot_u8_s8 = false;    // sums of four products of bytes in one instruction: unsigned by signed
  bool has_dot_s8_s8 = false;    // signed by signed
  bool has_dot_u8_u8 = false;    // unsigned by unsigned
  bool has_dot_bf16 = false;     // of two products of bf16, in f32
  int64_t l1_bytes = 32 << 10;   // data cache of a core
  int64_t l2_bytes = 512 << 10;  // second level of a core
  int peak_fma_per_cycle = 1;    // vector FMAs issued per cycle, for the cost model
  bool single_issue = false;     // one instruction a cycle: a load takes the place of a multiply-add
  // Kernels are linked into firmware, with the compiler library of its toolchain: no images, no bundles.
  bool firmware = false;
  // GPUs: bytes of memory that the invocations of a workgroup share. A vector's lanes are invocations there:
  // they do not see one another's registers, and vector_registers are those of one invocation. 0: no GPU.
  int64_t workgroup_memory = 0;
  bool is_gpu() const { return workgroup_memory != 0; }
  bool has_subgroups = false;  // GPUs: neighbouring invocations fold their values without memory
  // GPUs: that memory is one of its own, next to the invocations (OpenCL's local memory type CL_LOCAL), not a
  // part of the device's, which many small and all software devices have instead. Tiles of contractions share
  // rows there; what an invocation's instructions take counts for them, in multiply-adds.
  bool local_memory = false;
  double load_multiply_adds = 4;         // a load of an element from a binding, neighbours for neighbours
  double shared_load_multiply_adds = 4;  // a load from workgroup memory, up to four elements for all alike
  double barrier_multiply_adds = 16;     // a barrier that nobody is late for
  // GPUs, for estimates; without a device's own profile those of a small system, by the order of magnitude.
  int parallel_invocations = 8192;         // that run at a time
  double flops_per_second = 500e9;         // a multiply-add of f32 is two
  double memory_bytes_per_second = 20e9;   // of the device's own memory
  double dispatch_seconds = 5e-6;          // from a kernel to the next that waits for it
  double transfer_bytes_per_second = 8e9;  // between the host's memory and the device's
  double transfer_seconds = 30e-6;         // of a transfer of nothing, submission and wait included
  // GPUs: the processor beside it, for the nodes that are placed there; null: everything runs on the GPU.
  std::shared_ptr<const Target> host;
  // Elements that a workgroup computes: `on_cpu`, which makes up for calling a kernel, or four for each of a
  // GPU's invocations, which begin together.
  int64_t work_per_group(int64_t on_cpu) const { return is_gpu() ? int64_t{4} * lanes(4) : on_cpu; }

  // Whether one instruction sums four products of bytes of these signs.
  bool has_dot(bool a_signed, bool b_signed) const {
    return a_signed != b_signed ? has_dot_u8_s8 : a_signed ? has_dot_s8_s8 : has_dot_u8_u8;
  }
  // Whether one instruction multiplies floats of this dtype, narrower than f32, and sums in f32.
  bool multiplies(DType dtype) const { return dtype == DType::kBF16 && has_dot_bf16; }
  int lanes(int element_bytes) const {
    return vector_bytes > element_bytes ? vector_bytes / element_bytes : 1;
  }
};

// Names of all presets, in the order of targets.def.
std::vector<std::string_view> target_names();
// PRESET[+FEATURE]... [/PRESET[+FEATURE]...]: a preset, "native" being the best x86-64 one that the present
// host runs, with features that are not in it; for a GPU, perhaps the processor beside it. An unknown name is
// answered with those that there are and the nearest one.
Expected<Target> find_target(std::string_view name);
// The features that may be added to a target.
std::vector<std::string_view> optional_features(const Target& target);
// Whether every device that runs code for `target` runs code for `other`, too.
bool runs_code_of(const Target& target, const Target& other);

}  // namespace quernel
