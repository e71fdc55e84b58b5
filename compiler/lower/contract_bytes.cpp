// The sum of a contraction's current tile where b is a quantised constant and a has rows of bytes: integers are multiplied,
// and the sum of each block gets its scales (ContractionPlan::Blocks::group_of_a).
#include "lower/contract_lowering.h"

namespace quernel::lower {

using loop::Expr;
using loop::Stmt;

namespace {

constexpr int64_t kBytesOfWord = 4;

}  // namespace

Expr ContractLowering::bytes_of_word(const Expr& words, int64_t first) const {
  const int64_t bits = plan_.blocks->format.bits, shift = bits * (first / kBytesOfWord);
  const int lanes = words->type.lanes;
  auto constant = [&](int64_t byte) { return loop::const_int(DType::kU32, byte * 0x01010101, lanes); };
  Expr bytes = words;
  if (shift > 0) bytes = loop::binary(BinaryOp::k_shr, bytes, loop::const_int(DType::kU32, shift, lanes));
  if (bits < 8) bytes = loop::binary(BinaryOp::k_and, bytes, constant((1 << bits) - 1));
  if (plan_.blocks->unsigned_bytes) return bytes;
  if (bits == 8) bytes = loop::binary(BinaryOp::k_xor, bytes, constant(0x80));
  return loop::bitcast({DType::kI32, lanes}, bytes);
}

Stmt ContractLowering::reduce_bytes(const loop::Buffer& acc, const loop::Buffer& row_offsets) {
  const schedule::ContractionPlan::Blocks& format = *plan_.blocks;
  const int64_t bits = format.format.bits, per_word = format.per_word();
  // What bytes are above elements by.
  const int64_t middle = bits == 8 && !format.unsigned_bytes ? 0 : int64_t{1} << (bits - 1);
  const DType dtype = format.unsigned_bytes ? DType::kU32 : DType::kI32;
  auto word_of_a = [&](const Expr& place) {
    Expr bytes = loop::load(a_buffer_, loop::ramp(place, 1, kBytesOfWord), kBytesOfWord);
    return loop::bitcast({DType::kI32, 1}, bytes);
  };
  return for_blocks([&](const BlockPlace& place, int64_t steps) {
    loop::Buffer sums = local_buffer("sums", DType::kI32, acc->size, loop::Scope::kRegister);
    std::vector<Stmt> body{loop::alloc(sums), for_rows([&](Expr m) {
                             return for_columns([&](Expr n) {
                               return loop::store(sums, tile_.slot(m, n), loop::const_int(DType::kI32, 0));
                             });
                           })};
    body.push_back(for_words(steps, [&](const Expr& word, int64_t of_word) {
      loop::Buffer words = local_buffer("words", DType::kU32, plan_.tile_n(), loop::Scope::kRegister);
      std::vector<Stmt> parts{loop::alloc(words), read_words(words, place, word)};
      for (int64_t first = 0; first < of_word; first += kBytesOfWord) {
        loop::Buffer columns = local_buffer("columns", dtype, plan_.tile_n(), loop::Scope::kRegister);
        parts.push_back(loop::alloc(columns));
        parts.push_back(for_columns(
            [&](Expr n) { return loop::store(columns, n, bytes_of_word(loop::load(words, n), first)); }));
        parts.push_back(for_rows([&](Expr m) {
          loop::Var a = fresh_var("a", {DType::kI32, 1});
          Expr from = place_of_row(row_offsets, m) + place.a + word * index(per_word) + index(first);
          return loop::block(
              {loop::let(a, word_of_a(from)), for_columns([&](Expr n) {
                 Expr slot = tile_.slot(m, n);
                 return loop::store(
                     sums, slot, loop::dot(loop::var_ref(a), loop::load(columns, n), loop::load(sums, slot)));
               })});
        }));
      }
      return loop::block(std::move(parts));
    }));
    body.push_back(for_rows([&](Expr m) {
      auto group_of = [&](const Expr& offset) {
        return loop::binary(BinaryOp::k_idiv, offset, index(format.group_of_a));
      };
      Expr group = group_of(place_of_row(row_offsets, m)) + group_of(place.a);
      loop::Var scale = fresh_var("scale", {accumulator_dtype_, 1}),
                total = fresh_var("total", {accumulator_dtype_, 1}),
                begin = fresh_var("begin", {accumulator_dtype_, 1});
      // What the sum of each column begins with, before its scale: minus the middle of elements, times those of the row.
      Expr first = loop::const_float(accumulator_dtype_, -static_cast<double>(middle)) * loop::var_ref(total);
      return loop::block(
          {loop::let(scale, loop::load(row_scales_, group)), loop::let(total, loop::load(group_sums_, group)),
           loop::let(begin, middle != 0 ? first : loop::const_float(accumulator_dtype_, 0)),
           for_vectors([&](Expr v, Expr l) {
             Expr slot = tile_.slot(m, v ? v * index(lanes_) + l : l),
                  sum = loop::mul_acc(loop::cast(accumulator_dtype_, loop::load(sums, slot)),
                                      loop::var_ref(scale), loop::var_ref(begin));
             if (Expr zero = zero_of_column(place, v, l))
               sum = loop::mul_acc(loop::unary(UnaryOp::k_neg, zero), loop::var_ref(total), sum);
             return loop::store(acc, slot,
                                loop::mul_acc(scale_of_column(place, v, l), sum, loop::load(acc, slot)));
           })});
    }));
    return loop::block(std::move(body));
  });
}

}  // namespace quernel::lower
