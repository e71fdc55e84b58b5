#include "cpu/cpu_features.h"

#include "quernel/runtime.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__linux__)
#include <sys/auxv.h>
#include <unistd.h>
#endif

namespace quernel::runtime {

#if defined(__x86_64__)

namespace {

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

bool all(uint32_t reg, uint32_t mask) { return (reg & mask) == mask; }
constexpr uint32_t bit(int n) { return uint32_t{1} << n; }

}  // namespace

uint32_t host_arch() { return QNL_ARCH_X86_64; }

// Bit numbers: Intel SDM volume 2A, CPUID; levels: x86-64 psABI, "micro-architecture levels".
uint64_t host_features() {
  uint64_t f = QNL_X86_64_V1;
  Leaf l1 = cpuid(1, 0), l7 = cpuid(7, 0), l71 = cpuid(7, 1), ext = cpuid(0x80000001u, 0);
  uint64_t xcr0 = (l1.ecx & bit(27)) != 0 ? xgetbv() : 0;
  bool ymm = (xcr0 & 0x6) == 0x6, zmm = (xcr0 & 0xE6) == 0xE6, tiles = (xcr0 & 0x60000) == 0x60000;

  // SSE3, SSSE3, CMPXCHG16B, SSE4.1, SSE4.2, POPCNT; LAHF
  if (!all(l1.ecx, bit(0) | bit(9) | bit(13) | bit(19) | bit(20) | bit(23)) || !all(ext.ecx, bit(0)))
    return f;
  f |= QNL_X86_64_V2;
  // FMA, MOVBE, AVX, F16C; BMI1, AVX2, BMI2; LZCNT
  if (!ymm || !all(l1.ecx, bit(12) | bit(22) | bit(28) | bit(29)) || !all(l7.ebx, bit(3) | bit(5) | bit(8)) ||
      !all(ext.ecx, bit(5)))
    return f;
  f |= QNL_X86_64_V3;
  if (all(l71.eax, bit(4))) f |= QNL_X86_64_AVX_VNNI;
  if (all(l71.edx, bit(4))) f |= QNL_X86_64_AVX_VNNI_INT8;
  // AVX512 F, DQ, CD, BW, VL
  if (!zmm || !all(l7.ebx, bit(16) | bit(17) | bit(28) | bit(30) | bit(31))) return f;
  f |= QNL_X86_64_V4;
  if (all(l7.ecx, bit(11))) f |= QNL_X86_64_AVX512_VNNI;
  if (all(l71.eax, bit(5))) f |= QNL_X86_64_AVX512_BF16;
  if (all(l7.edx, bit(23))) f |= QNL_X86_64_AVX512_FP16;
  if (all(l7.ecx, bit(1))) f |= QNL_X86_64_AVX512_VBMI;
  if (tiles && all(l7.edx, bit(24) | bit(25))) f |= QNL_X86_64_AMX_INT8;
  if (tiles && all(l7.edx, bit(24) | bit(22))) f |= QNL_X86_64_AMX_BF16;
  return f;
}

#elif defined(__aarch64__)

uint32_t host_arch() { return QNL_ARCH_AARCH64; }

// HWCAP bits: Linux Documentation/arch/arm64/elf_hwcaps.rst.
uint64_t host_features() {
  uint64_t f = QNL_AARCH64_NEON;
  unsigned long cap = getauxval(AT_HWCAP), cap2 = getauxval(AT_HWCAP2);
  if ((cap >> 9 & 1) && (cap >> 10 & 1)) f |= QNL_AARCH64_FP16;  // FPHP, ASIMDHP
  if (cap >> 20 & 1) f |= QNL_AARCH64_DOTPROD;
  if (cap >> 22 & 1) f |= QNL_AARCH64_SVE;
  if (cap2 >> 1 & 1) f |= QNL_AARCH64_SVE2;
  if (cap2 >> 13 & 1) f |= QNL_AARCH64_I8MM;
  if (cap2 >> 14 & 1) f |= QNL_AARCH64_BF16;
  return f;
}

#elif defined(__riscv) && __riscv_xlen == 64

namespace {

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

}  // namespace

uint32_t host_arch() { return QNL_ARCH_RISCV64; }

// Bits: Linux Documentation/arch/riscv/hwprobe.rst. Where there is no such call, AT_HWCAP has one bit per
// single-letter extension. It cannot tell V 1.0 from its drafts, which kernels of that age only have with a
// vendor's changes.
uint64_t host_features() {
  uint64_t f = QNL_RISCV_GC, extensions;
  if (probe_extensions(&extensions)) {
    if (extensions >> 2 & 1) f |= QNL_RISCV_V;
    if (extensions >> 30 & 1) f |= QNL_RISCV_ZVFH;
  } else if (getauxval(AT_HWCAP) >> ('v' - 'a') & 1) {
    f |= QNL_RISCV_V;
  }
  if ((f & QNL_RISCV_V) == 0) return f;
  unsigned long vlenb;
  __asm__ volatile("csrr %0, 0xC22"
                   : "=r"(vlenb));  // by number: assemblers know its name only where V is enabled
  if (vlenb >= 32) f |= QNL_RISCV_VLEN256;
  if (vlenb >= 64) f |= QNL_RISCV_VLEN512;
  return f;
}

#elif defined(__arm__)

uint32_t host_arch() { return QNL_ARCH_ARM; }

uint64_t host_features() {
  unsigned long cap = getauxval(AT_HWCAP);  // Linux arch/arm/include/uapi/asm/hwcap.h
  uint64_t f = QNL_ARM_THUMB2;
  if (cap >> 16 & 1) f |= QNL_ARM_VFP4_SP | QNL_ARM_VFP4_DP;
  if (cap >> 12 & 1) f |= QNL_ARM_NEON;
  if ((cap >> 17 & 1) && (cap >> 18 & 1)) f |= QNL_ARM_IDIV;
  return f;
}

#else
#error "cpu_features: add this architecture"
#endif

}  // namespace quernel::runtime
