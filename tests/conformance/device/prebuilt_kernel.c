/* The kernel of SeedTraps.kernel_prebuilt: y[c][r] = x[r][c] * 2 + r, and of each row of x the sum; the
 * attributes' first character is added to every sum. */
#include "schemas/kernel_abi.h"

int32_t trap_turn(const qnl_kernel_args* args, uint64_t workgroup_begin, uint64_t workgroup_end);

int32_t trap_turn(const qnl_kernel_args* args, uint64_t workgroup_begin, uint64_t workgroup_end) {
  const float* x = (const float*)args->bindings[0];
  const char* attributes = (const char*)args->bindings[1];
  float* y = (float*)args->bindings[2];
  float* sums = (float*)args->bindings[3];
  int64_t rows = args->symbols[0], columns = args->symbols[1];
  if (workgroup_begin != 0 || workgroup_end != 1 || args->symbols[3] != columns || args->symbols[4] != rows)
    return 1;
  for (int64_t r = 0; r < rows; ++r) {
    sums[r] = (float)attributes[0];
    for (int64_t c = 0; c < columns; ++c) {
      sums[r] += x[r * columns + c];
      y[c * rows + r] = x[r * columns + c] * 2 + (float)r;
    }
  }
  return QNL_KERNEL_OK;
}
