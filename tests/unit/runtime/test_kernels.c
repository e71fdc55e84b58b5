// A code image written by hand, so that the runtime is tested without the compiler. Every kernel works on
// blocks of 16 elements per workgroup.
#include "schemas/kernel_abi.h"

enum { kBlock = 16 };

#define KERNEL __attribute__((used, visibility("hidden")))

// out = a + b
KERNEL int32_t kernel_add(const qnl_kernel_args* args, uint64_t begin, uint64_t end) {
  const float* a = args->bindings[0];
  const float* b = args->bindings[1];
  float* out = args->bindings[2];
  for (uint64_t i = begin * kBlock; i < end * kBlock; ++i) out[i] = a[i] + b[i];
  return QNL_KERNEL_OK;
}

// out = in * constants[0] + constants[1]
KERNEL int32_t kernel_scale(const qnl_kernel_args* args, uint64_t begin, uint64_t end) {
  const float* in = args->bindings[0];
  const float* constants = args->bindings[1];
  float* out = args->bindings[2];
  for (uint64_t i = begin * kBlock; i < end * kBlock; ++i) out[i] = in[i] * constants[0] + constants[1];
  return QNL_KERNEL_OK;
}

// state += in
KERNEL int32_t kernel_accumulate(const qnl_kernel_args* args, uint64_t begin, uint64_t end) {
  const float* in = args->bindings[0];
  float* state = args->bindings[1];
  for (uint64_t i = begin * kBlock; i < end * kBlock; ++i) state[i] += in[i];
  return QNL_KERNEL_OK;
}

KERNEL int32_t kernel_fail(const qnl_kernel_args* args, uint64_t begin, uint64_t end) {
  (void)args;
  (void)begin;
  (void)end;
  return QNL_KERNEL_INDEX_OUT_OF_RANGE;
}

// counts[workgroup] += 1, so that a workgroup run twice or never shows; goes through scratch, so that a
// scratch shared by two threads shows, too.
KERNEL int32_t kernel_count(const qnl_kernel_args* args, uint64_t begin, uint64_t end) {
  int32_t* counts = args->bindings[0];
  volatile uint64_t* scratch = args->scratch;
  for (uint64_t w = begin; w < end; ++w) {
    for (int i = 0; i < 8; ++i) scratch[i] = w + (uint64_t)i;
    for (int i = 0; i < 8; ++i)
      if (scratch[i] != w + (uint64_t)i) return 99;
    counts[w] += 1;
  }
  return QNL_KERNEL_OK;
}

// out = in + symbols[0], of the first symbols[1] elements
KERNEL int32_t kernel_offset(const qnl_kernel_args* args, uint64_t begin, uint64_t end) {
  const float* in = args->bindings[0];
  float* out = args->bindings[1];
  for (uint64_t i = begin * kBlock; i < end * kBlock && i < (uint64_t)args->symbols[1]; ++i)
    out[i] = in[i] + (float)args->symbols[0];
  return QNL_KERNEL_OK;
}

// out[symbols[0]] = symbols[1]
KERNEL int32_t kernel_store(const qnl_kernel_args* args, uint64_t begin, uint64_t end) {
  int64_t* out = args->bindings[0];
  if (begin < end) out[args->symbols[0]] = args->symbols[1];
  return QNL_KERNEL_OK;
}

// sum += symbols[0]; less = sum < limit
KERNEL int32_t kernel_sum_up(const qnl_kernel_args* args, uint64_t begin, uint64_t end) {
  int64_t* sum = args->bindings[0];
  const int64_t* limit = args->bindings[1];
  uint8_t* less = args->bindings[2];
  if (begin == end) return QNL_KERNEL_OK;
  *sum += args->symbols[0];
  *less = *sum < *limit;
  return QNL_KERNEL_OK;
}

__asm__(
    ".pushsection .rodata\n"
    ".balign 8\n"
    "test_table:\n"
    ".long 0x4B4C4E51, 1, 8, 0\n"
    ".long kernel_add - test_table\n"
    ".long kernel_scale - test_table\n"
    ".long kernel_accumulate - test_table\n"
    ".long kernel_fail - test_table\n"
    ".long kernel_count - test_table\n"
    ".long kernel_offset - test_table\n"
    ".long kernel_store - test_table\n"
    ".long kernel_sum_up - test_table\n"
    ".popsection\n");
extern const qnl_image_table test_table __attribute__((visibility("hidden")));

__attribute__((visibility("default"))) const qnl_image_table* test_query(uint32_t abi_version) {
  return abi_version == QNL_KERNEL_ABI_VERSION ? &test_table : 0;
}
