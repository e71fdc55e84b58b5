/* Arm's semihosting calls, which RISC-V has taken over: an operation and a pointer to its arguments. */
#include "board.h"

enum { kOpen = 0x01, kClose = 0x02, kPrint = 0x04, kWrite = 0x05, kRead = 0x06, kSeek = 0x0a, kExit = 0x18 };
enum { kReadBinary = 1, kWriteBinary = 5 };
enum { kApplicationExit = 0x20026, kRunTimeError = 0x20023 };

static intptr_t call(uintptr_t operation, const void* arguments) {
#if defined(__arm__)
  register uintptr_t r0 __asm__("r0") = operation;
  register const void* r1 __asm__("r1") = arguments;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return (intptr_t)r0;
#elif defined(__riscv)
  register uintptr_t a0 __asm__("a0") = operation;
  register const void* a1 __asm__("a1") = arguments;
  /* The three instructions must be of 32 bits and lie in one page. */
  __asm__ volatile(
      ".option push\n.option norvc\n.balign 16\n"
      "slli x0, x0, 0x1f\nebreak\nsrai x0, x0, 7\n.option pop"
      : "+r"(a0)
      : "r"(a1)
      : "memory");
  return (intptr_t)a0;
#else
#error "no semihosting for this processor"
#endif
}

void board_print(const char* text) { call(kPrint, text); }

void board_print_number(uint64_t number) {
  char digits[21];
  char* at = digits + sizeof digits;
  *--at = 0;
  do *--at = (char)('0' + number % 10);
  while ((number /= 10) != 0);
  board_print(at);
}

/* On 32-bit machines the call takes the reason itself; any but "application exit" is a failure. */
void board_exit(int status) {
  call(kExit, (const void*)(uintptr_t)(status == 0 ? kApplicationExit : kRunTimeError));
  for (;;) {
  }
}

static intptr_t open_file(const char* name, uintptr_t mode) {
  uintptr_t length = 0;
  while (name[length] != 0) ++length;
  const uintptr_t arguments[3] = {(uintptr_t)name, mode, length};
  return call(kOpen, arguments);
}

/* The calls that transfer return how many bytes they left. */
static int32_t transfer(uintptr_t operation, const char* name, uintptr_t mode, uint32_t offset,
                        uintptr_t data, uint32_t bytes) {
  intptr_t file = open_file(name, mode);
  if (file < 0) return -1;
  const uintptr_t position[2] = {(uintptr_t)file, offset};
  const uintptr_t arguments[3] = {(uintptr_t)file, data, bytes};
  intptr_t left = (intptr_t)bytes;
  if (offset == 0 || call(kSeek, position) >= 0) left = call(operation, arguments);
  call(kClose, &arguments[0]);
  return (int32_t)bytes - (int32_t)left;
}

int32_t board_read_file(const char* name, uint32_t offset, void* data, uint32_t bytes) {
  return transfer(kRead, name, kReadBinary, offset, (uintptr_t)data, bytes);
}

int32_t board_write_file(const char* name, const void* data, uint32_t bytes) {
  return transfer(kWrite, name, kWriteBinary, 0, (uintptr_t)data, bytes);
}
