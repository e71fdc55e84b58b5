#include "cpu/cpu_features.h"

#include "quernel/runtime.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__linux__)
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <unistd.h>
#endif

namespace quernel::runtime {
namespace {

// Each architecture has a Processor, what it says of itself, and a `has` for each of its features in
// schemas/features.def: whether the processor has it, given that it has those that the feature needs. A
// feature without one does not compile.
struct Processor;
template <uint64_t feature>
bool has(const Processor& p) = delete;

#if defined(__x86_64__)

constexpr uint32_t kHostArch = QNL_ARCH_X86_64;

struct Leaf {
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

Leaf cpuid(uint32_t leaf, uint32_t subleaf) {
  Leaf r;
  if (!__get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx)) return {};
  return r;
}

// XCR0: which register state the operating system saves. Only valid when OSXSAVE is set.
uint64_t xgetbv() {
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (static_cast<uint64_t>(high) << 32) | low;
}

bool all(uint64_t reg, uint64_t mask) { return (reg & mask) == mask; }
constexpr uint32_t bit(int n) { return uint32_t{1} << n; }

struct Processor {
  Leaf l1 = cpuid(1, 0), l7 = cpuid(7, 0), l71 = cpuid(7, 1), ext = cpuid(0x80000001u, 0);
  uint64_t xcr0 = (l1.ecx & bit(27)) != 0 ? xgetbv() : 0;
};
constexpr uint64_t kYmm = 0x6, kZmm = 0xE6, kTiles = 0x60000;  // of xcr0

// Bit numbers: Intel SDM volume 2A, CPUID; levels: x86-64 psABI, "micro-architecture levels".
template <>
bool has<QNL_X86_64_V1>(const Processor&) {
  return true;
}
// SSE3, SSSE3, CMPXCHG16B, SSE4.1, SSE4.2, POPCNT; LAHF
template <>
bool has<QNL_X86_64_V2>(const Processor& p) {
  return all(p.l1.ecx, bit(0) | bit(9) | bit(13) | bit(19) | bit(20) | bit(23)) && all(p.ext.ecx, bit(0));
}
// FMA, MOVBE, AVX, F16C; BMI1, AVX2, BMI2; LZCNT
template <>
bool has<QNL_X86_64_V3>(const Processor& p) {
  return all(p.xcr0, kYmm) && all(p.l1.ecx, bit(12) | bit(22) | bit(28) | bit(29)) &&
         all(p.l7.ebx, bit(3) | bit(5) | bit(8)) && all(p.ext.ecx, bit(5));
}
// AVX512 F, DQ, CD, BW, VL
template <>
bool has<QNL_X86_64_V4>(const Processor& p) {
  return all(p.xcr0, kZmm) && all(p.l7.ebx, bit(16) | bit(17) | bit(28) | bit(30) | bit(31));
}
template <>
bool has<QNL_X86_64_AVX_VNNI>(const Processor& p) {
  return all(p.l71.eax, bit(4));
}
template <>
bool has<QNL_X86_64_AVX512_VNNI>(const Processor& p) {
  return all(p.l7.ecx, bit(11));
}
template <>
bool has<QNL_X86_64_AVX512_BF16>(const Processor& p) {
  return all(p.l71.eax, bit(5));
}
template <>
bool has<QNL_X86_64_AVX512_FP16>(const Processor& p) {
  return all(p.l7.edx, bit(23));
}
template <>
bool has<QNL_X86_64_AVX_VNNI_INT8>(const Processor& p) {
  return all(p.l71.edx, bit(4));
}
template <>
bool has<QNL_X86_64_AVX512_VBMI>(const Processor& p) {
  return all(p.l7.ecx, bit(1));
}
template <>
bool has<QNL_X86_64_AMX_INT8>(const Processor& p) {
  return all(p.xcr0, kTiles) && all(p.l7.edx, bit(24) | bit(25));
}
template <>
bool has<QNL_X86_64_AMX_BF16>(const Processor& p) {
  return all(p.xcr0, kTiles) && all(p.l7.edx, bit(24) | bit(22));
}

#elif defined(__aarch64__)

constexpr uint32_t kHostArch = QNL_ARCH_AARCH64;

// HWCAP bits: Linux Documentation/arch/arm64/elf_hwcaps.rst.
struct Processor {
  unsigned long cap = getauxval(AT_HWCAP), cap2 = getauxval(AT_HWCAP2);
  // Bytes of an SVE register of this thread, which its threads inherit; 0: none.
  int sve_bytes = (cap >> 22 & 1) ? prctl(PR_SVE_GET_VL) & PR_SVE_VL_LEN_MASK : 0;
};

template <>
bool has<QNL_AARCH64_NEON>(const Processor&) {
  return true;
}
template <>
bool has<QNL_AARCH64_FP16>(const Processor& p) {
  return (p.cap >> 9 & 1) && (p.cap >> 10 & 1);  // FPHP, ASIMDHP
}
template <>
bool has<QNL_AARCH64_DOTPROD>(const Processor& p) {
  return p.cap >> 20 & 1;
}
template <>
bool has<QNL_AARCH64_I8MM>(const Processor& p) {
  return p.cap2 >> 13 & 1;
}
template <>
bool has<QNL_AARCH64_BF16>(const Processor& p) {
  return p.cap2 >> 14 & 1;
}
template <>
bool has<QNL_AARCH64_SVE>(const Processor& p) {
  return p.cap >> 22 & 1;
}
template <>
bool has<QNL_AARCH64_SVE2>(const Processor& p) {
  return p.cap2 >> 1 & 1;
}
template <>
bool has<QNL_AARCH64_SVE256>(const Processor& p) {
  return p.sve_bytes == 32;
}
template <>
bool has<QNL_AARCH64_SVE512>(const Processor& p) {
  return p.sve_bytes == 64;
}

#elif defined(__riscv) && __riscv_xlen == 64

constexpr uint32_t kHostArch = QNL_ARCH_RISCV64;

struct Probe {
  int64_t key;
  uint64_t value;
};

// What every core has; false where the kernel (older than Linux 6.4) cannot be asked.
bool probe_extensions(uint64_t* extensions) {
  constexpr long kRiscvHwprobe = 258;  // __NR_riscv_hwprobe, not in every <sys/syscall.h>
  Probe probe = {4, 0};                // RISCV_HWPROBE_KEY_IMA_EXT_0
  if (syscall(kRiscvHwprobe, &probe, 1, 0, nullptr, 0) != 0 || probe.key < 0) return false;
  *extensions = probe.value;
  return true;
}

// Bits: Linux Documentation/arch/riscv/hwprobe.rst. Where there is no such call, AT_HWCAP has one bit per
// single-letter extension. It cannot tell V 1.0 from its drafts, which kernels of that age only have with a
// vendor's changes.
struct Processor {
  bool v, zvfh = false;
  unsigned long vlenb = 0;  // bytes of a vector register

  Processor() {
    uint64_t extensions;
    if (probe_extensions(&extensions)) {
      v = extensions >> 2 & 1;
      zvfh = extensions >> 30 & 1;
    } else {
      v = getauxval(AT_HWCAP) >> ('v' - 'a') & 1;
    }
    // By number: assemblers know its name only where V is enabled.
    if (v) __asm__ volatile("csrr %0, 0xC22" : "=r"(vlenb));
  }
};

template <>
bool has<QNL_RISCV_GC>(const Processor&) {
  return true;
}
template <>
bool has<QNL_RISCV_V>(const Processor& p) {
  return p.v;
}
template <>
bool has<QNL_RISCV_ZVFH>(const Processor& p) {
  return p.zvfh;
}
template <>
bool has<QNL_RISCV_VLEN256>(const Processor& p) {
  return p.vlenb >= 32;
}
template <>
bool has<QNL_RISCV_VLEN512>(const Processor& p) {
  return p.vlenb >= 64;
}

#elif defined(__arm__)

constexpr uint32_t kHostArch = QNL_ARCH_ARM;

// HWCAP bits: Linux arch/arm/include/uapi/asm/hwcap.h. The M profile, with DSP and MVE, does not run Linux.
struct Processor {
  unsigned long cap = getauxval(AT_HWCAP);
};

template <>
bool has<QNL_ARM_THUMB2>(const Processor&) {
  return true;
}
template <>
bool has<QNL_ARM_VFP4_SP>(const Processor& p) {
  return p.cap >> 16 & 1;
}
template <>
bool has<QNL_ARM_VFP4_DP>(const Processor& p) {
  return p.cap >> 16 & 1;
}
template <>
bool has<QNL_ARM_DSP>(const Processor&) {
  return false;
}
template <>
bool has<QNL_ARM_NEON>(const Processor& p) {
  return p.cap >> 12 & 1;
}
template <>
bool has<QNL_ARM_MVE_INT>(const Processor&) {
  return false;
}
template <>
bool has<QNL_ARM_MVE_FP>(const Processor&) {
  return false;
}
template <>
bool has<QNL_ARM_IDIV>(const Processor& p) {
  return (p.cap >> 17 & 1) && (p.cap >> 18 & 1);
}

#else
#error "cpu_features: add this architecture"
#endif

// A template, so that the features of other architectures are not looked up.
template <class HostProcessor>
uint64_t features_of(const HostProcessor& p) {
  uint64_t f = 0;
#define QNL_FEATURE(arch, constant, bit, name, option, llvm, needs, sentence) \
  if constexpr (QNL_ARCH_##arch == kHostArch)                                 \
    if (((needs) & ~f) == 0 && has<constant>(p)) f |= constant;
#include "schemas/features.def"
  return f;
}

}  // namespace

uint32_t host_arch() { return kHostArch; }
uint64_t host_features() { return features_of(Processor()); }

}  // namespace quernel::runtime
