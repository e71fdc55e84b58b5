// A target: the facts about one kind of processor or GPU that scheduling, lowering and code generation need.
// Data, no behaviour. targets.def lists the files that hold the presets.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "schemas/kernel_abi.h"
#include "support/dtype.h"
#include "support/expected.h"

namespace quernel {

// One core of a CPU, for cost models. All presets have these values; a comment names the cores that a value
// comes from.
struct CoreModel {
  int64_t line_bytes = 64;            // of a cache line
  int l1_ways = 8;                    // of the L1's sets: Zen 4
  int l2_ways = 16;                   // of the L2's sets: Zen 5
  double loads_per_cycle = 2;         // of vectors, from L1: fitted on Zen 4 and Zen 5
  double fma_latency = 4;             // cycles of a vector multiply-add: fitted on Zen 4 and Zen 5
  double l2_bytes_per_cycle = 48;     // of consecutive lines: fitted to register tiles on Zen 5
  double memory_bytes_per_cycle = 6;  // of one core: from the estimates of Winograd convolutions
  double ghz = 2;                     // cycles per nanosecond, of a small core: assumed
};

struct Target {
  std::string name;         // as --target has it: "x86-64-v4", "cortex-a76+i8mm"
  std::string description;  // one line for `quernel targets`
  qnl_arch arch = QNL_ARCH_X86_64;
  std::string triple;              // LLVM's, normalised; empty for GPUs
  std::string cpu;                 // LLVM's -mcpu
  std::string features;            // LLVM's feature string, "+fma,+avx2"
  std::string abi;                 // LLVM's name of the calling convention; empty: the triple says it
  uint64_t required_features = 0;  // bits of schemas/features.def that a device must have

  int vector_bytes = 16;       // widest vector register worth using; 4: no vectors, a lane is a scalar
  int vector_registers = 16;   // architectural vector registers; without vectors: f32 registers
  int integer_registers = 0;   // without vectors: registers for integer accumulators
  bool has_f32 = true;         // f32 arithmetic in hardware, square roots included
  bool has_f64 = true;         // f64 arithmetic
  bool has_fma = false;        // fused multiply-add in hardware, for each of f32 and f64 present
  bool has_masks = false;      // predicated vector loads and stores are cheap
  bool has_gather = false;     // vector gather loads are worth using
  bool has_f16 = false;        // f16 <-> f32 conversion in hardware
  bool has_dot_u8_s8 = false;  // int8 dot product of four in one instruction: unsigned by signed
  bool has_dot_s8_s8 = false;  // the same: signed by signed
  bool has_dot_u8_u8 = false;  // the same: unsigned by unsigned
  // Products of unsigned by signed bytes, those of two neighbours added in 16 bits, are one instruction.
  bool has_dot_halves = false;
  bool has_dot_words = false;  // an operand of these may be any 32-bit word of a register, for all lanes
  bool has_dot_2x2 = false;    // two rows by two columns of eight signed bytes in one instruction
  bool has_fma_lanes = false;  // a factor of a float multiply-add may be any lane of a register
  // One instruction adds the products of all lanes of two vectors of i8 to a scalar i32; there are `lane_sums` registers
  // for such sums. 0: none.
  int lane_sums = 0;
  bool has_dot_bf16 = false;     // dot product of two bf16, accumulated in f32
  int64_t l1_bytes = 32 << 10;   // data cache of one core
  int64_t l2_bytes = 512 << 10;  // L2 of one core
  int peak_fma_per_cycle = 1;    // vector FMAs issued per cycle, for the cost model
  bool has_dot_pairs = false;    // scalars: two products of 16-bit elements and their sum in one instruction
  bool loads_signed_bytes =
      false;                  // scalars: a load widens a signed byte, at a constant distance from its pointer
  bool single_issue = false;  // one instruction a cycle: a load displaces a multiply-add
  CoreModel core;
  // Bare metal: kernels are linked into the program, with its toolchain's compiler library. No images or
  // bundles.
  bool bare_metal = false;
  // GPUs: bytes of shared memory of a workgroup; 0: not a GPU. On a GPU the lanes of a vector are
  // invocations. They cannot see one another's registers; vector_registers counts those of one invocation.
  int64_t workgroup_memory = 0;
  bool is_gpu() const { return workgroup_memory != 0; }

  // Why code differs from target to target. Passes, schedules and lowering ask for these reasons and not for a kind of
  // target.
  // The lanes of a vector are invocations: each may follow its own way and load from where it likes, but sees no
  // other's registers.
  bool lanes_are_invocations() const { return is_gpu(); }
  // Starting a kernel takes as long as much work, so that fewer kernels are better than less work.
  bool dispatch_is_dear() const { return is_gpu(); }
  // A kernel binds few buffers, of limited size each.
  bool bindings_are_few() const { return is_gpu(); }
  // Bytes of a constant that a GPU's kernel can bind, and pad to whole vectors: every Vulkan device binds at
  // least 128 MiB (maxStorageBufferRange).
  static constexpr int64_t kBindingBytes = 120 << 20;
  // Code lies in a flash that constants need: nothing has two versions, and tails share the code of whole tiles unless
  // registers are few.
  bool code_is_dear() const { return bare_metal; }
  // No intermediate result is stored just to save time.
  bool memory_is_dear() const { return bare_metal; }
  // Accumulators, elements and addresses compete for a few registers: what saves a register or an address pays.
  bool registers_are_few() const { return integer_registers != 0; }
  // Several threads or workgroups share the work of a kernel.
  bool shares_work() const { return !bare_metal; }
  // Caches lie between memory and the core, so that the order of accesses counts.
  bool has_caches() const { return !is_gpu() && !bare_metal; }

  // Hardware prefetchers follow a stream from page to page: kernels need not ask for its lines (+noprefetch).
  bool follows_streams = false;
  // Whether kernels ask for lines of memory before they read them.
  bool asks_ahead() const { return has_caches() && !follows_streams; }

  bool has_subgroups = false;  // GPUs: the invocations of a subgroup reduce their values without memory
  bool adds_f16 = false;       // GPUs: products of f16 are added in f16, a few at a time (+f16sums)
  // GPUs: matrix units multiply matrices of these dtypes (loop/ir.h, kMultiplyMatrices): floats with sums of f32, bytes of
  // equal signs with sums of i32.
  bool has_f16_matrices = false, has_bf16_matrices = false, has_int8_matrices = false;
  static constexpr int kMatrixSide = QNL_SPIRV_MATRIX_SIDE;  // rows and columns of a tile that they sum
  // Returns the steps of a sum that matrix units take at a time, of this dtype; 0: they do not multiply it.
  int matrix_steps(DType dtype) const {
    const bool multiplies = dtype == DType::kF16    ? has_f16_matrices
                            : dtype == DType::kBF16 ? has_bf16_matrices
                                                    : is_byte(dtype) && has_int8_matrices;
    return multiplies ? int{QNL_SPIRV_MATRIX_STEP_BYTES} / element_size(dtype) : 0;
  }
  // GPUs: shared memory is separate from the device's memory (OpenCL's local memory type CL_LOCAL). Many
  // small devices, and all software devices, have no such memory. If true, tiles of contractions share rows
  // there, and are chosen by an invocation's instructions, whose costs follow, in multiply-adds.
  bool local_memory = false;
  double load_multiply_adds = 4;         // a load from a binding: neighbouring lanes, neighbouring elements
  double shared_load_multiply_adds = 4;  // a load of up to four elements from shared memory, the same for all
  double barrier_multiply_adds = 16;     // a barrier, without waiting
  // GPUs, for estimates. Defaults are of the order of magnitude of a small system.
  int parallel_invocations = 8192;         // invocations that run at a time
  double flops_per_second = 500e9;         // f32; a multiply-add counts as two
  double memory_bytes_per_second = 20e9;   // of the device's memory
  double dispatch_seconds = 5e-6;          // from a kernel to the next one that depends on it
  double transfer_bytes_per_second = 8e9;  // between the memories of CPU and device
  double transfer_seconds = 30e-6;         // of an empty transfer, with submission and wait
  // GPUs: the companion CPU, for the nodes that are placed there; null: everything runs on the GPU.
  std::shared_ptr<const Target> companion;
  // Elements that a workgroup should compute: `on_cpu`, chosen so that the cost of a call is negligible, four for
  // each invocation of a GPU, or all of them where nothing shares the work.
  static constexpr int64_t kAllWork = int64_t{1} << 60;
  int64_t work_per_group(int64_t on_cpu) const {
    if (!shares_work()) return kAllWork;
    return is_gpu() ? int64_t{4} * lanes(4) : on_cpu;
  }

  // Whether one instruction computes an int8 dot product of operands of these signs.
  bool has_dot(bool a_signed, bool b_signed) const {
    return a_signed != b_signed ? has_dot_u8_s8 : a_signed ? has_dot_s8_s8 : has_dot_u8_u8;
  }
  // Whether instructions multiply floats of this narrow dtype.
  bool multiplies(DType dtype) const {
    return (dtype == DType::kBF16 && has_dot_bf16) || (dtype == DType::kF16 && adds_f16) ||
           (is_float(dtype) && matrix_steps(dtype) != 0);
  }
  int lanes(int element_bytes) const {
    return vector_bytes > element_bytes ? vector_bytes / element_bytes : 1;
  }
};

// Names of all presets, in the order of targets.def.
std::vector<std::string_view> target_names();
// Parses PRESET[+FEATURE]... [/PRESET[+FEATURE]...]: a preset with further features, for a GPU optionally
// followed by its companion CPU. "native" is the best x86-64 preset that the current machine runs, with the code option
// "noprefetch" where its prefetchers follow streams. An unknown
// name is an error that lists the legal names and the nearest one.
Expected<Target> find_target(std::string_view name);
// Features and code options that may be added to the target's name.
std::vector<std::string_view> optional_features(const Target& target);
// LLVM's flag for code that uses a feature of schemas/features.def, one bit; empty where the list has none.
std::string_view llvm_flag(qnl_arch arch, uint64_t feature);
// Whether every device that runs code for `target` also runs code for `other`, and the two can call each other.
bool runs_code_of(const Target& target, const Target& other);

}  // namespace quernel
