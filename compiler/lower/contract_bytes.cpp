// The accumulators of a contraction's current tile where b is a quantised constant and a has rows of i8: int8 dot products,
// whose results get their scales once for each block (ContractionPlan::Blocks::group_of_a), or those of columns then and
// that of the row at the end (row_of_a). Where instructions add pairs of products in 16 bits, sums are kept in halves of
// words for as long as they fit.
#include <algorithm>

#include "lower/contract_lowering.h"

namespace quernel::lower {

using loop::Expr;
using loop::Stmt;

namespace {

constexpr int64_t kBytesOfWord = 4, kBitsOfByte = 8, kBitsOfHalf = 16;

}  // namespace

Expr ContractLowering::bytes_of_word(const Expr& words, int64_t first) const {
  const int64_t bits = plan_.blocks->format.bits, shift = bits * (first / kBytesOfWord);
  const int lanes = words->type.lanes;
  const bool in_high_bits = plan_.blocks->signed_elements;
  const int64_t up = in_high_bits ? kBitsOfByte - bits - shift : 0, down = in_high_bits ? 0 : shift;
  const int64_t lowest = in_high_bits ? kBitsOfByte - bits : 0, mask = ((int64_t{1} << bits) - 1) << lowest;
  auto constant = [&](int64_t value) { return loop::const_int(DType::kU32, value, lanes); };
  Expr bytes = words;
  if (up > 0) bytes = loop::binary(BinaryOp::k_shl, bytes, constant(up));
  if (down > 0) bytes = loop::binary(BinaryOp::k_shr, bytes, constant(down));
  if (bits < kBitsOfByte) bytes = loop::binary(BinaryOp::k_and, bytes, constant(mask * 0x01010101));
  return in_high_bits ? loop::bitcast({DType::kI32, lanes}, bytes) : bytes;
}

Expr ContractLowering::number_of_row(const Expr& group) const {
  const schedule::ContractionPlan::Blocks& format = *plan_.blocks;
  return loop::binary(BinaryOp::k_idiv, group, index(format.row_of_a / format.group_of_a));
}

Expr ContractLowering::sum_of_group(const Expr& group, double times) const {
  const Expr sum = loop::cast(accumulator_dtype_, loop::load(group_sums_, group));
  times /= static_cast<double>(factor_);
  return times == 1 ? sum : loop::const_float(accumulator_dtype_, times) * sum;
}

Stmt ContractLowering::reduce_bytes(const loop::Buffer& acc, const loop::Buffer& row_offsets) {
  const schedule::ContractionPlan::Blocks& format = *plan_.blocks;
  const int64_t bits = format.format.bits, per_word = format.per_word();
  // What bytes are above elements by, or else elements times.
  const int64_t middle = format.signed_elements ? 0 : int64_t{1} << (bits - 1);
  const int64_t times = format.signed_elements ? int64_t{1} << (kBitsOfByte - bits) : 1;
  const DType dtype = format.signed_elements ? DType::kI32 : DType::kU32;
  // Where a row has one scale, sums of groups are integers.
  const bool of_rows = format.row_of_a != 0;
  // What the sums of a group's columns begin with: minus the middle of elements, times the group's sum.
  auto begin_of = [&](const Expr& group) {
    if (!of_rows) return sum_of_group(group, -static_cast<double>(middle));
    const Expr sum = loop::load(group_sums_, group);
    if (factor_ == -middle) return sum;
    return loop::binary(BinaryOp::k_idiv, sum * loop::const_int(sum->type.dtype, -middle),
                        loop::const_int(sum->type.dtype, factor_));
  };
  loop::Buffer totals =
      of_rows ? local_buffer("totals", accumulator_dtype_, acc->size, loop::Scope::kRegister) : acc;
  std::vector<Stmt> prelude;
  if (of_rows) {
    prelude.push_back(loop::alloc(totals));
    prelude.push_back(for_rows([&](Expr m) {
      return for_columns([&](Expr n) {
        return loop::store(totals, tile_.slot(m, n), loop::const_float(accumulator_dtype_, 0));
      });
    }));
  }
  prelude.push_back(for_blocks([&](const BlockPlace& place, int64_t steps) {
    const auto digits = static_cast<int64_t>(digits_.size());
    loop::Buffer sums = local_buffer("sums", DType::kI32, acc->size * digits, loop::Scope::kRegister);
    auto sum_of = [&](int64_t digit, const Expr& slot) { return index(digit * acc->size) + slot; };
    auto each_sum = [&](const std::function<Stmt(const Expr& sum)>& make) {
      return for_rows([&](Expr m) {
        return for_columns([&](Expr n) {
          std::vector<Stmt> of_digits;
          for (int64_t d = 0; d < digits; ++d) of_digits.push_back(make(sum_of(d, tile_.slot(m, n))));
          return loop::block(std::move(of_digits));
        });
      });
    };
    auto no_sums = [&](const loop::Buffer& to) {
      return each_sum([&](const Expr& sum) { return loop::store(to, sum, loop::const_int(to->dtype, 0)); });
    };
    const Expr of_row = loop::binary(BinaryOp::k_idiv, place.a, index(format.group_of_a));
    const bool begins_in_sums = of_rows && middle != 0;
    auto first_sums = [&] {
      if (!begins_in_sums) return no_sums(sums);
      return for_rows([&](Expr m) {
        loop::Var begin = fresh_var("begin", {DType::kI32, 1});
        return loop::block(
            {loop::let(begin, begin_of(loop::load(row_groups_, m) + of_row)),
             for_columns([&](Expr n) { return loop::store(sums, tile_.slot(m, n), loop::var_ref(begin)); })});
      });
    };
    // Steps whose bytes of a row are loaded together, whole words of b.
    const int64_t at_once = std::max(format.bytes_at_once, per_word), words_of_a = at_once / kBytesOfWord;
    // The columns of all these steps come first, then row by row its bytes and products: one row's bytes live at a time.
    auto products = [&](const loop::Buffer& to, const Expr& turn, int64_t count) {
      const int64_t used = (count + kBytesOfWord - 1) / kBytesOfWord;  // words of a
      loop::Buffer columns = local_buffer("columns", dtype, used * plan_.tile_n(), loop::Scope::kRegister);
      auto column = [&](int64_t word, const Expr& n) { return index(word * plan_.tile_n()) + n; };
      std::vector<Stmt> parts{loop::alloc(columns)};
      for (int64_t first = 0; first < count; first += per_word) {
        loop::Buffer words = local_buffer("words", DType::kU32, plan_.tile_n(), loop::Scope::kRegister);
        parts.push_back(loop::alloc(words));
        parts.push_back(read_words(words, place, turn * index(at_once / per_word) + index(first / per_word)));
        for (int64_t step = 0; step < std::min(per_word, count - first); step += kBytesOfWord)
          parts.push_back(for_columns([&](Expr n) {
            return loop::store(columns, column((first + step) / kBytesOfWord, n),
                               bytes_of_word(loop::load(words, n), step));
          }));
      }
      parts.push_back(for_rows([&](Expr m) {
        loop::Buffer held = local_buffer("a", DType::kI32, digits * words_of_a, loop::Scope::kRegister);
        std::vector<Stmt> row{loop::alloc(held)};
        for (int64_t word = 0; word < used; ++word)
          for (int64_t d = 0; d < digits; ++d) {
            const Expr place_of_word = index(d * words_of_a + word);
            if (word * kBytesOfWord % format.bytes_at_once == 0) {
              const int bytes = static_cast<int>(format.bytes_at_once),
                        words = bytes / static_cast<int>(kBytesOfWord);
              Expr from =
                  place_of_row(row_offsets, m) + place.a + turn * index(at_once) + index(word * kBytesOfWord);
              row.push_back(loop::store(
                  held, words == 1 ? place_of_word : loop::ramp(place_of_word, 1, words),
                  loop::bitcast({DType::kI32, words}, loop::load(digits_[static_cast<size_t>(d)],
                                                                 loop::ramp(from, 1, bytes), bytes))));
            }
            row.push_back(for_columns([&](Expr n) {
              Expr sum = sum_of(d, tile_.slot(m, n));
              return loop::store(to, sum,
                                 loop::dot(loop::load(held, place_of_word),
                                           loop::load(columns, column(word, n)), loop::load(to, sum)));
            }));
          }
        return loop::block(std::move(row));
      }));
      return loop::block(std::move(parts));
    };
    // Adds the products of so many turns, and of the steps that remain after them.
    auto add_turns = [&](std::vector<Stmt>& stmts, const loop::Buffer& to, const Expr& first, int64_t whole,
                         int64_t rest) {
      // All of a block of 32 steps: a loop of a few turns would be left by a branch that is hard to predict.
      const int64_t unrolled = std::max<int64_t>(2, 32 / at_once);
      loop::Var turn = index_var("turn");
      if (whole == 1) stmts.push_back(products(to, first, at_once));
      if (whole > 1)
        stmts.push_back(loop::for_loop(
            turn, index(whole), whole <= unrolled ? loop::AxisKind::kUnrolled : loop::AxisKind::kReduction,
            products(to, first + loop::var_ref(turn), at_once)));
      if (rest > 0) stmts.push_back(products(to, first + index(whole), rest));
    };
    // The same by way of halves of words, of so few turns that none overflows: `sums` become these sums, or grow by them.
    auto turns_in_halves = [&](const Expr& first, int64_t whole, int64_t rest, bool grow) {
      loop::Buffer halves = local_buffer("halves", DType::kU32, acc->size * digits, loop::Scope::kRegister);
      std::vector<Stmt> stmts{loop::alloc(halves), no_sums(halves)};
      add_turns(stmts, halves, first, whole, rest);
      stmts.push_back(each_sum([&](const Expr& sum) {
        loop::Var both = fresh_var("both", {DType::kI32, 1});
        const Expr word = loop::var_ref(both), half = loop::const_int(DType::kI32, kBitsOfHalf);
        Expr total = loop::binary(BinaryOp::k_shr, loop::binary(BinaryOp::k_shl, word, half), half) +
                     loop::binary(BinaryOp::k_shr, word, half);
        if (grow) total = loop::load(sums, sum) + total;
        return loop::block({loop::let(both, loop::bitcast({DType::kI32, 1}, loop::load(halves, sum))),
                            loop::store(sums, sum, total)});
      }));
      return loop::block(std::move(stmts));
    };
    const int64_t whole = steps / at_once, rest = steps % at_once;
    const int64_t most = format.words_in_halves * kBytesOfWord / at_once;  // turns at a time, in halves
    std::vector<Stmt> body{loop::alloc(sums)};
    if (most == 0) {
      body.push_back(first_sums());
      add_turns(body, sums, index(0), whole, rest);
    } else if (whole + (rest > 0 ? 1 : 0) <= most) {
      if (begins_in_sums) body.push_back(first_sums());
      body.push_back(turns_in_halves(index(0), whole, rest, begins_in_sums));
    } else {
      body.push_back(first_sums());
      loop::Var part = index_var("part");
      if (whole >= most)
        body.push_back(loop::for_loop(part, index(whole / most), loop::AxisKind::kReduction,
                                      turns_in_halves(loop::var_ref(part) * index(most), most, 0, true)));
      if (whole % most != 0 || rest > 0)
        body.push_back(turns_in_halves(index(whole / most * most), whole % most, rest, true));
    }
    // A block's sums times the scales of columns.
    auto add_block = [&](const Expr& m) {
      loop::Var total = fresh_var("total", {accumulator_dtype_, 1});
      const double element = 1 / static_cast<double>(times);
      return loop::block(
          {loop::let(total, sum_of_group(loop::load(row_groups_, m) + of_row, 1)),
           for_vectors([&](Expr v, Expr l) {
             Expr slot = tile_.slot(m, v ? v * index(lanes_) + l : l);
             Expr sum = loop::cast(accumulator_dtype_, loop::load(sums, slot));
             if (times != 1) sum = sum * loop::const_float(accumulator_dtype_, element);
             if (Expr zero = zero_of_column(place, v, l))
               sum = loop::mul_acc(loop::unary(UnaryOp::k_neg, zero), loop::var_ref(total), sum);
             return loop::store(totals, slot,
                                loop::mul_acc(scale_of_column(place, v, l), sum, loop::load(totals, slot)));
           })});
    };
    body.push_back(for_rows([&](Expr m) {
      if (of_rows) return add_block(m);
      const Expr group = loop::load(row_groups_, m) + of_row;
      loop::Var scale = fresh_var("scale", {accumulator_dtype_, 1}),
                total = fresh_var("total", {accumulator_dtype_, 1}),
                begin = fresh_var("begin", {accumulator_dtype_, 1});
      // What the sum of each column begins with, before its scale.
      Expr first = middle == 0 ? loop::const_float(accumulator_dtype_, 0) : begin_of(group);
      auto in_elements = [&](const Expr& x) {
        return times == 1 ? x : x * loop::const_float(accumulator_dtype_, 1 / static_cast<double>(times));
      };
      // A conversion to floats takes no longer with that factor (scvtf). With several digits the row's scale has the factor:
      // on a Cortex-A76 such conversions took 3 % more instructions for a token, by spills.
      Expr scale_of_row = loop::load(row_scales_, group);
      if (digits > 1) scale_of_row = in_elements(scale_of_row);
      return loop::block(
          {loop::let(scale, scale_of_row), loop::let(total, sum_of_group(group, 1)), loop::let(begin, first),
           for_vectors([&](Expr v, Expr l) {
             Expr slot = tile_.slot(m, v ? v * index(lanes_) + l : l), sum;
             for (int64_t d = 0; d < digits; ++d) {
               Expr digit = loop::cast(accumulator_dtype_, loop::load(sums, sum_of(d, slot)));
               if (digits == 1) digit = in_elements(digit);
               sum = d == 0
                         ? digit
                         : loop::mul_acc(
                               sum, loop::const_float(accumulator_dtype_, static_cast<double>(base_)), digit);
             }
             sum = middle != 0 ? loop::mul_acc(sum, loop::var_ref(scale), loop::var_ref(begin))
                               : sum * loop::var_ref(scale);
             if (Expr zero = zero_of_column(place, v, l))
               sum = loop::mul_acc(loop::unary(UnaryOp::k_neg, zero), loop::var_ref(total), sum);
             return loop::store(acc, slot,
                                loop::mul_acc(scale_of_column(place, v, l), sum, loop::load(acc, slot)));
           })});
    }));
    return loop::block(std::move(body));
  }));
  if (of_rows)
    prelude.push_back(for_rows([&](Expr m) {
      loop::Var scale = fresh_var("scale", {accumulator_dtype_, 1});
      return loop::block(
          {loop::let(scale, loop::load(row_scales_, number_of_row(loop::load(row_groups_, m)))),
           for_columns([&](Expr n) {
             const Expr slot = tile_.slot(m, n);
             return loop::store(
                 acc, slot,
                 loop::mul_acc(loop::load(totals, slot), loop::var_ref(scale), loop::load(acc, slot)));
           })});
    }));
  return loop::block(std::move(prelude));
}

}  // namespace quernel::lower
