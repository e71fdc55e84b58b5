#include "kernel_counts.h"

#include "board.h"
#include "case.h"

enum { kEmptyCalls = 1024 };

struct count {
  uint64_t instructions, calls;
};

/* The linker sends calls of SYMBOL to __wrap_SYMBOL, and those of __real_SYMBOL to SYMBOL. */
#define WRAP(name, symbol)                                                                      \
  static struct count count_##name;                                                             \
  int32_t __real_##symbol(const void* args, uint64_t workgroup_begin, uint64_t workgroup_end);  \
  int32_t __wrap_##symbol(const void* args, uint64_t workgroup_begin, uint64_t workgroup_end);  \
  int32_t __wrap_##symbol(const void* args, uint64_t workgroup_begin, uint64_t workgroup_end) { \
    uint64_t begin = board_instructions();                                                      \
    int32_t code = __real_##symbol(args, workgroup_begin, workgroup_end);                       \
    count_##name.instructions += board_instructions() - begin;                                  \
    ++count_##name.calls;                                                                       \
    return code;                                                                                \
  }
KERNELS(WRAP)
WRAP(empty, quernel_empty)

/* Weak, so that the compiler passes arguments that are not used, as to a kernel. */
__attribute__((weak)) int32_t __real_quernel_empty(const void* args, uint64_t workgroup_begin,
                                                   uint64_t workgroup_end) {
  (void)args;
  (void)workgroup_begin;
  (void)workgroup_end;
  return 0;
}

/* Calls begin anywhere in a step of the counter, so that what they are off by cancels out. */
static void call_empty(void) {
  uint32_t random = 1;
  for (uint32_t i = 0; i < kEmptyCalls; ++i) {
    random = random * 1664525u + 1013904223u;
    for (volatile uint32_t wait = random >> 26; wait != 0;) wait = wait - 1;
    __wrap_quernel_empty(0, 0, random);
  }
}

void forget_kernel_counts(void) {
#define FORGET(name, symbol) count_##name = (struct count){0, 0};
  KERNELS(FORGET)
}

void print_kernel_counts(void (*print_line)(const char* name, uint64_t instructions, uint64_t calls)) {
  call_empty();
#define PRINT(name, symbol) print_line("kernel_" #name, count_##name.instructions, count_##name.calls);
  KERNELS(PRINT)
  print_line("empty_calls", count_empty.instructions, count_empty.calls);
}
