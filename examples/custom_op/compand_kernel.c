/* example.audio::Compand as a kernel for every bundle that has it: a function of the kernel ABI, compiled
 * once, and linked into the code of a bundle by `quernel compile --custom-op compand_kernel.op`. It may call
 * nothing, keep nothing between calls, and must be position-independent:
 *
 *   cc -c -O2 -ffreestanding -fPIC -I PREFIX/include compand_kernel.c -o compand_kernel.o
 *
 * bindings: x, the node's attributes as text with a terminating zero, code, peak; symbols: the dims of all of
 * these in order (the text has one). There is one workgroup. */
#include <quernel/runtime.h> /* for schemas/kernel_abi.h beside it */

#include "compand.h"

/* What is built in: a model that asks for other values is not served wrongly. */
static const char kAttributes[] = "knee=8.0;levels=256";
enum { kOtherAttributes = 1000 };

int32_t compand_kernel(const qnl_kernel_args* args, uint64_t workgroup_begin, uint64_t workgroup_end);

int32_t compand_kernel(const qnl_kernel_args* args, uint64_t workgroup_begin, uint64_t workgroup_end) {
  (void)workgroup_begin, (void)workgroup_end;
  const float* x = (const float*)args->bindings[0];
  const char* attributes = (const char*)args->bindings[1];
  uint8_t* code = (uint8_t*)args->bindings[2];
  float* peak = (float*)args->bindings[3];
  int64_t frames = args->symbols[0], samples = args->symbols[1], length = args->symbols[2];
  if (length != (int64_t)sizeof kAttributes) return kOtherAttributes;
  for (int64_t i = 0; i < length; ++i)
    if (attributes[i] != kAttributes[i]) return kOtherAttributes;
  for (int64_t f = 0; f < frames; ++f) {
    peak[f] = compand_peak(x + f * samples, samples);
    for (int64_t i = 0; i < samples; ++i)
      code[f * samples + i] = compand_code(x[f * samples + i], peak[f], 8, 256);
  }
  return QNL_KERNEL_OK;
}
