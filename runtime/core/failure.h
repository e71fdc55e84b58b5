// Failure: builds the text of a qnl_error in place, without allocation, and is the status that a function
// returns.
#pragma once

#include <stdint.h>

#include "quernel/runtime.h"

namespace quernel::runtime {

// Usage: return Failure(error, QNL_SHAPE_MISMATCH) << "input '" << name << "': expected rank " << rank;
// Text that does not fit is cut. error may be null.
class Failure {
 public:
  Failure(qnl_error* error, qnl_status status);
  Failure& operator<<(const char* text);
  Failure& operator<<(uint64_t number);
  Failure& operator<<(uint32_t number) { return *this << static_cast<uint64_t>(number); }
  Failure& operator<<(int64_t number);
  operator qnl_status() const { return status_; }

 private:
  qnl_error* error_;
  qnl_status status_;
  uint32_t used_ = 0;
};

// Appends the names of a feature set, separated by spaces: "x86-64-v1 x86-64-v2 avx512-vnni", or "none".
void append_features(Failure& failure, uint32_t arch, uint64_t features);
const char* arch_name(uint32_t arch);

// Appends "f32[1,3,224,224]".
void append_type(Failure& failure, qnl_dtype dtype, uint32_t rank, const int64_t* shape);

}  // namespace quernel::runtime
