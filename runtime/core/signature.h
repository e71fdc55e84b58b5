// Signatures of custom ops, "f32[?,?],i64[?]->f32[?,?]": dtype and rank of every operand, then of every
// result. Blanks are ignored.
#pragma once

#include <stdint.h>

#include "quernel/runtime.h"

namespace quernel::runtime {

struct SignatureType {
  qnl_dtype dtype = QNL_F32;
  uint32_t rank = 0;
  bool is_result = false;
};

// Reads a signature's types in order.
class SignatureReader {
 public:
  explicit SignatureReader(const char* text) : at_(text) {}
  // Returns false at the end, or at text that is not part of a signature.
  bool next(SignatureType* type);
  // After the last type: true if the whole text was a signature.
  bool complete() const { return complete_; }

 private:
  void skip_blanks();
  bool accept(char c);
  bool accept_dtype(qnl_dtype* dtype);

  const char* at_;
  bool results_ = false, begun_ = false, complete_ = false;
};

// Returns true if both are signatures of the same types.
bool same_signature(const char* a, const char* b);

}  // namespace quernel::runtime
