#include "board.h"

uint32_t* board_painted_top;

uint32_t board_stack_used(void) {
  const volatile uint32_t* at = stack_limit;
  while (at < board_painted_top && *at == kStackPaint) ++at;
  return (uint32_t)((const char*)board_painted_top - (const char*)at);
}
