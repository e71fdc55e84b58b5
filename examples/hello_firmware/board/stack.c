#include "board.h"

uint32_t board_stack_used(const void* from) {
  const volatile uint32_t* at = stack_limit;
  while ((const void*)at < from && *at == kStackPaint) ++at;
  return (uint32_t)((const char*)from - (const char*)at);
}
