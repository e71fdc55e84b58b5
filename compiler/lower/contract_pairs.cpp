// The accumulators of a contraction's current tile where b is a quantised constant whose words are in pairs of columns and a
// has rows of i8 (ContractionPlan::Blocks::pairs). A vector of bytes of b has eight steps of two columns: dot_2x2 multiplies
// it by eight steps of two rows, int8 dot products by those of one row, whose two partial sums of a column are added once for
// each block.
#include <algorithm>

#include "lower/contract_lowering.h"

namespace quernel::lower {

using loop::Expr;
using loop::Stmt;

namespace {

constexpr int kWords = 4, kHalves = 2;  // words and halves of a vector
constexpr int64_t kBytesOfWord = 4, kBytesOfHalf = 8, kBytesOfVector = 16, kBitsOfByte = 8;

Expr words_from(const loop::Buffer& buffer, const Expr& first) {
  return loop::load(buffer, loop::ramp(first, 1, kWords), kWords);
}
Stmt store_words(const loop::Buffer& buffer, const Expr& first, Expr value) {
  return loop::store(buffer, loop::ramp(first, 1, kWords), std::move(value));
}

// The lower or upper halves of two vectors of four words, side by side.
Expr halves_of(bool upper, const Expr& first, const Expr& second) {
  constexpr loop::Type kTwoHalves{DType::kI64, kHalves};
  return loop::bitcast(first->type, loop::interleave(upper, loop::bitcast(kTwoHalves, first),
                                                     loop::bitcast(kTwoHalves, second)));
}

// The sums of neighbouring words: those of `first`, then those of `second`.
Expr sums_of_neighbours(const Expr& first, const Expr& second) {
  Expr lower = loop::interleave(false, first, second), upper = loop::interleave(true, first, second);
  return loop::interleave(false, lower, upper) + loop::interleave(true, lower, upper);
}

}  // namespace

std::vector<Stmt> ContractLowering::pair_rows(const std::vector<Expr>& base, const Expr& row_tile) {
  const int64_t group = plan_.blocks->group_of_a, pairs = pairs_of_rows(),
                extent = plan_.axes[plan_.reduction_axes.back()].extent.value();
  const int64_t vectors = (extent + kBytesOfVector - 1) / kBytesOfVector,
                groups = (extent + group - 1) / group;
  own_rows_ = local_buffer("pairs", DType::kI32, vectors * kHalves * pairs * kWords, loop::Scope::kShared);
  const int64_t row = plan_.blocks->row_of_a, scales = row != 0 ? 1 : groups;
  pair_scales_ =
      local_buffer("pair_scales", accumulator_dtype_, scales * pairs * kWords, loop::Scope::kShared);
  std::vector<Stmt> body{loop::alloc(own_rows_), loop::alloc(pair_scales_)};
  if (zeros_) {
    pair_sums_ = local_buffer("pair_sums", accumulator_dtype_, groups * pairs * kWords, loop::Scope::kShared);
    body.push_back(loop::alloc(pair_sums_));
  }
  for (int64_t p = 0; p < pairs; ++p) {
    std::vector<Stmt> lets;
    auto offset_of = [&](int64_t m) {
      loop::Var from = index_var("from");
      const Expr row = row_tile * index(plan_.tile_m) + index(std::min<int64_t>(m, plan_.tile_m - 1));
      lets.push_back(loop::let(from, row_offset(base, row, partial_rows_)));
      return loop::var_ref(from);
    };
    const Expr first = offset_of(2 * p), second = offset_of(2 * p + 1);
    loop::Var v = index_var("v"), g = index_var("g");
    auto bytes = [&](const Expr& from) {
      const Expr at_vector = loop::ramp(from + loop::var_ref(v) * index(kBytesOfVector), 1, kBytesOfVector);
      return loop::bitcast({DType::kI32, kWords}, loop::load(digits_[0], at_vector, kBytesOfVector));
    };
    std::vector<Stmt> copies;
    for (int half : {0, 1})
      copies.push_back(store_words(
          own_rows_,
          ((loop::var_ref(v) * index(kHalves) + index(half)) * index(pairs) + index(p)) * index(kWords),
          halves_of(half != 0, bytes(first), bytes(second))));
    lets.push_back(loop::for_loop(v, index(vectors), loop::AxisKind::kSerial, loop::block(copies)));
    // `number`: of `share` neighbours of a row, which have one element of `from`.
    auto in_pairs = [&](const loop::Buffer& from, const loop::Buffer& to, int64_t share, const Expr& number) {
      auto of_row = [&](const Expr& offset) {
        const Expr at = loop::binary(BinaryOp::k_idiv, offset, index(share)) + number;
        return loop::broadcast(from == group_sums_ ? sum_of_group(at, 1) : loop::load(from, at), kWords);
      };
      return store_words(to, (number * index(pairs) + index(p)) * index(kWords),
                         halves_of(false, of_row(first), of_row(second)));
    };
    std::vector<Stmt> of_groups;
    if (row == 0)
      of_groups.push_back(in_pairs(row_scales_, pair_scales_, group, loop::var_ref(g)));
    else
      lets.push_back(in_pairs(row_scales_, pair_scales_, row, index(0)));
    if (zeros_) of_groups.push_back(in_pairs(group_sums_, pair_sums_, group, loop::var_ref(g)));
    if (!of_groups.empty())
      lets.push_back(loop::for_loop(g, index(groups), loop::AxisKind::kSerial, loop::block(of_groups)));
    body.insert(body.end(), lets.begin(), lets.end());
  }
  return body;
}

Stmt ContractLowering::reduce_pairs(const loop::Buffer& acc, const loop::Buffer& row_offsets) {
  const schedule::ContractionPlan::Blocks& format = *plan_.blocks;
  const int64_t bits = format.format.bits, per_word = format.per_word(), vectors = tile_.vectors().vectors;
  const bool meet = plan_.pairs_rows;  // two rows in a product
  const int64_t units = meet ? (tile_.rows() + 1) / 2 : tile_.rows(), pairs = pairs_of_rows();
  // Accumulators of a unit and a vector of columns: first those of its lower two columns, then the others.
  auto slot = [&](int64_t unit, int64_t v, int half) {
    return index(((unit * plan_.tile_v + v) * kHalves + half) * kWords);
  };
  const int64_t slots = units * plan_.tile_v * kHalves * kWords;
  auto each_slot = [&](const std::function<Stmt(int64_t unit, int64_t v, int half)>& make) {
    std::vector<Stmt> stmts;
    for (int64_t unit = 0; unit < units; ++unit)
      for (int64_t v = 0; v < vectors; ++v)
        for (int half : {0, 1}) stmts.push_back(make(unit, v, half));
    return loop::block(std::move(stmts));
  };
  const bool of_rows = format.row_of_a != 0;
  loop::Buffer totals =
      local_buffer("totals", accumulator_dtype_, meet ? slots : acc->size, loop::Scope::kRegister);

  Stmt blocks = for_blocks([&](const BlockPlace& place, int64_t steps) {
    loop::Buffer sums = local_buffer("sums", DType::kI32, slots, loop::Scope::kRegister);
    // The columns of all these steps come first, then row by row its bytes and products: one row's bytes live at a time.
    auto products = [&](const Expr& turn, int64_t count) {
      const int64_t used = count / kBytesOfWord;
      loop::Buffer columns =
          local_buffer("columns", DType::kI32, used * plan_.tile_n(), loop::Scope::kRegister);
      auto column = [&](int64_t word, const Expr& n) { return index(word * plan_.tile_n()) + n; };
      std::vector<Stmt> parts{loop::alloc(columns)};
      for (int64_t first = 0; first < count; first += per_word) {
        loop::Buffer words = local_buffer("words", DType::kU32, plan_.tile_n(), loop::Scope::kRegister);
        parts.push_back(loop::alloc(words));
        parts.push_back(
            read_words(words, place, turn * index(kBytesOfVector / per_word) + index(first / per_word)));
        for (int64_t step = 0; step < std::min(per_word, count - first); step += kBytesOfWord)
          parts.push_back(for_columns([&](Expr n) {
            return loop::store(columns, column((first + step) / kBytesOfWord, n),
                               bytes_of_word(loop::load(words, n), step));
          }));
      }
      const int64_t eights = count / kBytesOfHalf;
      auto multiply = [&](const Expr& a, int64_t unit, int64_t eight) {
        for (int64_t v = 0; v < vectors; ++v)
          for (int half : {0, 1}) {
            const Expr b = words_from(columns, column(eight * kHalves + half, index(v * kWords))),
                       sum = words_from(sums, slot(unit, v, half));
            parts.push_back(store_words(sums, slot(unit, v, half),
                                        meet ? loop::dot_2x2(a, b, sum) : loop::dot(a, b, sum)));
          }
      };
      // Neighbouring pairs of rows are side by side, and loaded together.
      for (int64_t eight = 0; meet && eight < eights; ++eight)
        for (int64_t unit = 0; unit < units; ++unit) {
          const Expr number = loop::binary(BinaryOp::k_idiv, place.step, index(kBytesOfHalf)) +
                              turn * index(kHalves) + index(eight);
          multiply(words_from(own_rows_, (number * index(pairs) + index(unit)) * index(kWords)), unit, eight);
        }
      for (int64_t unit = 0; !meet && unit < units; ++unit) {
        const auto bytes = static_cast<int>(count), words = static_cast<int>(eights);
        loop::Buffer held = local_buffer("a", DType::kI64, kHalves, loop::Scope::kRegister);
        const Expr from = place_of_row(row_offsets, index(unit)) + place.a + turn * index(kBytesOfVector);
        parts.push_back(loop::alloc(held));
        parts.push_back(loop::store(
            held, words == 1 ? index(0) : loop::ramp(index(0), 1, words),
            loop::bitcast({DType::kI64, words}, loop::load(digits_[0], loop::ramp(from, 1, bytes), bytes))));
        for (int64_t eight = 0; eight < eights; ++eight)
          multiply(
              loop::bitcast({DType::kI32, kWords}, loop::broadcast(loop::load(held, index(eight)), kHalves)),
              unit, eight);
      }
      return loop::block(std::move(parts));
    };
    std::vector<Stmt> body{loop::alloc(sums), each_slot([&](int64_t unit, int64_t v, int half) {
                             return store_words(sums, slot(unit, v, half),
                                                loop::const_int(DType::kI32, 0, kWords));
                           })};
    constexpr int64_t kUnrolled = 2;  // blocks of 32 steps, of which 16 are loaded together
    // Steps past the end, up to eight, are zeros in rows and in words.
    const int64_t whole = steps / kBytesOfVector,
                  rest = (steps % kBytesOfVector + kBytesOfHalf - 1) / kBytesOfHalf * kBytesOfHalf;
    loop::Var turn = index_var("turn");
    if (whole > 0)
      body.push_back(loop::for_loop(
          turn, index(whole), whole <= kUnrolled ? loop::AxisKind::kUnrolled : loop::AxisKind::kReduction,
          products(loop::var_ref(turn), kBytesOfVector)));
    if (rest > 0) body.push_back(products(index(whole), rest));

    // Scales: those of columns, and zero points, are vectors of a tile's columns.
    loop::Buffer scales = local_buffer("scales", accumulator_dtype_, plan_.tile_n(), loop::Scope::kRegister),
                 zeros = local_buffer("zeros", accumulator_dtype_, plan_.tile_n(), loop::Scope::kRegister);
    body.push_back(loop::alloc(scales));
    if (zeros_) body.push_back(loop::alloc(zeros));
    body.push_back(for_vectors([&](Expr v, Expr l) {
      const Expr n = v ? v * index(lanes_) + l : l;
      std::vector<Stmt> stores{loop::store(scales, n, scale_of_column(place, v, l))};
      if (zeros_)
        stores.push_back(loop::store(zeros, n, loop::unary(UnaryOp::k_neg, zero_of_column(place, v, l))));
      return loop::block(std::move(stores));
    }));
    // A conversion to floats takes no longer with that factor (scvtf).
    const double element = 1 / static_cast<double>(int64_t{1} << (kBitsOfByte - bits));
    auto in_elements = [&](const Expr& words) {
      Expr floats = loop::cast(accumulator_dtype_, words);
      return element == 1 ? floats : floats * loop::const_float(accumulator_dtype_, element, kWords);
    };
    // Adds a block's sums times their scales to accumulators.
    auto add_block = [&](const loop::Buffer& to, const Expr& at, Expr floats, const Expr& scale_of_row,
                         const Expr& total_of_row, const Expr& scale, const Expr& zero) {
      if (scale_of_row) floats = floats * scale_of_row;
      if (zero) floats = loop::mul_acc(zero, total_of_row, floats);
      return store_words(to, at, loop::mul_acc(scale, floats, words_from(to, at)));
    };
    if (meet) {
      const Expr group = loop::binary(BinaryOp::k_idiv, place.step, index(format.group_of_a));
      for (int64_t unit = 0; unit < units; ++unit) {
        const Expr at = (group * index(pairs) + index(unit)) * index(kWords);
        for (int64_t v = 0; v < vectors; ++v)
          for (int half : {0, 1}) {
            auto twice = [&](const loop::Buffer& from) {  // for both rows
              const Expr of_columns = words_from(from, index(v * kWords));
              return halves_of(half != 0, of_columns, of_columns);
            };
            body.push_back(add_block(totals, slot(unit, v, half),
                                     in_elements(words_from(sums, slot(unit, v, half))),
                                     of_rows ? nullptr : words_from(pair_scales_, at),
                                     zeros_ ? words_from(pair_sums_, at) : nullptr, twice(scales),
                                     zeros_ ? twice(zeros) : nullptr));
          }
      }
      return loop::block(std::move(body));
    }
    for (int64_t m = 0; m < units; ++m) {
      auto of_group = [&](const loop::Buffer& from) {
        const Expr group = loop::load(row_groups_, index(m)) +
                           loop::binary(BinaryOp::k_idiv, place.a, index(format.group_of_a));
        return loop::broadcast(from == group_sums_ ? sum_of_group(group, 1) : loop::load(from, group),
                               kWords);
      };
      for (int64_t v = 0; v < vectors; ++v) {
        const Expr of_columns =
            sums_of_neighbours(words_from(sums, slot(m, v, 0)), words_from(sums, slot(m, v, 1)));
        body.push_back(add_block(
            of_rows ? totals : acc, tile_.slot(index(m), index(v * kWords)), in_elements(of_columns),
            of_rows ? nullptr : of_group(row_scales_), zeros_ ? of_group(group_sums_) : nullptr,
            words_from(scales, index(v * kWords)), zeros_ ? words_from(zeros, index(v * kWords)) : nullptr));
      }
    }
    return loop::block(std::move(body));
  });
  if (!meet && !of_rows) return blocks;

  const Expr no_floats = loop::const_float(accumulator_dtype_, 0, kWords);
  std::vector<Stmt> body{loop::alloc(totals)};
  if (!meet) {
    auto each_vector = [&](const std::function<Stmt(int64_t m, const Expr& at)>& make) {
      for (int64_t m = 0; m < units; ++m)
        for (int64_t v = 0; v < vectors; ++v)
          body.push_back(make(m, tile_.slot(index(m), index(v * kWords))));
    };
    each_vector([&](int64_t, const Expr& at) { return store_words(totals, at, no_floats); });
    body.push_back(blocks);
    each_vector([&](int64_t m, const Expr& at) {
      const Expr scale = loop::load(row_scales_, number_of_row(loop::load(row_groups_, index(m))));
      return store_words(
          acc, at,
          loop::mul_acc(words_from(totals, at), loop::broadcast(scale, kWords), words_from(acc, at)));
    });
    return loop::block(std::move(body));
  }
  body.push_back(each_slot([&](int64_t unit, int64_t v, int half) {
    return store_words(totals, slot(unit, v, half), no_floats);
  }));
  body.push_back(blocks);
  if (of_rows)
    body.push_back(each_slot([&](int64_t unit, int64_t v, int half) {
      const Expr scale = words_from(pair_scales_, index(unit * kWords));
      return store_words(totals, slot(unit, v, half), words_from(totals, slot(unit, v, half)) * scale);
    }));
  for (int64_t m = 0; m < tile_.rows(); ++m)
    for (int64_t v = 0; v < vectors; ++v) {
      const Expr at = tile_.slot(index(m), index(v * kWords));
      const Expr row =
          halves_of(m % 2 != 0, words_from(totals, slot(m / 2, v, 0)), words_from(totals, slot(m / 2, v, 1)));
      body.push_back(store_words(acc, at, words_from(acc, at) + row));
    }
  return loop::block(std::move(body));
}

}  // namespace quernel::lower
