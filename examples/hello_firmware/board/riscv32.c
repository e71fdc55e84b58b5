/* Reset of a RISC-V hart in machine mode. */
#include "board.h"

extern uint32_t data_begin[], data_end[], data_source[], bss_begin[], bss_end[];
int main(void);

const uint32_t board_instruction_step = 1;

uint64_t board_instructions(void) {
  uint32_t low, high, again;
  do {
    __asm__ volatile(".option arch, +zicsr\ncsrr %0, minstreth" : "=r"(high));
    __asm__ volatile(".option arch, +zicsr\ncsrr %0, minstret" : "=r"(low));
    __asm__ volatile(".option arch, +zicsr\ncsrr %0, minstreth" : "=r"(again));
  } while (high != again);
  return (uint64_t)high << 32 | low;
}

__attribute__((used)) static void on_fault(void) {
  board_print("fault\n");
  board_exit(1);
}

__attribute__((used, noreturn)) static void start(void) {
  const volatile uint32_t* from = data_source;
  for (volatile uint32_t* to = data_begin; to < data_end;) *to++ = *from++;
  for (volatile uint32_t* to = bss_begin; to < bss_end;) *to++ = 0;
  board_exit(main());
}

__attribute__((noreturn)) void reset(void);
__attribute__((section(".vectors"), naked, used)) void reset(void) {
  __asm__ volatile(
      ".option arch, +zicsr\n"
      ".option push\n.option norelax\n"
      "la gp, __global_pointer$\n"
      ".option pop\n"
      "la sp, stack_top\n"
      "la t0, on_fault_aligned\n"
      "csrw mtvec, t0\n"
#if defined(__riscv_flen)
      "li t0, 1 << 13\n" /* mstatus.FS: floating point on, in its initial state */
      "csrs mstatus, t0\n"
      "csrw fcsr, zero\n"
#endif
      "j start\n"
      ".balign 4\n"
      "on_fault_aligned: j on_fault\n");
}
