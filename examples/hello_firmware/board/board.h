/* What the programs here want of a board: text for the host, a count of instructions, the depth of the stack,
 * files of the host for tests. All of it goes through semihosting, which emulators and debug probes offer;
 * firmware for a product has its own in place of this folder. */
#ifndef HELLO_FIRMWARE_BOARD_H_
#define HELLO_FIRMWARE_BOARD_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

void board_print(const char* text);
void board_print_number(uint64_t number);

/* Ends the emulation; the emulator's exit status is 0 for 0, else 1. */
__attribute__((noreturn)) void board_exit(int status);

/* Instructions since reset under qemu's -icount shift=0, to a multiple of board_instruction_step. On
 * hardware: a clock. */
uint64_t board_instructions(void);
extern const uint32_t board_instruction_step;

/* Fills the free stack, which ends at the program's data (sections.ld), with a pattern; inline, so that it
 * has no frame of its own. board_stack_used: how many bytes below `from` have been written to since. An
 * interrupt in between counts, too. */
enum { kStackPaint = 0x5ca1ab1e };
extern uint32_t stack_limit[];
__attribute__((always_inline)) static inline const void* board_stack_pointer(void) {
  const void* top;
#if defined(__arm__)
  __asm__ volatile("mov %0, sp" : "=r"(top));
#else
  __asm__ volatile("mv %0, sp" : "=r"(top));
#endif
  return top;
}
__attribute__((always_inline)) static inline void board_paint_stack(void) {
  const uint32_t* top = (const uint32_t*)board_stack_pointer();
  for (volatile uint32_t* at = stack_limit; at < top; ++at) *at = kStackPaint;
}
uint32_t board_stack_used(const void* from);

/* Files of the host: the number of bytes read, from byte `offset` on, or written; negative where the file
 * cannot be opened. */
int32_t board_read_file(const char* name, uint32_t offset, void* data, uint32_t bytes);
int32_t board_write_file(const char* name, const void* data, uint32_t bytes);

#ifdef __cplusplus
}
#endif

#endif /* HELLO_FIRMWARE_BOARD_H_ */
