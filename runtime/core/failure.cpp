#include "core/failure.h"

namespace quernel::runtime {
namespace {

struct FeatureName {
  uint32_t arch;
  uint64_t bit;
  const char* name;
};
constexpr FeatureName kFeatureNames[] = {
    {QNL_ARCH_X86_64, QNL_X86_64_V1, "x86-64-v1"},
    {QNL_ARCH_X86_64, QNL_X86_64_V2, "x86-64-v2"},
    {QNL_ARCH_X86_64, QNL_X86_64_V3, "x86-64-v3"},
    {QNL_ARCH_X86_64, QNL_X86_64_V4, "x86-64-v4"},
    {QNL_ARCH_X86_64, QNL_X86_64_AVX_VNNI, "avx-vnni"},
    {QNL_ARCH_X86_64, QNL_X86_64_AVX512_VNNI, "avx512-vnni"},
    {QNL_ARCH_X86_64, QNL_X86_64_AVX512_BF16, "avx512-bf16"},
    {QNL_ARCH_X86_64, QNL_X86_64_AVX512_FP16, "avx512-fp16"},
    {QNL_ARCH_X86_64, QNL_X86_64_AVX_VNNI_INT8, "avx-vnni-int8"},
    {QNL_ARCH_X86_64, QNL_X86_64_AVX512_VBMI, "avx512-vbmi"},
    {QNL_ARCH_X86_64, QNL_X86_64_AMX_INT8, "amx-int8"},
    {QNL_ARCH_X86_64, QNL_X86_64_AMX_BF16, "amx-bf16"},
    {QNL_ARCH_AARCH64, QNL_AARCH64_NEON, "neon"},
    {QNL_ARCH_AARCH64, QNL_AARCH64_FP16, "fp16"},
    {QNL_ARCH_AARCH64, QNL_AARCH64_DOTPROD, "dotprod"},
    {QNL_ARCH_AARCH64, QNL_AARCH64_I8MM, "i8mm"},
    {QNL_ARCH_AARCH64, QNL_AARCH64_BF16, "bf16"},
    {QNL_ARCH_AARCH64, QNL_AARCH64_SVE, "sve"},
    {QNL_ARCH_AARCH64, QNL_AARCH64_SVE2, "sve2"},
    {QNL_ARCH_ARM, QNL_ARM_THUMB2, "thumb2"},
    {QNL_ARCH_ARM, QNL_ARM_VFP4_SP, "vfp4-sp"},
    {QNL_ARCH_ARM, QNL_ARM_VFP4_DP, "vfp4-dp"},
    {QNL_ARCH_ARM, QNL_ARM_DSP, "dsp"},
    {QNL_ARCH_ARM, QNL_ARM_NEON, "neon"},
    {QNL_ARCH_ARM, QNL_ARM_MVE_INT, "mve"},
    {QNL_ARCH_ARM, QNL_ARM_MVE_FP, "mve.fp"},
    {QNL_ARCH_ARM, QNL_ARM_IDIV, "idiv"},
    {QNL_ARCH_RISCV64, QNL_RISCV_GC, "gc"},
    {QNL_ARCH_RISCV64, QNL_RISCV_V, "v"},
    {QNL_ARCH_RISCV64, QNL_RISCV_ZVFH, "zvfh"},
    {QNL_ARCH_RISCV64, QNL_RISCV_VLEN256, "vlen256"},
    {QNL_ARCH_RISCV64, QNL_RISCV_VLEN512, "vlen512"},
    {QNL_ARCH_RISCV32, QNL_RISCV_GC, "gc"},
    {QNL_ARCH_RISCV32, QNL_RISCV_V, "v"},
};

struct DTypeFacts {
  const char* name;
  uint32_t bits;
};
constexpr DTypeFacts kDTypes[QNL_DTYPE_COUNT] = {
    {"f32", 32}, {"f16", 16}, {"bf16", 16}, {"f64", 64},   {"i8", 8},     {"u8", 8},
    {"i16", 16}, {"u16", 16}, {"i32", 32},  {"u32", 32},   {"i64", 64},   {"u64", 64},
    {"bool", 8}, {"i4", 4},   {"u4", 4},    {"f8e4m3", 8}, {"f8e5m2", 8},
};

}  // namespace

Failure::Failure(qnl_error* error, qnl_status status) : error_(error), status_(status) {
  if (error_ != nullptr) {
    error_->status = status;
    error_->text[0] = '\0';
  }
}

Failure& Failure::operator<<(const char* text) {
  if (error_ == nullptr || text == nullptr) return *this;
  while (*text != '\0' && used_ + 1 < sizeof error_->text) error_->text[used_++] = *text++;
  error_->text[used_] = '\0';
  return *this;
}

Failure& Failure::operator<<(uint64_t number) {
  char digits[21];
  char* p = digits + sizeof digits - 1;
  *p = '\0';
  do {
    *--p = static_cast<char>('0' + number % 10);
    number /= 10;
  } while (number != 0);
  return *this << p;
}

Failure& Failure::operator<<(int64_t number) {
  if (number >= 0) return *this << static_cast<uint64_t>(number);
  return *this << "-" << (~static_cast<uint64_t>(number) + 1);
}

void append_features(Failure& failure, uint32_t arch, uint64_t features) {
  bool first = true;
  for (uint32_t bit = 0; bit < 64; ++bit) {
    uint64_t mask = uint64_t{1} << bit;
    if ((features & mask) == 0) continue;
    if (!first) failure << " ";
    first = false;
    const char* name = nullptr;
    for (const FeatureName& known : kFeatureNames)
      if (known.arch == arch && known.bit == mask) name = known.name;
    if (name != nullptr) {
      failure << name;
    } else {
      failure << "bit-" << bit;
    }
  }
  if (first) failure << "none";
}

const char* arch_name(uint32_t arch) {
  constexpr const char* kNames[] = {"none", "x86-64", "aarch64", "arm", "riscv64", "riscv32", "spirv"};
  return arch < sizeof kNames / sizeof kNames[0] ? kNames[arch] : "unknown architecture";
}

void append_type(Failure& failure, qnl_dtype dtype, uint32_t rank, const int64_t* shape) {
  failure << qnl_dtype_name(dtype) << "[";
  for (uint32_t d = 0; d < rank && d < QNL_MAX_RANK; ++d) failure << (d == 0 ? "" : ",") << shape[d];
  failure << "]";
}

extern "C" {

const char* qnl_status_text(qnl_status status) {
  switch (status) {
    case QNL_OK:
      return "ok";
    case QNL_INVALID_ARGUMENT:
      return "invalid argument";
    case QNL_UNKNOWN_NAME:
      return "unknown name";
    case QNL_DTYPE_MISMATCH:
      return "dtype mismatch";
    case QNL_SHAPE_MISMATCH:
      return "shape mismatch";
    case QNL_SIZE_MISMATCH:
      return "size mismatch";
    case QNL_MISALIGNED:
      return "misaligned pointer";
    case QNL_OVERLAP:
      return "bound tensors overlap";
    case QNL_MEMORY_TOO_SMALL:
      return "supplied memory is too small";
    case QNL_INPUT_NOT_SET:
      return "input not set";
    case QNL_SYMBOL_OUT_OF_RANGE:
      return "symbol out of range";
    case QNL_FILE_NOT_FOUND:
      return "file not found";
    case QNL_FILE_UNREADABLE:
      return "file cannot be read";
    case QNL_OUT_OF_MEMORY:
      return "out of memory";
    case QNL_CODE_MEMORY_REFUSED:
      return "executable memory refused";
    case QNL_THREAD_FAILED:
      return "thread could not be started";
    case QNL_TIMEOUT:
      return "timeout";
    case QNL_NOT_A_BUNDLE:
      return "not a bundle";
    case QNL_WRONG_BYTE_ORDER:
      return "wrong byte order";
    case QNL_TRUNCATED:
      return "truncated bundle";
    case QNL_CORRUPT_HEADER:
      return "corrupt bundle header";
    case QNL_CORRUPT_STRUCTURE:
      return "corrupt bundle structure";
    case QNL_CORRUPT_CODE:
      return "corrupt code";
    case QNL_CORRUPT_CONSTANTS:
      return "corrupt constants";
    case QNL_NEWER_SCHEMA:
      return "bundle has a newer schema";
    case QNL_NEWER_RUNTIME_NEEDED:
      return "bundle needs a newer runtime";
    case QNL_UNKNOWN_FEATURE:
      return "bundle needs an unknown feature";
    case QNL_INVALID_BUNDLE:
      return "invalid bundle";
    case QNL_NO_MATCHING_VARIANT:
      return "no variant for this device";
    case QNL_MALFORMED_IMAGE:
      return "malformed code image";
    case QNL_KERNEL_ABI_MISMATCH:
      return "kernel ABI mismatch";
    case QNL_CUSTOM_OP_MISSING:
      return "custom op missing";
    case QNL_CUSTOM_OP_MISMATCH:
      return "custom op mismatch";
    case QNL_KERNEL_FAILED:
      return "kernel failed";
    case QNL_CALLBACK_FAILED:
      return "host callback failed";
    case QNL_CALLBACK_MISSING:
      return "host callback missing";
    case QNL_DEVICE_FAULT:
      return "device fault";
  }
  return "unknown status";
}

uint32_t qnl_runtime_version(void) { return QNL_RUNTIME_VERSION; }

uint64_t qnl_dtype_bytes(qnl_dtype dtype, uint64_t count) {
  if (static_cast<uint32_t>(dtype) >= QNL_DTYPE_COUNT) return 0;
  uint32_t bits = kDTypes[dtype].bits;
  return bits >= 8 ? count * (bits / 8) : count / 2 + count % 2;
}

const char* qnl_dtype_name(qnl_dtype dtype) {
  return static_cast<uint32_t>(dtype) < QNL_DTYPE_COUNT ? kDTypes[dtype].name : "?";
}

}  // extern "C"

}  // namespace quernel::runtime
