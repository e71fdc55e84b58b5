// The sum of a contraction's current tile: its steps, what they load, and the accumulators.
#include <algorithm>
#include <numeric>

#include "graph/nonzero_dim.h"
#include "loop/rewrite.h"
#include "lower/contract_lowering.h"
#include "lower/store_tile.h"
#include "lower/words.h"
#include "schedule/kernel_limits.h"

namespace quernel::lower {

using loop::AxisKind;
using loop::Expr;
using loop::Stmt;
using schedule::ContractionPlan;

ContractLowering::Steps ContractLowering::steps(int64_t columns) const {
  Steps result;
  Dim b_stride = schedule::reduction_count(plan_) * columns;
  for (int axis : plan_.reduction_axes) {
    const ContractionPlan::Axis& k = plan_.axes[axis];
    b_stride = floordiv(b_stride, nonzero(k.extent));
    result.loops.emplace_back(index_var("k"), k.extent);
    Expr position = loop::var_ref(result.loops.back().first);
    result.a = result.a + offset_in_a(axis, position);
    result.b = result.b + (staged_b() ? staged_->window_offset(axis, position)
                                      : position * at(columns != 0 ? b_stride : k.b));
  }
  return result;
}

Expr ContractLowering::offset_in_a(int axis, const Expr& position) const {
  return staged_a() ? staged_->window_offset(axis, position) : position * at(plan_.axes[axis].a);
}

Expr ContractLowering::grid_of_b(const std::vector<Expr>& positions, const Dim& rows) const {
  Expr base = index(0);
  for (int axis : plan_.grid_axes)
    base = base + positions[axis] *
                      at(plan_.packed ? schedule::packed_stride(plan_, axis, rows) : plan_.axes[axis].b);
  return base;
}

Expr ContractLowering::read(const loop::Buffer& buffer, Expr offset, Expr inside) const {
  Expr zero =
      is_float(buffer->dtype) ? loop::const_float(buffer->dtype, 0) : loop::const_int(buffer->dtype, 0);
  return loop::cast(term_dtype_,
                    inside ? loop::load_guarded(buffer, offset, inside, zero) : loop::load(buffer, offset));
}

Expr ContractLowering::exists(const Expr& column) const {
  return whole_columns() ? nullptr : loop::binary(BinaryOp::k_lt, column, at(columns_));
}

Stmt ContractLowering::gather_column(const std::vector<Expr>& place) {
  std::vector<Expr> positions(plan_.axes.size(), index(0));
  for (size_t i = 0; i < plan_.grid_axes.size(); ++i) positions[plan_.grid_axes[i]] = place[i];
  if (plan_.blocks) {
    place_blocks(place.back(), positions);
    return widen_columns();
  }
  auto gather = [&](const Expr& column_tile) {
    Expr first_column = column_tile * index(plan_.tile_n());
    Expr base = at(plan_.b_offset) + grid_of_b(positions, schedule::panel_rows(plan_)) + first_column;
    Steps from = steps(0), to = steps(plan_.tile_n());
    Stmt stmt = for_columns([&](Expr n) {
      return loop::store(gathered_, to.b + n, read(b_buffer_, base + from.b + n, exists(first_column + n)));
    });
    for (size_t i = from.loops.size(); i-- > 0;) {
      std::vector<Stmt> both{loop::let(to.loops[i].first, loop::var_ref(from.loops[i].first)), stmt};
      stmt = loop::for_loop(from.loops[i].first, at(from.loops[i].second), AxisKind::kSerial,
                            loop::block(std::move(both)));
    }
    return stmt;
  };
  if (!plan_.walk.tail_columns) return gather(place.back());
  Dim last = schedule::column_tile_count(plan_) - 1;
  Stmt whole = last == Dim(0) ? nullptr : gather(place.back());
  RegisterTile others = std::exchange(tile_, RegisterTile(plan_, *plan_.walk.tail_columns, plan_.tile_m));
  Stmt tail = gather(at(last));
  tile_ = others;
  Expr is_whole = loop::binary(BinaryOp::k_lt, place.back(), at(last));
  return whole ? loop::if_then(is_whole, whole, tail) : tail;
}

Expr ContractLowering::base_of_a() const {
  Expr offset = at(plan_.a_offset);
  if (auto first = c_.buffers.first.find(a_); first != c_.buffers.first.end())
    offset = offset - first->second;
  return offset;
}

Stmt ContractLowering::tile(std::vector<Expr> place) {
  if (!plan_.walk.tail_columns) return tile_of_rows(place);
  Expr& column_tile = place[place.size() - 2];
  Dim last = schedule::column_tile_count(plan_) - 1;
  Expr is_whole = loop::binary(BinaryOp::k_lt, column_tile, at(last));
  Stmt whole = last == Dim(0) ? nullptr : tile_of_rows(place);
  column_tile = at(last);
  RegisterTile others = std::exchange(tile_, RegisterTile(plan_, *plan_.walk.tail_columns, plan_.tile_m));
  Stmt rest = tile_of_rows(place);
  tile_ = others;
  return whole ? loop::if_then(is_whole, whole, rest) : rest;
}

Stmt ContractLowering::tile_of_rows(std::vector<Expr> place) {
  if (!plan_.walk.tail_rows) return present_tile(place);
  if (!rows_.is_const()) return tile_of_symbolic_rows(place);
  Expr tile = place.back();
  const bool partial = std::exchange(partial_rows_, false);
  int64_t rows = rows_.value(), m = plan_.tile_m, tiles = (rows + m - 1) / m, others = tiles;
  int64_t window = along_ ? (window_of(*along_) - 1) * along_->window_step : 0;
  std::vector<std::pair<int64_t, Stmt>> apart;
  for (int64_t t = along_ || tiles == 0 ? 0 : tiles - 1; t < tiles; ++t) {
    int64_t of_tile = std::min(m, rows - t * m);
    bool sees_all = true;
    if (along_)
      sees_all =
          t * m * along_->step >= along_->begin && (t * m + m - 1) * along_->step + window < along_->end;
    if (of_tile == m && sees_all) continue;
    place.back() = index(t);
    tile_number_ = t;
    RegisterTile whole =
        std::exchange(tile_, RegisterTile(plan_, tile_.vectors(), static_cast<int>(of_tile)));
    apart.emplace_back(t, present_tile(place));
    tile_ = whole;
    tile_number_.reset();
    --others;
  }
  place.back() = tile;
  Stmt stmt = others > 0 ? present_tile(place) : nullptr;
  for (auto& [t, own] : apart)
    stmt = stmt ? loop::if_then(loop::binary(BinaryOp::k_eq, tile, index(t)), own, stmt) : own;
  partial_rows_ = partial;
  return stmt;
}

Stmt ContractLowering::tile_of_symbolic_rows(const std::vector<Expr>& place) {
  if (!partial_rows_) return present_tile(place);
  Stmt some = present_tile(place);
  partial_rows_ = false;
  Stmt whole = present_tile(place);
  partial_rows_ = true;
  Expr end = (place.back() + index(1)) * index(plan_.tile_m);
  return loop::if_then(loop::binary(BinaryOp::k_le, end, at(rows_)), whole, some);
}

bool ContractLowering::sees(int64_t m, int64_t k) const {
  if (!tile_number_) return true;
  int64_t element = (*tile_number_ * plan_.tile_m + m) * along_->step + k * along_->window_step;
  return element >= along_->begin && element < along_->end;
}

const schedule::Slide* ContractLowering::clipped(int axis) const {
  for (const schedule::Slide& s : plan_.windows) {
    int64_t last = (plan_.axes[s.position].extent.value() - 1) * s.step + (window_of(s) - 1) * s.window_step;
    if (s.window == axis && &s != along_ && (s.begin > 0 || s.end <= last)) return &s;
  }
  return nullptr;
}

Stmt ContractLowering::clipped_loop(const schedule::Slide& s, const loop::Var& k, const Expr& position,
                                    const Stmt& body) const {
  // Steps before the first that sees element `bound`, or one after it.
  auto steps_to = [&](int64_t bound) {
    Expr before = index(bound + s.window_step - 1) - position * index(s.step);
    Expr steps =
        loop::binary(BinaryOp::k_idiv, loop::binary(BinaryOp::k_max, before, index(0)), index(s.window_step));
    return loop::binary(BinaryOp::k_min, steps, index(window_of(s)));
  };
  loop::Var first = index_var("first"), i = index_var("i");
  Stmt step = loop::block({loop::let(k, loop::var_ref(first) + loop::var_ref(i)), body});
  Expr count = steps_to(s.end) - loop::var_ref(first);
  return loop::block(
      {loop::let(first, steps_to(s.begin)), loop::for_loop(i, count, AxisKind::kReduction, step)});
}

Expr ContractLowering::row_offset(const std::vector<Expr>& base, Expr row, bool may_pass_end) const {
  if (may_pass_end) row = loop::binary(BinaryOp::k_min, row, end_row_ - index(1));
  std::vector<Expr> positions = base;
  set_rows(c_, plan_, positions, row);
  Expr offset = base_of_a();
  for (size_t i = 0; i < plan_.axes.size(); ++i)
    if (!plan_.axes[i].reduction && static_cast<int>(i) != plan_.vector_axis)
      offset = offset + positions[i] * at(plan_.axes[i].a);
  return offset;
}

Stmt ContractLowering::present_tile(const std::vector<Expr>& place) {
  std::vector<Stmt> body;
  std::vector<Expr> base(plan_.axes.size(), index(0));
  for (size_t i = 0; i < plan_.grid_axes.size(); ++i) base[plan_.grid_axes[i]] = place[i];
  Expr column_tile = place[place.size() - 2], first_row = place.back() * index(plan_.tile_m);
  row_tile_ = place.back();
  if (begin_row_) first_row = begin_row_ + first_row;
  Expr first_column = column_tile * index(plan_.tile_n());
  positions_ = base;

  loop::Buffer acc = local_buffer("acc", accumulator_dtype_, plan_.tile_m * plan_.tile_n(),
                                  plan_.matrices ? loop::Scope::kShared : loop::Scope::kRegister);
  loop::Buffer row_offsets =
      local_buffer("rows", DType::kI64, along_ || even_rows() ? 1 : plan_.tile_m, loop::Scope::kRegister);
  body.push_back(loop::alloc(acc));

  auto offset_of = [&](const Expr& row, bool may_pass_end) { return row_offset(base, row, may_pass_end); };
  shared_.reset();
  const bool in_place = plan_.matrices && loads_matrices_in_place();
  if (schedule::shares_rows(plan_) && !in_place) {
    shared_.emplace(plan_, plan_.matrices ? b_buffer_->dtype : term_dtype_);
    for (Stmt& s : shared_->begin([&](Expr m) { return offset_of(first_row + m, true); }))
      body.push_back(std::move(s));
  } else if (in_place) {
    // Matrix units need but the tile's first row.
  } else if (along_ || even_rows()) {
    body.push_back(loop::alloc(row_offsets));
    body.push_back(loop::store(row_offsets, index(0), offset_of(first_row, false)));
  } else {
    body.push_back(loop::alloc(row_offsets));
    body.push_back(for_rows([&](Expr m) {
      Expr row = first_row + m;
      if (own_rows_) return loop::store(row_offsets, m, m * index(gathered_row()));
      return loop::store(row_offsets, m,
                         staged_a() ? staged_->row_offset(row - begin_row_) : offset_of(row, partial_rows_));
    }));
  }
  if (plan_.blocks && plan_.blocks->group_of_a != 0 && !own_rows_) {
    row_groups_ = local_buffer("groups", DType::kI64, plan_.tile_m, loop::Scope::kRegister);
    body.push_back(loop::alloc(row_groups_));
    body.push_back(for_rows([&](Expr m) {
      return loop::store(row_groups_, m,
                         loop::binary(BinaryOp::k_idiv, offset_of(first_row + m, partial_rows_),
                                      index(plan_.blocks->group_of_a)));
    }));
  }
  Expr zero = is_float(accumulator_dtype_) ? loop::const_float(accumulator_dtype_, 0)
                                           : loop::const_int(accumulator_dtype_, 0);

  Expr b_base = plan_.packed ? packed_tile(column_tile, panel_size()) : at(plan_.b_offset);
  if (!plan_.packed && !one_column()) b_base = b_base + first_column;
  if (plan_.blocks && !gathered_) place_blocks(column_tile, base);
  b_base = gathered_ ? index(0) : b_base + grid_of_b(base, schedule::panel_rows(plan_));
  if (staged_b()) b_base = staged_->row_offset(staged_line_) + first_column;
  TilePlace tile_place{.base = base,
                       .first_row = first_row,
                       .first_column = first_column,
                       .end_row = partial_rows_ ? end_row_ : nullptr,
                       .all_columns = whole_columns()};
  if (!plan_.column_constants.empty()) {
    Dim rows = schedule::panel_rows(plan_) - static_cast<int64_t>(plan_.column_constants.size());
    tile_place.packed = b_buffer_;
    tile_place.constants = b_base + at(rows * plan_.panel_n());
  }
  if (plan_.matrices) {
    body.push_back(reduce_matrices(acc, b_base, in_place ? offset_of(first_row, false) : nullptr));
    if (plan_.dot_shift != 0) tile_place.added = cancel_shift(b_base, body);
    body.push_back(store_tile(c_, node_, tile_, acc, tile_place));
    return loop::block(std::move(body));
  }
  body.push_back(for_rows([&](Expr m) {
    return for_vectors([&](Expr v, Expr l) {
      Expr n = v ? v * index(lanes_) + l : l;
      Expr first = zero;
      std::vector<Stmt> begin;
      if (plan_.dot_shift != 0)
        first = loop::bitcast({DType::kI32, 1},
                              loop::load(b_buffer_, b_base + packed_column(v, l, panel_size())));
      if (plan_.walk.first_addend >= 0) {
        Expr addend = first_addend(c_, node_, tile_place, m, n, begin);
        first = plan_.dot_shift != 0 ? first + addend : addend;
      }
      begin.push_back(loop::store(acc, m * index(plan_.tile_n()) + n, first));
      return loop::block(std::move(begin));
    });
  }));
  body.push_back(reduce(acc, row_offsets, b_base, first_column));
  body.push_back(store_tile(c_, node_, tile_, acc, tile_place));
  return loop::block(std::move(body));
}

bool ContractLowering::even_rows() const { return plan_.walk.even_rows && !partial_rows_; }

Expr ContractLowering::place_of_row(const loop::Buffer& row_offsets, const Expr& m) const {
  if (!even_rows()) return loop::load(row_offsets, m);
  return loop::load(row_offsets, index(0)) + m * at(plan_.axes[plan_.row_axes.back()].a);
}

BlockSums ContractLowering::block_sums() const {
  auto each_slot = [this](const std::function<Stmt(Expr)>& body) {
    return for_rows([&](Expr m) { return for_columns([&](Expr n) { return body(tile_.slot(m, n)); }); });
  };
  const int64_t slots = plan_.tile_m * plan_.tile_n();
  if (plan_.half_sums) return {DType::kF16, slots, schedule::kHalfTerms, each_slot, 1};
  return {accumulator_dtype_, slots, kContractionBlock, each_slot};
}

Stmt ContractLowering::sum_loops(const std::vector<TermLoop>& loops, int64_t inner_terms,
                                 const loop::Buffer& acc,
                                 const std::function<Stmt(const loop::Buffer& acc)>& body) const {
  if (plan_.half_sums) return sum_halves(loops, inner_terms, acc, body);
  if (in_blocks_) return block_sums().sum(loops, inner_terms, acc, body);
  return in_loops(loops, body(acc));
}

Stmt ContractLowering::sum_halves(const std::vector<TermLoop>& loops, int64_t inner_terms,
                                  const loop::Buffer& acc,
                                  const std::function<Stmt(const loop::Buffer& acc)>& body) const {
  // The innermost loops that have as many terms as one accumulator of f16 adds.
  int64_t terms = inner_terms;
  auto first = loops.end();
  while (first != loops.begin() && terms < schedule::kHalfTerms)
    terms = saturating_product(terms, (--first)->most);
  const std::vector<TermLoop> outer(loops.begin(), first), inner(first, loops.end());
  Stmt sums =
      terms > schedule::kHalfTerms
          ? block_sums().sum(inner, inner_terms, acc, body)
          : block_sums().block(acc, [&](const loop::Buffer& to) { return in_loops(inner, body(to)); });
  return in_loops(outer, sums);
}

Stmt ContractLowering::read_columns(const loop::Buffer& columns, const Expr& first, const Expr& from,
                                    const Expr& first_column) const {
  return for_vectors([&](Expr v, Expr l) {
    Expr n = v ? v * index(lanes_) + l : l;
    Expr place = from + (gathered_      ? n
                         : plan_.packed ? packed_column(v, l, panel_size())
                         : one_column() ? index(0)
                                        : n);
    bool filled = plan_.packed || gathered_ || staged_b() || one_column();  // with zeros past the end
    const loop::Buffer& b = gathered_ ? gathered_ : staged_b() ? staged_->buffer() : b_buffer_;
    Expr value = read(b, place, filled ? nullptr : exists(first_column + n));
    if (plan_.walk.single_bytes)
      value = loop::binary(BinaryOp::k_and, value, loop::const_int(DType::kI32, 255));
    return loop::store(columns, first + n, value);
  });
}

Stmt ContractLowering::prefetch(const loop::Buffer& buffer, const Expr& from, const Dim& panel) const {
  const int64_t vector = lanes_ * element_size(buffer->dtype);
  std::vector<Stmt> lines;
  for (int64_t v = 0; v * lanes_ < tile_.columns(); ++v)
    if (v % plan_.panel_v * vector % schedule::kPrefetchedLine == 0)
      lines.push_back(loop::prefetch(buffer, from + packed_column(index(v), index(0), panel)));
  return loop::block(std::move(lines));
}

Stmt ContractLowering::prefetch_columns(const Expr& from) const {
  if (plan_.walk.prefetch_bytes == 0) return loop::block({});
  return prefetch(b_buffer_, from + index(plan_.walk.prefetch_bytes / element_size(b_buffer_->dtype)),
                  panel_size());
}

Stmt ContractLowering::prefetch_block(const BlockPlace& place, int64_t steps) const {
  const int64_t passes = plan_.walk.prefetch_passes, per_word = plan_.blocks->per_word();
  if (passes == 0) return loop::block({});
  const int64_t rows = (steps + per_word - 1) / per_word, of_pass = (rows + passes - 1) / passes;
  std::vector<Stmt> lines{prefetch(scales_, place.next_scale, scales_size())};
  for (int64_t i = 0; i < of_pass; ++i) {
    const Expr row = passes == 1
                         ? index(i)
                         : loop::binary(BinaryOp::k_fmod, row_tile_ * index(of_pass) + index(i), index(rows));
    lines.push_back(prefetch(b_buffer_, place.next_word + row * index(plan_.panel_n()), panel_size()));
  }
  return loop::block(std::move(lines));
}

Expr ContractLowering::sum_with(const Expr& a, const Expr& b, const Expr& sum) const {
  if (!plan_.walk.single_bytes) return loop::mul_acc(a, b, sum);
  return loop::dot(word_of_byte(a_buffer_, a), word_of_byte(b_buffer_, b), sum);
}

Stmt ContractLowering::reduce_windows(const loop::Buffer& acc, const loop::Buffer& row_offsets,
                                      const Expr& b_base, const Expr& first_column) {
  Steps k = steps(plan_.packed ? plan_.panel_n() : 0);
  auto axis = std::find(plan_.reduction_axes.begin(), plan_.reduction_axes.end(), along_->window);
  size_t along = static_cast<size_t>(axis - plan_.reduction_axes.begin());
  auto at_step = [&](const Expr& e, int64_t step) {
    loop::Substitution number;
    number.replace(k.loops[along].first, index(step));
    return number(e);
  };
  int64_t window = window_of(*along_),
          reach = (tile_.rows() - 1) * along_->step + (window - 1) * along_->window_step;
  loop::Buffer columns =
      local_buffer("columns", accumulator_dtype_, window * plan_.tile_n(), loop::Scope::kRegister);
  loop::Buffer element = local_buffer("element", accumulator_dtype_, plan_.tile_n(), loop::Scope::kRegister);
  std::vector<Stmt> parts{loop::alloc(columns), loop::alloc(element)};
  for (int64_t step = 0; step < window; ++step)
    parts.push_back(
        read_columns(columns, index(step * plan_.tile_n()), b_base + at_step(k.b, step), first_column));
  Expr first = loop::load(row_offsets, index(0)) + at_step(k.a, 0) + first_column;
  for (int64_t seen = 0; seen <= reach; ++seen) {
    std::vector<Stmt> sums;
    for (int64_t step = 0; step < window; ++step) {
      int64_t from = seen - step * along_->window_step, m = from / along_->step;
      if (from < 0 || from % along_->step != 0 || m >= tile_.rows() || !sees(m, step)) continue;
      sums.push_back(for_columns([&](Expr n) {
        Expr slot = tile_.slot(index(m), n), b = loop::load(columns, index(step * plan_.tile_n()) + n);
        return loop::store(acc, slot, sum_with(loop::load(element, n), b, loop::load(acc, slot)));
      }));
    }
    if (sums.empty()) continue;
    parts.push_back(for_columns([&](Expr n) {
      return loop::store(element, n,
                         read(a_buffer_, first + index(seen * along_->stride) + n, exists(first_column + n)));
    }));
    parts.insert(parts.end(), sums.begin(), sums.end());
  }
  Stmt stmt = loop::block(std::move(parts));
  for (size_t i = k.loops.size(); i-- > 0;) {
    if (i == along) continue;
    const schedule::Slide* down = clipped(plan_.reduction_axes[i]);
    stmt = down ? clipped_loop(*down, k.loops[i].first, positions_[down->position], stmt)
                : loop::for_loop(k.loops[i].first, at(k.loops[i].second), AxisKind::kReduction, stmt);
  }
  return stmt;
}

Stmt ContractLowering::step(const Steps& k, const loop::Buffer& acc,
                            const std::function<Expr(Expr, Expr)>& element_of_a, const Expr& b_base,
                            const Expr& first_column) {
  // All vectors of b first, then row by row: one element (or vector) of a lives at a time, so the tile fits
  // the registers.
  loop::Buffer columns = local_buffer("columns", term_dtype_, plan_.tile_n(), loop::Scope::kRegister);
  std::vector<Stmt> parts{loop::alloc(columns)};
  parts.push_back(read_columns(columns, index(0), b_base + k.b, first_column));
  parts.push_back(for_rows([&](Expr m) {
    auto multiply = [&](Expr n, Expr a) {
      Expr slot = tile_.slot(m, n);
      return loop::store(acc, slot, sum_with(a, loop::load(columns, n), loop::load(acc, slot)));
    };
    if (plan_.elementwise) return for_columns([&](Expr n) { return multiply(n, element_of_a(m, n)); });
    loop::Var a = fresh_var("a", {term_dtype_, 1});
    Stmt element = loop::let(a, element_of_a(m, nullptr));
    return loop::block({element, for_columns([&](Expr n) { return multiply(n, loop::var_ref(a)); })});
  }));
  return loop::block(std::move(parts));
}

Stmt ContractLowering::reduce_steps_at_once(const loop::Buffer& acc, const loop::Buffer& row_offsets,
                                            const Expr& b_base, const Expr& first_column) {
  const int64_t at_once = plan_.walk.steps_at_once;
  const Steps k = steps(gathered_ ? plan_.tile_n() : plan_.packed ? plan_.panel_n() : 0);
  const auto& [last, extent] = k.loops.back();
  auto at_step = [&](const Expr& number) {
    loop::Substitution substitution;
    substitution.replace(last, number);
    Steps there = k;
    there.a = substitution(k.a), there.b = substitution(k.b);
    return there;
  };
  auto element_of_a = [&](const Expr& m, const Expr& number) {
    return read(a_buffer_, place_of_row(row_offsets, m) + at_step(number).a, nullptr);
  };
  auto steps_from = [&](const Expr& first, const loop::Buffer& to) {
    loop::Buffer held =
        local_buffer("held", accumulator_dtype_, plan_.tile_m * at_once, loop::Scope::kRegister);
    std::vector<Stmt> body{loop::alloc(held), for_rows([&](Expr m) {
                             loop::Var l = index_var("l");
                             Expr lane = loop::var_ref(l);
                             return loop::for_loop(
                                 l, index(at_once), AxisKind::kVector,
                                 loop::store(held, m * index(at_once) + lane, element_of_a(m, first + lane)));
                           })};
    for (int64_t i = 0; i < at_once; ++i)
      body.push_back(step(
          at_step(first + index(i)), to,
          [&](const Expr& m, const Expr&) { return loop::load(held, m * index(at_once) + index(i)); }, b_base,
          first_column));
    return loop::block(std::move(body));
  };
  std::vector<TermLoop> outer;
  for (size_t i = 0; i + 1 < k.loops.size(); ++i)
    outer.push_back({k.loops[i].first, at(k.loops[i].second), most(k.loops[i].second)});
  const Dim groups = floordiv(extent, at_once), rest = floormod(extent, at_once);
  return sum_loops(outer, most(extent), acc, [&](const loop::Buffer& sums) {
    loop::Var group = index_var("group");
    Stmt whole = sum_loops({{group, at(groups), most(groups)}}, at_once, sums, [&](const loop::Buffer& to) {
      return steps_from(loop::var_ref(group) * index(at_once), to);
    });
    if (rest == Dim(0)) return whole;
    loop::Var single = index_var("single");
    Expr number = at(groups) * index(at_once) + loop::var_ref(single);
    Stmt one = step(
        at_step(number), sums, [&](const Expr& m, const Expr&) { return element_of_a(m, number); }, b_base,
        first_column);
    return loop::block({whole, loop::for_loop(single, at(rest), AxisKind::kReduction, one)});
  });
}

Stmt ContractLowering::each_sum(const loop::Buffer& acc, BinaryOp op,
                                const std::function<Expr(const Expr&)>& of_row) {
  return for_rows([&](Expr m) {
    loop::Var factor = fresh_var("factor", {accumulator_dtype_, 1});
    return loop::block({loop::let(factor, of_row(m)), for_columns([&](Expr n) {
                          Expr slot = tile_.slot(m, n), sum = loop::load(acc, slot);
                          return loop::store(acc, slot, loop::binary(op, sum, loop::var_ref(factor)));
                        })});
  });
}

Stmt ContractLowering::reduce_parts(const loop::Buffer& acc, const loop::Buffer& row_offsets,
                                    const Expr& b_base, const Expr& first_column) {
  Steps k = steps(0);
  const auto& [step_var, extent] = k.loops.back();
  loop::Var part = index_var("part"), of_part = index_var("k");
  Expr first = loop::var_ref(part) * index(parts_->width), count = index(parts_->width);
  if (!(floormod(extent, parts_->width) == Dim(0)))
    count = loop::binary(BinaryOp::k_min, count, at(extent) - first);
  auto sums_to = [&](const loop::Buffer& to) {
    Stmt sums = step(
        k, to,
        [&](Expr m, Expr) {
          return read(a_buffer_, loop::load(row_offsets, m) + loop::var_ref(of_part), nullptr);
        },
        b_base, first_column);
    sums = loop::block({loop::let(step_var, first + loop::var_ref(of_part)), sums});
    return loop::for_loop(of_part, count, AxisKind::kReduction, sums);
  };
  // Of a long sum each part is a block.
  Stmt sums = in_blocks_ ? block_sums().block(acc, sums_to) : sums_to(acc);
  Stmt make = parts_->make(c_, loop::var_ref(part));
  Stmt body = loop::block({make, each_sum(acc, BinaryOp::k_mul, parts_->scale), sums});
  return loop::block({loop::for_loop(part, at(ceildiv(extent, parts_->width)), AxisKind::kReduction, body),
                      each_sum(acc, BinaryOp::k_div, parts_->divisor)});
}

Stmt ContractLowering::reduce(const loop::Buffer& acc, const loop::Buffer& row_offsets, const Expr& b_base,
                              const Expr& first_column) {
  if (parts_) return reduce_parts(acc, row_offsets, b_base, first_column);
  if (plan_.blocks && plan_.blocks->pairs) return reduce_pairs(acc, row_offsets);
  if (plan_.blocks && plan_.blocks->group_of_a != 0) return reduce_bytes(acc, row_offsets);
  if (plan_.blocks && !gathered_) return reduce_blocks(acc, row_offsets);
  if (plan_.sums_lanes) return reduce_vectors(acc, row_offsets, b_base);
  if (plan_.dot > 1) return reduce_words(acc, row_offsets, b_base);
  if (shared_) return reduce_shared(acc, b_base, first_column);
  if (along_) return reduce_windows(acc, row_offsets, b_base, first_column);
  if (plan_.walk.steps_at_once > 1) return reduce_steps_at_once(acc, row_offsets, b_base, first_column);
  Steps k = steps(gathered_ ? plan_.tile_n() : plan_.packed ? plan_.panel_n() : 0);
  auto element_of_a = [&](Expr m, Expr n) {
    Expr a_at = place_of_row(row_offsets, m) + k.a;
    if (!n) return read(a_buffer_, a_at, nullptr);
    if (staged_a()) return read(staged_->buffer(), a_at + first_column + n, nullptr);
    return read(a_buffer_, a_at + first_column + n, exists(first_column + n));
  };
  auto step_to = [&](const loop::Buffer& to) { return step(k, to, element_of_a, b_base, first_column); };
  std::vector<TermLoop> loops;
  for (const auto& [var, extent] : k.loops) loops.push_back({var, at(extent), most(extent)});
  Dim copies = 1;
  for (size_t i = loops.size(); i-- > 0;) {
    if (clipped(plan_.reduction_axes[i])) continue;
    copies = copies * k.loops[i].second;
    bool unroll = plan_.elementwise && copies.is_const() && copies.value() <= schedule::kUnrolledSteps;
    if (staged_b())
      unroll = plan_.staged->columns.window == plan_.reduction_axes[i] && plan_.staged->columns.step > 1;
    if (unroll) loops[i].kind = AxisKind::kUnrolled;
  }
  if (!plan_.walk.unrolled.empty() && plan_.dot == 1) {
    const int64_t unrolled = plan_.walk.unrolled.back();
    const auto [last, extent] = k.loops.back();
    loops.pop_back();
    const Expr number = add_steps(loops, extent, unrolled);
    return sum_loops(loops, 1, acc, [&](const loop::Buffer& to) {
      return loop::block({loop::let(last, number), step_to(to)});
    });
  }
  if (plan_.windows.empty()) return sum_loops(loops, 1, acc, step_to);
  Stmt stmt = step_to(acc);
  for (size_t i = loops.size(); i-- > 0;) {
    const schedule::Slide* down = clipped(plan_.reduction_axes[i]);
    stmt = down ? clipped_loop(*down, loops[i].var, positions_[down->position], stmt)
                : loop::for_loop(loops[i].var, loops[i].extent, loops[i].kind, stmt);
  }
  return stmt;
}

}  // namespace quernel::lower
