/* The contract between generated kernels and their callers: C99, versioned, independent of the rest of the
 * project except features.def. The code generator emits functions and one table in this form. The runtime's
 * loaders and bare-metal programs call them. Changing any layout or meaning below requires a new
 * QNL_KERNEL_ABI_VERSION. */
#ifndef QUERNEL_SCHEMAS_KERNEL_ABI_H_
#define QUERNEL_SCHEMAS_KERNEL_ABI_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version passed to the image's query function. The layouts below belong to this version. */
#define QNL_KERNEL_ABI_VERSION 1u

/* First word of the image table: the bytes 'Q' 'N' 'L' 'K' on a little-endian machine. */
#define QNL_IMAGE_MAGIC 0x4B4C4E51u

/* The arguments of one kernel call. The kernel writes only the memory that bindings and scratch point to. */
typedef struct qnl_kernel_args {
  /* One pointer per binding of the dispatch, in the order of the schedule item, with the byte offset inside
   * the arena already added. A pointer is aligned to the element size of its tensor only, because a session's
   * caller may bind inputs and outputs. Pointers of one dispatch may be equal or overlap only where the
   * memory plan says so. */
  void* const* bindings;
  /* Values of the schedule item's symbol expressions, in their order; NULL if it has none. */
  const int64_t* symbols;
  /* scratch_bytes of the kernel (bundle.fbs), private to the calling thread, 64-byte aligned, contents
   * undefined on entry; NULL if the kernel needs none. */
  void* scratch;
} qnl_kernel_args;

/* Runs the workgroups [workgroup_begin, workgroup_end) of the kernel's linearised grid: workgroup id x varies
 * fastest, then y, then z. The kernel decodes the ids. Workgroups are independent: they may run in any order
 * and on any thread; each runs exactly once per dispatch. The schedule item holds the total count. Kernels
 * keep no state between calls, call nothing outside their image, allocate nothing and change no
 * floating-point mode. Returns QNL_KERNEL_OK, or a non-zero code; after a non-zero code the outputs of the
 * dispatch are undefined. */
typedef int32_t (*qnl_kernel_fn)(const qnl_kernel_args* args, uint64_t workgroup_begin,
                                 uint64_t workgroup_end);

#define QNL_KERNEL_OK 0
/* An index read from a tensor (gather, scatter…) is outside the range that it indexes. */
#define QNL_KERNEL_INDEX_OUT_OF_RANGE 1
/* An integer division by zero, for ops that define it as an error. */
#define QNL_KERNEL_DIVISION_BY_ZERO 2

/* The table of an image. Kernel k is the function at (const char*)table + table->offsets[k]. Offsets instead
 * of pointers keep the image free of relocations. Constant data, aligned to 4 bytes, inside the image's
 * segment. */
typedef struct qnl_image_table {
  uint32_t magic;        /* QNL_IMAGE_MAGIC */
  uint32_t abi_version;  /* the version passed to the query function */
  uint32_t kernel_count; /* number of offsets; equals the number of kernels in the bundle's variant */
  uint32_t reserved;     /* 0 */
  int32_t offsets[];     /* byte offset of each kernel from the table's own address */
} qnl_image_table;

/* The image's entry (ELF e_entry): returns its table, or NULL if it does not implement abi_version. */
typedef const qnl_image_table* (*qnl_image_query_fn)(uint32_t abi_version);

/* An image is one freestanding ELF shared object (little-endian, ET_DYN, class and machine of the variant)
 * with:
 *   - exactly one PT_LOAD, flags R and X, never W, p_offset 0; p_memsz equals p_filesz (no .bss);
 *   - e_entry = the query function, inside that segment;
 *   - no relocation of any kind, no DT_NEEDED, DT_INIT*, DT_FINI*, DT_TEXTREL, no PT_TLS, no PT_INTERP.
 * PT_DYNAMIC, PT_PHDR, PT_NOTE, a PT_GNU_STACK without X and, for RISC-V, PT_RISCV_ATTRIBUTES may be there.
 * The loader rejects anything else.
 */

/* Element types of tensors, as stored in bundles; a value is never reused. Little-endian. A bool takes one
 * byte (0 or 1). i4 and u4 are packed two per byte, the element of even index in the low half. */
typedef enum qnl_dtype {
  QNL_F32 = 0,
  QNL_F16 = 1,
  QNL_BF16 = 2,
  QNL_F64 = 3,
  QNL_I8 = 4,
  QNL_U8 = 5,
  QNL_I16 = 6,
  QNL_U16 = 7,
  QNL_I32 = 8,
  QNL_U32 = 9,
  QNL_I64 = 10,
  QNL_U64 = 11,
  QNL_BOOL = 12,
  QNL_I4 = 13,
  QNL_U4 = 14,
  QNL_F8E4M3 = 15,
  QNL_F8E5M2 = 16
} qnl_dtype;
#define QNL_DTYPE_COUNT 17

/* The architectures that code is generated for, QNL_ARCH_X86_64 and others: the QNL_ARCHITECTURE lines of
 * features.def. Values are stored in bundles and never reused. */
typedef enum qnl_arch {
#define QNL_ARCHITECTURE(NAME, number, name) QNL_ARCH_##NAME = number,
#include "features.def"
} qnl_arch;

/* The features that a variant requires, QNL_X86_64_V1 and others: one 64-bit set per architecture, one bit
 * per QNL_FEATURE line of features.def. Bits are stored in bundles and never reused. A device can run a
 * variant if its own set includes all required bits. Bits are in order of preference: among usable variants,
 * the one with the numerically greatest set is picked. */
#ifdef __cplusplus
#define QNL_FEATURE(arch, constant, bit, name, option, llvm, needs, sentence) \
  static const uint64_t constant = UINT64_C(1) << (bit);
#include "features.def"
#else
enum {
#define QNL_FEATURE(arch, constant, bit, name, option, llvm, needs, sentence) constant = UINT64_C(1) << (bit),
#include "features.def"
};
#endif

/* ---- SPIR-V variants: kernels as compute shaders, entry point "main", Vulkan 1.1, SPIR-V 1.3 at most.
 *
 * Memory. A kernel accesses its bindings through at most QNL_SPIRV_WINDOWS storage buffers, each a range of
 * device memory; the smallest device supports that many. Descriptor set 0, binding 0 is an array of
 * QNL_SPIRV_WINDOWS storage buffers, all of which must be present. Specialisation constant b is the window
 * that holds the kernel's binding b; it begins at a multiple of 16 bytes. Several bindings may share a window, and may overlap where the memory
 * plan says so. If a module has the specialisation constant QNL_SPIRV_SPLIT + b, binding b may be larger than
 * a device's storage buffers. It then begins in the window that constant b names and continues in the next
 * windows. Each of its windows except the last has as many bytes as constant QNL_SPIRV_SPLIT + b says. 0: the
 * binding is in one window.
 *
 * Parameters. 32-bit words: [0] the number of workgroups of the dispatch; then for each binding the byte
 * offset of its first element in its window; then for each symbol its low and its high word. They are push
 * constants from offset 0 if the kernel has no symbols and they fit in QNL_SPIRV_PUSH_BYTES. Otherwise they
 * are a uniform buffer at set 0, binding 1, an array of uvec4, because symbols change between submissions.
 *
 * Workgroups. Linear workgroup x + y * (number along x) of the dispatch is the workgroup of qnl_kernel_fn
 * with that index. Workgroups from the number of workgroups on do nothing. The module's local size is fixed.
 * No workgroup reads what an invocation of another one has stored.
 *
 * Iterations. With QNL_SPIRV_COUNTS_ITERATIONS a kernel's last symbol is the most iterations of all loops of an
 * invocation, which the kernel itself does not use. Without it they are at most QNL_SPIRV_FEW_ITERATIONS,
 * after which some drivers end the loops of an invocation without an error.
 *
 * Matrices. A module that needs QNL_SPIRV_COOPMAT multiplies matrices of one dtype: of i8 or of u8, with sums of 32 bits,
 * if it needs QNL_SPIRV_COOPMAT_INT8, of bf16 with sums of f32 if it needs QNL_SPIRV_COOPMAT_BF16, else of f16 with sums of
 * f32. For each dtype the device chooses a shape: specialisation constants QNL_SPIRV_MATRIX_SHAPE, + 1 and + 2 are the rows
 * of a and of the sums, the columns of b and of the sums, and the columns of a. Constant QNL_SPIRV_MATRIX_SHAPE + 3 is the
 * number of subgroups of a workgroup. A product has QNL_SPIRV_MATRIX_SIDE rows and columns, and its steps are a multiple of
 * those that take QNL_SPIRV_MATRIX_STEP_BYTES of a row of a. Its matrices of sums are numbered column by column; each
 * subgroup has as many as the others, one after another, whole columns of them or a part of one that divides it. */
#define QNL_SPIRV_MATRIX_SHAPE 128u
#define QNL_SPIRV_MATRIX_SIDE 64u
#define QNL_SPIRV_MATRIX_STEP_BYTES 32u
#define QNL_SPIRV_MAGIC 0x564C4E51u /* 'Q' 'N' 'L' 'V' */
#define QNL_SPIRV_ABI_VERSION 3u    /* 2: windows may begin anywhere */
#define QNL_SPIRV_WINDOWS 4u
#define QNL_SPIRV_SPLIT 64u
#define QNL_SPIRV_PUSH_BYTES 128u
#define QNL_SPIRV_COUNTS_ITERATIONS 1u
#define QNL_SPIRV_FEW_ITERATIONS 65535u

typedef struct qnl_spirv_kernel {
  uint32_t code_offset;  /* bytes from the table's beginning, a multiple of 4 */
  uint32_t code_bytes;   /* a multiple of 4 */
  uint32_t local_size;   /* invocations per workgroup, all along x */
  uint32_t shared_bytes; /* bytes of shared memory per workgroup */
  uint16_t binding_count;
  uint16_t flags; /* QNL_SPIRV_COUNTS_ITERATIONS or 0 */
  uint32_t symbol_count;
  uint64_t features; /* QNL_SPIRV_* that the module needs */
} qnl_spirv_kernel;

static inline int qnl_spirv_uses_push(uint32_t binding_count, uint32_t symbol_count) {
  return symbol_count == 0 && 4 * (1 + binding_count) <= QNL_SPIRV_PUSH_BYTES;
}

/* The code segment of a SPIR-V variant: this table, then the modules. */
typedef struct qnl_spirv_table {
  uint32_t magic;       /* QNL_SPIRV_MAGIC */
  uint32_t abi_version; /* QNL_SPIRV_ABI_VERSION */
  uint32_t kernel_count;
  uint32_t reserved; /* 0 */
  qnl_spirv_kernel kernels[];
} qnl_spirv_table;

#ifdef __cplusplus
}
#endif

#endif /* QUERNEL_SCHEMAS_KERNEL_ABI_H_ */
