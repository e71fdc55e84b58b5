// The sum of a contraction's current tile where b is a quantised constant: words of several steps, and scales for blocks of
// steps (ContractionPlan::Blocks).
#include <algorithm>

#include "lower/contract_lowering.h"

namespace quernel::lower {

using loop::AxisKind;
using loop::Expr;
using loop::Stmt;
using schedule::ContractionPlan;

namespace {

// The lowest bit of a step in its word, where elements have `bits` bits.
int64_t first_bit(int64_t bits, int64_t step) {
  constexpr int64_t kByte = 8, kBytes = 4;
  return kByte * (step % kBytes) + bits * (step / kBytes);
}

int64_t mask_of(int64_t bits) { return (int64_t{1} << bits) - 1; }

// What step_in_place of step `step` + `lane` of a word, of `per_word` steps, has to be multiplied by: a power of two.
Expr factor_of_lane(int64_t bits, int64_t per_word, const Expr& step) {
  constexpr int64_t kMantissa = 23, kBias = 127;
  Expr in_byte = loop::binary(BinaryOp::k_and, step, index(3)),
       of_byte = loop::binary(BinaryOp::k_shr, step, index(2));
  Expr first = loop::select(loop::binary(BinaryOp::k_eq, step, index(per_word - 1)), index(0),
                            in_byte * index(8) + of_byte * index(bits));
  Expr exponent = loop::cast(DType::kU32, index(kBias) - first);
  exponent = loop::binary(BinaryOp::k_shl, exponent, loop::const_int(DType::kU32, kMantissa));
  return loop::bitcast({DType::kF32, 1}, exponent);
}

}  // namespace

void ContractLowering::place_blocks(const Expr& column_tile, const std::vector<Expr>& positions) {
  auto base = [&](const Expr& tile, const Dim& panel, const Dim& rows) {
    return packed_tile(tile, panel) + grid_of_b(positions, rows);
  };
  const Expr next = column_tile + index(1);
  words_base_ = base(column_tile, panel_size(), schedule::panel_rows(plan_));
  scales_base_ = base(column_tile, scales_size(), schedule::scale_rows(plan_));
  next_words_ = base(next, panel_size(), schedule::panel_rows(plan_));
  next_scales_ = base(next, scales_size(), schedule::scale_rows(plan_));
}

Stmt ContractLowering::for_blocks(
    const std::function<Stmt(const BlockPlace& place, int64_t steps)>& body) const {
  const ContractionPlan::Axis& last = plan_.axes[plan_.reduction_axes.back()];
  const int64_t steps = plan_.blocks->steps, extent = last.extent.value(),
                per_word = plan_.blocks->per_word();
  const int64_t words = (extent + per_word - 1) / per_word, blocks = (extent + steps - 1) / steps;
  std::vector<std::pair<loop::Var, Dim>> outer;
  Expr a = index(0), line = index(0);
  for (size_t i = 0; i + 1 < plan_.reduction_axes.size(); ++i) {
    const ContractionPlan::Axis& k = plan_.axes[plan_.reduction_axes[i]];
    outer.emplace_back(index_var("k"), k.extent);
    Expr position = loop::var_ref(outer.back().first);
    a = a + position * at(k.a);
    line = line * at(k.extent) + position;
  }
  auto place_of = [&](const Expr& block) {
    const Expr word = (line * index(words) + block * index(steps / per_word)) * index(plan_.panel_n()),
               scale = (line * index(blocks) + block) * index(plan_.panel_n());
    return BlockPlace{.step = line * index(extent) + block * index(steps),
                      .a = a + block * at(last.a * steps),
                      .word = words_base_ + word,
                      .scale = scales_base_ + scale,
                      .next_word = next_words_ + word,
                      .next_scale = next_scales_ + scale};
  };
  std::vector<Stmt> parts;
  const int64_t whole = extent / steps, rest = extent % steps;
  loop::Var block = index_var("block");
  auto of_block = [&](const Expr& number, int64_t count) {
    const BlockPlace place = place_of(number);
    return loop::block({prefetch_block(place, count), body(place, count)});
  };
  if (whole == 1) parts.push_back(of_block(index(0), steps));
  if (whole > 1)
    parts.push_back(
        loop::for_loop(block, index(whole), AxisKind::kReduction, of_block(loop::var_ref(block), steps)));
  if (rest > 0) parts.push_back(of_block(index(whole), rest));
  Stmt stmt = loop::block(std::move(parts));
  for (size_t i = outer.size(); i-- > 0;)
    stmt = loop::for_loop(outer[i].first, at(outer[i].second), AxisKind::kReduction, stmt);
  return stmt;
}

Stmt ContractLowering::for_words(int64_t steps,
                                 const std::function<Stmt(const Expr& word, int64_t steps)>& body) const {
  const int64_t per_word = plan_.blocks->per_word(), whole = steps / per_word, rest = steps % per_word;
  std::vector<Stmt> parts;
  loop::Var word = index_var("word");
  if (whole == 1) parts.push_back(body(index(0), per_word));
  if (whole > 1)
    parts.push_back(
        loop::for_loop(word, index(whole), AxisKind::kReduction, body(loop::var_ref(word), per_word)));
  if (rest > 0) parts.push_back(body(index(whole), rest));
  return loop::block(std::move(parts));
}

Expr ContractLowering::step_of_word(const Expr& words, int64_t step) const {
  constexpr int64_t kHalf = 16, kMantissa = 23, kBias = 127;
  const int64_t bits = plan_.blocks->format.bits, middle = int64_t{1} << (bits - 1);
  const int lanes = words->type.lanes;
  int64_t first = first_bit(bits, step);
  auto constant = [&](int64_t value) { return loop::const_int(DType::kU32, value, lanes); };
  Expr element = words;
  if (first + bits > kMantissa) {
    element = loop::binary(BinaryOp::k_shr, element, constant(kHalf));
    first -= kHalf;
  }
  // Within the mantissa of 2^(23 - first), the lowest bit of the element is worth 1.
  element = loop::binary(BinaryOp::k_and, element, constant(mask_of(bits) << first));
  element = loop::binary(BinaryOp::k_or, element, constant((kBias + kMantissa - first) << kMantissa));
  const int64_t origin = int64_t{1} << (kMantissa - first);
  return loop::bitcast({DType::kF32, lanes}, element) -
         loop::const_float(DType::kF32, static_cast<double>(origin + middle), lanes);
}

Expr ContractLowering::step_in_place(const Expr& words, int64_t step) const {
  const int64_t bits = plan_.blocks->format.bits, first = first_bit(bits, step);
  const int lanes = words->type.lanes;
  auto constant = [&](int64_t value) { return loop::const_int(DType::kU32, value, lanes); };
  // The highest one would be negative there.
  Expr element = step + 1 == plan_.blocks->per_word()
                     ? loop::binary(BinaryOp::k_shr, words, constant(first))
                     : loop::binary(BinaryOp::k_and, words, constant(mask_of(bits) << first));
  return loop::cast(accumulator_dtype_, loop::bitcast({DType::kI32, lanes}, element));
}

Expr ContractLowering::scale_of_column(const BlockPlace& place, const Expr& v, const Expr& l) const {
  return loop::cast(accumulator_dtype_,
                    loop::load(scales_, place.scale + packed_column(v, l, scales_size())));
}

Expr ContractLowering::zero_of_column(const BlockPlace& place, const Expr& v, const Expr& l) const {
  if (!zeros_) return nullptr;
  return loop::cast(accumulator_dtype_, loop::load(zeros_, place.scale + packed_column(v, l, scales_size())));
}

Stmt ContractLowering::read_words(const loop::Buffer& words, const BlockPlace& place,
                                  const Expr& word) const {
  Expr from = place.word + word * index(plan_.panel_n());
  const ContractionPlan::Blocks& format = *plan_.blocks;
  int64_t flipped = 0;  // bits of a word
  if (format.signed_elements && format.group_of_a == 0)
    for (int64_t bit = format.format.bits - 1; bit < 32; bit += format.format.bits)
      flipped |= int64_t{1} << bit;
  return loop::block({prefetch_columns(from), for_vectors([&](Expr v, Expr l) {
                        Expr value = loop::load(b_buffer_, from + packed_column(v, l, panel_size()));
                        if (flipped != 0)
                          value = loop::binary(BinaryOp::k_xor, value,
                                               loop::const_int(DType::kU32, flipped, value->type.lanes));
                        return loop::store(words, v ? v * index(lanes_) + l : l, value);
                      })});
}

Stmt ContractLowering::scale_rows(const loop::Buffer& scaled, const loop::Buffer& row_sums,
                                  const loop::Buffer& row_offsets, const BlockPlace& place,
                                  int64_t steps) const {
  const Dim& stride = plan_.axes[plan_.reduction_axes.back()].a;
  const int64_t bits = plan_.blocks->format.bits, per_word = plan_.blocks->per_word();
  const int64_t lanes = stride == Dim(1) ? lanes_ : 1, at_once = std::max(lanes, per_word);
  return for_rows([&](Expr m) {
    Expr from = place_of_row(row_offsets, m) + place.a, to = m * index(plan_.blocks->steps);
    loop::Buffer sums = local_buffer("lane_sums", accumulator_dtype_, lanes, loop::Scope::kRegister);
    auto for_lanes = [&](const std::function<Stmt(Expr)>& body) {
      loop::Var l = index_var("l");
      return loop::for_loop(l, index(lanes), AxisKind::kVector, body(loop::var_ref(l)));
    };
    auto scale = [&](const Expr& k, const Expr& of_word, const Expr& l) {
      loop::Var a = fresh_var("a", {accumulator_dtype_, 1});
      return loop::block(
          {loop::let(a, read(a_buffer_, from + k * at(stride), nullptr)),
           loop::store(scaled, to + k, loop::var_ref(a) * factor_of_lane(bits, per_word, of_word)),
           loop::store(sums, l, loop::load(sums, l) + loop::var_ref(a))});
    };
    std::vector<Stmt> body{loop::alloc(sums), for_lanes([&](Expr l) {
                             return loop::store(sums, l, loop::const_float(accumulator_dtype_, 0));
                           })};
    loop::Var turn = index_var("turn");
    std::vector<Stmt> vectors;
    for (int64_t first = 0; first < at_once; first += lanes)
      vectors.push_back(for_lanes([&](Expr l) {
        Expr step = index(first) + l;
        return scale(loop::var_ref(turn) * index(at_once) + step,
                     loop::binary(BinaryOp::k_and, step, index(per_word - 1)), l);
      }));
    if (steps >= at_once)
      body.push_back(
          loop::for_loop(turn, index(steps / at_once), AxisKind::kReduction, loop::block(vectors)));
    for (int64_t k = steps / at_once * at_once; k < steps; ++k)
      body.push_back(scale(index(k), index(k % per_word), index(0)));
    Expr total = lanes == 1
                     ? loop::load(sums, index(0))
                     : loop::reduce_lanes(BinaryOp::k_add,
                                          loop::load(sums, loop::ramp(index(0), 1, static_cast<int>(lanes)),
                                                     static_cast<int>(lanes)));
    body.push_back(loop::store(row_sums, m, total));
    return loop::block(std::move(body));
  });
}

Stmt ContractLowering::reduce_blocks(const loop::Buffer& acc, const loop::Buffer& row_offsets) {
  const Dim& stride = plan_.axes[plan_.reduction_axes.back()].a;
  const Expr zero = loop::const_float(accumulator_dtype_, 0);
  // Vectors of elements stay where they are in their words, and rows of a are multiplied by the powers of two for that.
  const bool in_place = lanes_ > 1 && !c_.target.lanes_are_invocations();
  const bool needs_sums = in_place || zeros_;
  const int64_t per_word = plan_.blocks->per_word(), middle = int64_t{1} << (plan_.blocks->format.bits - 1);
  loop::Buffer scaled =
      local_buffer("scaled", accumulator_dtype_, plan_.tile_m * plan_.blocks->steps, loop::Scope::kShared);
  Stmt blocks = for_blocks([&](const BlockPlace& place, int64_t steps) {
    loop::Buffer sums = local_buffer("sums", accumulator_dtype_, acc->size, loop::Scope::kRegister);
    loop::Buffer row_sums =
        local_buffer("row_sums", accumulator_dtype_, plan_.tile_m, loop::Scope::kRegister);
    std::vector<Stmt> body{loop::alloc(sums)};
    body.push_back(for_rows([&](Expr m) {
      return for_columns([&](Expr n) { return loop::store(sums, tile_.slot(m, n), zero); });
    }));
    if (needs_sums) body.push_back(loop::alloc(row_sums));
    if (in_place)
      body.push_back(scale_rows(scaled, row_sums, row_offsets, place, steps));
    else if (needs_sums)
      body.push_back(for_rows([&](Expr m) { return loop::store(row_sums, m, zero); }));
    body.push_back(for_words(steps, [&](const Expr& word, int64_t of_word) {
      loop::Buffer words = local_buffer("words", DType::kU32, plan_.tile_n(), loop::Scope::kRegister);
      std::vector<Stmt> parts{loop::alloc(words), read_words(words, place, word)};
      for (int64_t step = 0; step < of_word; ++step) {
        loop::Buffer columns =
            local_buffer("columns", accumulator_dtype_, plan_.tile_n(), loop::Scope::kRegister);
        parts.push_back(loop::alloc(columns));
        parts.push_back(for_columns([&](Expr n) {
          Expr of_columns = loop::load(words, n);
          return loop::store(columns, n,
                             in_place ? step_in_place(of_columns, step) : step_of_word(of_columns, step));
        }));
        Expr number = word * index(per_word) + index(step);
        parts.push_back(for_rows([&](Expr m) {
          loop::Var a = fresh_var("a", {accumulator_dtype_, 1});
          Expr element =
              in_place
                  ? loop::load(scaled, m * index(plan_.blocks->steps) + number)
                  : read(a_buffer_, place_of_row(row_offsets, m) + place.a + number * at(stride), nullptr);
          std::vector<Stmt> products{
              loop::let(a, element), for_columns([&](Expr n) {
                Expr slot = tile_.slot(m, n);
                return loop::store(
                    sums, slot,
                    loop::mul_acc(loop::var_ref(a), loop::load(columns, n), loop::load(sums, slot)));
              })};
          if (needs_sums && !in_place)
            products.push_back(loop::store(row_sums, m, loop::load(row_sums, m) + loop::var_ref(a)));
          return loop::block(std::move(products));
        }));
      }
      return loop::block(std::move(parts));
    }));
    body.push_back(for_rows([&](Expr m) {
      return for_vectors([&](Expr v, Expr l) {
        Expr slot = tile_.slot(m, v ? v * index(lanes_) + l : l), sum = loop::load(sums, slot);
        Expr origin = zero_of_column(place, v, l);
        if (in_place) {
          Expr shift = loop::const_float(accumulator_dtype_, static_cast<double>(middle));
          origin = origin ? origin + shift : shift;
        }
        if (origin) sum = loop::mul_acc(loop::unary(UnaryOp::k_neg, origin), loop::load(row_sums, m), sum);
        return loop::store(acc, slot,
                           loop::mul_acc(scale_of_column(place, v, l), sum, loop::load(acc, slot)));
      });
    }));
    return loop::block(std::move(body));
  });
  return in_place ? loop::block({loop::alloc(scaled), blocks}) : blocks;
}

Stmt ContractLowering::widen_columns() {
  return for_blocks([&](const BlockPlace& place, int64_t steps) {
    auto column_buffer = [&](const char* name, DType dtype) {
      return local_buffer(name, dtype, plan_.tile_n(), loop::Scope::kRegister);
    };
    loop::Buffer scales = column_buffer("scales", accumulator_dtype_),
                 zeros = column_buffer("zeros", accumulator_dtype_);
    std::vector<Stmt> body{loop::alloc(scales)};
    if (zeros_) body.push_back(loop::alloc(zeros));
    body.push_back(for_vectors([&](Expr v, Expr l) {
      Expr n = v ? v * index(lanes_) + l : l;
      std::vector<Stmt> stores{loop::store(scales, n, scale_of_column(place, v, l))};
      if (zeros_) stores.push_back(loop::store(zeros, n, zero_of_column(place, v, l)));
      return loop::block(std::move(stores));
    }));
    body.push_back(for_words(steps, [&](const Expr& word, int64_t of_word) {
      loop::Buffer words = column_buffer("words", DType::kU32);
      std::vector<Stmt> parts{loop::alloc(words), read_words(words, place, word)};
      for (int64_t step = 0; step < of_word; ++step)
        parts.push_back(for_columns([&](Expr n) {
          Expr element = step_of_word(loop::load(words, n), step);
          if (zeros_) element = element - loop::load(zeros, n);
          Expr number = place.step + word * index(plan_.blocks->per_word()) + index(step);
          return loop::store(gathered_, number * index(plan_.tile_n()) + n, element * loop::load(scales, n));
        }));
      return loop::block(std::move(parts));
    }));
    return loop::block(std::move(body));
  });
}

}  // namespace quernel::lower
