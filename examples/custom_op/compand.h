/* The arithmetic of example.audio::Compand, for the function and for the kernel: C that needs no library. */
#ifndef COMPAND_H_
#define COMPAND_H_

#include <stdint.h>

static inline float compand_size(float x) { return x < 0 ? -x : x; }

/* The size of the frame's loudest sample. */
static inline float compand_peak(const float* frame, int64_t samples) {
  float peak = 0;
  for (int64_t i = 0; i < samples; ++i)
    if (compand_size(frame[i]) > peak) peak = compand_size(frame[i]);
  return peak;
}

/* x / peak, of -1..1, compressed by y (1 + knee) / (1 + knee |y|), as one of 0..levels-1. */
static inline uint8_t compand_code(float x, float peak, float knee, int64_t levels) {
  float y = peak > 0 ? x / peak : 0;
  float z = y * (1 + knee) / (1 + knee * compand_size(y));
  return (uint8_t)((z + 1) / 2 * (float)(levels - 1) + 0.5f);
}

#endif /* COMPAND_H_ */
