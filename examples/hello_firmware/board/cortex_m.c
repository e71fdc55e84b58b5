/* Reset of a Cortex-M: vectors, floating point on, data and zeros in place, a clock that counts. */
#include "board.h"

extern uint32_t stack_top[], data_begin[], data_end[], data_source[], bss_begin[], bss_end[];
int main(void);

/* SysTick counts down 24 bits of the processor's clock; its interrupt counts the turns. */
static volatile uint32_t* const kSysTick = (uint32_t*)0xe000e010;
static volatile uint32_t turns;

/* Nanoseconds, which are instructions under -icount shift=0, of a tick of the board's clock. */
const uint32_t board_instruction_step = BOARD_TICK_NANOSECONDS_X100 / 100;

static void on_tick(void) { ++turns; }

static void on_fault(void) {
  board_print("fault\n");
  board_exit(1);
}

uint64_t board_instructions(void) {
  uint32_t before, ticks;
  do {
    before = turns;
    ticks = 0xffffff - kSysTick[2];
  } while (before != turns);
  return (((uint64_t)before << 24) + ticks) * BOARD_TICK_NANOSECONDS_X100 / 100;
}

__attribute__((noreturn)) void reset(void);
void reset(void) {
#if defined(__ARM_FP)
  *(volatile uint32_t*)0xe000ed88 |= 0xfu << 20; /* coprocessors 10 and 11: floating point and vectors */
  __asm__ volatile("dsb\nisb");
#endif
#if defined(__ARM_ARCH_6M__) || defined(__ARM_ARCH_8M_BASE__)
  *(volatile uint32_t*)0xe000ed14 |=
      1u << 3; /* CCR.UNALIGN_TRP: a larger core refuses what this one cannot do */
#endif
  /* Volatile, so that the loops do not become calls of a C library. */
  const volatile uint32_t* from = data_source;
  for (volatile uint32_t* to = data_begin; to < data_end;) *to++ = *from++;
  for (volatile uint32_t* to = bss_begin; to < bss_end;) *to++ = 0;
  kSysTick[1] = 0xffffff;
  kSysTick[2] = 0;
  kSysTick[0] = 7; /* the processor's clock, interrupts, on */
  board_exit(main());
}

__attribute__((section(".vectors"), used)) static void (*const vectors[16])(void) = {
    (void (*)(void))stack_top,
    reset,
    on_fault,
    on_fault,
    on_fault,
    on_fault,
    on_fault,
    on_fault,
    on_fault,
    on_fault,
    on_fault,
    on_fault,
    on_fault,
    on_fault,
    on_fault,
    on_tick};
