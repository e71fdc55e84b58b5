#include "lower/bytes.h"

namespace quernel::lower {

using loop::Expr;

bool multiplies_bytes(const loop::Buffer& a, const loop::Buffer& b, const Target& target) {
  auto is_signed = [](const loop::Buffer& buffer) { return buffer->dtype == DType::kI8; };
  return is_byte(a->dtype) && is_byte(b->dtype) && target.has_dot(is_signed(a), is_signed(b));
}

Expr word_of_byte(const loop::Buffer& buffer, const Expr& value) {
  return buffer->dtype == DType::kI8 ? value : loop::bitcast({DType::kU32, 1}, value);
}

Expr word_of_bytes(const loop::Buffer& a, const Expr& place, int64_t bytes,
                   const schedule::ContractionPlan& plan) {
  Expr word;
  if (bytes == plan.dot) {
    Expr all = loop::load(a, loop::ramp(place, 1, plan.dot), plan.dot);
    word = loop::bitcast({DType::kU32, 1}, all);
  } else {
    for (int64_t i = 0; i < bytes; ++i) {
      Expr byte = loop::bitcast({DType::kU8, 1}, loop::load(a, place + index(i)));
      byte =
          loop::binary(BinaryOp::k_shl, loop::cast(DType::kU32, byte), loop::const_int(DType::kU32, 8 * i));
      word = word ? loop::binary(BinaryOp::k_or, word, byte) : byte;
    }
  }
  if (plan.dot_shift != 0)
    word = loop::binary(BinaryOp::k_xor, word, loop::const_int(DType::kU32, 0x80808080));
  bool is_signed = (a->dtype == DType::kI8) == (plan.dot_shift == 0);
  return loop::bitcast({is_signed ? DType::kI32 : DType::kU32, 1}, word);
}

}  // namespace quernel::lower
