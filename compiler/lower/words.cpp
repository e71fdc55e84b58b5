#include "lower/words.h"

namespace quernel::lower {

using loop::Expr;

Expr word_of_byte(const loop::Buffer& buffer, const Expr& value) {
  return buffer->dtype == DType::kI8 ? value : loop::bitcast({DType::kU32, 1}, value);
}

Expr word_of_neighbours(const loop::Buffer& a, const Expr& place, int64_t count,
                        const schedule::ContractionPlan& plan) {
  constexpr int kBitsOfByte = 8;
  int bits = kBitsOfByte * element_size(a->dtype);
  Expr word;
  if (count + plan.slack >= plan.dot) {
    Expr all = loop::load(a, loop::ramp(place, 1, plan.dot), plan.dot);
    word = loop::bitcast({DType::kU32, 1}, all);
  } else {
    DType same_size = bits == kBitsOfByte ? DType::kU8 : DType::kU16;
    for (int64_t i = 0; i < count; ++i) {
      Expr part = loop::cast(DType::kU32, loop::bitcast({same_size, 1}, loop::load(a, place + index(i))));
      part = loop::binary(BinaryOp::k_shl, part, loop::const_int(DType::kU32, bits * i));
      word = word ? loop::binary(BinaryOp::k_or, word, part) : part;
    }
  }
  if (plan.dot_shift != 0)
    word = loop::binary(BinaryOp::k_xor, word, loop::const_int(DType::kU32, 0x80808080));
  bool is_signed = (a->dtype == DType::kI8) == (plan.dot_shift == 0) && is_byte(a->dtype);
  return loop::bitcast({is_signed ? DType::kI32 : DType::kU32, 1}, word);
}

}  // namespace quernel::lower
