// The sum of a contraction's current tile where a step takes several neighbouring elements: words, or vectors whose lanes
// are added.
#include "lower/contract_lowering.h"
#include "lower/words.h"

namespace quernel::lower {

using loop::AxisKind;
using loop::Expr;
using loop::Stmt;
using schedule::ContractionPlan;

Expr ContractLowering::add_steps(std::vector<TermLoop>& loops, const Dim& steps, int64_t unrolled) const {
  Dim others = floordiv(steps, unrolled);
  Expr position = index(0);
  if (!(others == Dim(1))) {
    loops.push_back({index_var("k"), at(others), most(others)});
    position = loop::var_ref(loops.back().var) * index(unrolled);
  }
  if (unrolled == 1) return position;
  loops.push_back({index_var("k"), index(unrolled), unrolled, AxisKind::kUnrolled});
  return position + loop::var_ref(loops.back().var);
}

Stmt ContractLowering::elements_of_word(const loop::Buffer& acc, const loop::Buffer& row_offsets,
                                        const Expr& a_step, const Expr& b_word, int64_t count) {
  constexpr int64_t kBitsOfByte = 8;
  const DType byte = b_buffer_->dtype == DType::kI32 ? DType::kI8 : DType::kU8;
  std::vector<Stmt> steps;
  for (int64_t i = 0; i < count; ++i) {
    loop::Buffer columns =
        local_buffer("columns", accumulator_dtype_, plan_.tile_n(), loop::Scope::kRegister);
    steps.push_back(loop::alloc(columns));
    steps.push_back(for_vectors([&](Expr v, Expr l) {
      Expr word = loop::load(b_buffer_, b_word + packed_column(v, l, panel_size()));
      if (i > 0)
        word = loop::binary(BinaryOp::k_shr, word, loop::const_int(b_buffer_->dtype, kBitsOfByte * i));
      return loop::store(columns, v ? v * index(lanes_) + l : l,
                         loop::cast(accumulator_dtype_, loop::cast(byte, word)));
    }));
    steps.push_back(for_rows([&](Expr m) {
      Expr place = place_of_row(row_offsets, m) + a_step + index(i);
      loop::Var a = fresh_var("a", {accumulator_dtype_, 1});
      return loop::block(
          {loop::let(a, read(a_buffer_, place, nullptr)), for_columns([&](Expr n) {
             Expr slot = m * index(plan_.tile_n()) + n;
             return loop::store(
                 acc, slot, loop::mul_acc(loop::var_ref(a), loop::load(columns, n), loop::load(acc, slot)));
           })});
    }));
  }
  return loop::block(std::move(steps));
}

Stmt ContractLowering::reduce_words(const loop::Buffer& acc, const loop::Buffer& row_offsets,
                                    const Expr& b_base) {
  std::vector<TermLoop> loops;
  Expr a_outer = index(0), row = index(0);
  const ContractionPlan::Axis& last = plan_.axes[plan_.reduction_axes.back()];
  std::vector<int64_t> unrolled = plan_.walk.unrolled;
  unrolled.resize(plan_.reduction_axes.size(), 1);
  for (size_t i = 0; i + 1 < unrolled.size(); ++i) {
    const ContractionPlan::Axis& k = plan_.axes[plan_.reduction_axes[i]];
    Expr position = add_steps(loops, k.extent, unrolled[i]);
    a_outer = a_outer + position * at(k.a);
    row = row * at(k.extent) + position;
  }
  row = row * at(ceildiv(last.extent, plan_.dot)) + index(plan_.dot_shift != 0 ? 1 : 0);
  auto step = [&](const loop::Buffer& sums, const Expr& word, int64_t neighbours) {
    loop::Buffer columns = local_buffer("columns", b_buffer_->dtype, plan_.tile_n(), loop::Scope::kRegister);
    Stmt read = for_vectors([&](Expr v, Expr l) {
      Expr from = b_base + (row + word) * index(plan_.panel_n()) + packed_column(v, l, panel_size());
      return loop::store(columns, v ? v * index(lanes_) + l : l, loop::load(b_buffer_, from));
    });
    Stmt multiply = for_rows([&](Expr m) {
      Expr word_of_a = word_of_neighbours(
          a_buffer_, place_of_row(row_offsets, m) + a_outer + word * index(plan_.dot), neighbours, plan_);
      loop::Var a = fresh_var("a", word_of_a->type);
      return loop::block({loop::let(a, word_of_a), for_columns([&](Expr n) {
                            Expr slot = m * index(plan_.tile_n()) + n;
                            return loop::store(
                                sums, slot,
                                loop::dot(loop::var_ref(a), loop::load(columns, n), loop::load(sums, slot)));
                          })});
    });
    return loop::block({loop::alloc(columns), read, multiply});
  };
  int64_t whole = last.extent.value() / plan_.dot, rest = last.extent.value() % plan_.dot;
  return sum_loops(loops, last.extent.value(), acc, [&](const loop::Buffer& sums) {
    std::vector<Stmt> steps;
    if (whole > 0) {
      std::vector<TermLoop> words;
      Expr word = add_steps(words, whole, unrolled.back());
      steps.push_back(sum_loops(words, plan_.dot, sums,
                                [&](const loop::Buffer& to) { return step(to, word, plan_.dot); }));
    }
    if (rest > 0)
      steps.push_back(plan_.walk.rest_by_elements
                          ? elements_of_word(sums, row_offsets, a_outer + index(whole * plan_.dot),
                                             b_base + (row + index(whole)) * index(plan_.panel_n()), rest)
                          : step(sums, index(whole), rest));
    return loop::block(std::move(steps));
  });
}

Stmt ContractLowering::reduce_vectors(const loop::Buffer& acc, const loop::Buffer& row_offsets,
                                      const Expr& b_base) {
  constexpr int64_t kUnrolledVectors = 4;
  const int64_t lanes = plan_.dot;
  const Dim last =
      own_rows_ ? schedule::reduction_count(plan_) : plan_.axes[plan_.reduction_axes.back()].extent;
  const loop::Buffer& a_rows = own_rows_ ? own_rows_ : a_buffer_;
  std::vector<TermLoop> loops;
  Expr a_outer = index(0), first_vector = index(0);
  for (size_t i = 0; !own_rows_ && i + 1 < plan_.reduction_axes.size(); ++i) {
    const ContractionPlan::Axis& k = plan_.axes[plan_.reduction_axes[i]];
    Expr position = add_steps(loops, k.extent, 1);
    a_outer = a_outer + position * at(k.a);
    first_vector = first_vector * at(k.extent) + position;
  }
  first_vector = first_vector * at(ceildiv(last, plan_.dot));
  loop::Buffer sums = local_buffer("sums", accumulator_dtype_, acc->size, loop::Scope::kRegister);
  auto for_sums = [&](const std::function<Stmt(Expr m, Expr n)>& body) {
    return for_rows([&](Expr m) {
      loop::Var n = index_var("n");
      return loop::for_loop(n, index(tile_.columns()), AxisKind::kUnrolled, body(m, loop::var_ref(n)));
    });
  };
  auto step = [&](const Expr& vector, int64_t count) {
    auto wide = [&](const Expr& bytes) { return loop::cast(accumulator_dtype_, bytes); };
    auto multiply = [&](const Expr& m, const loop::Var& a) {
      loop::Var n = index_var("n");
      Expr place =
          (b_base + (first_vector + vector) * index(plan_.panel_n()) + loop::var_ref(n)) * index(lanes);
      Expr b = loop::load(b_buffer_, loop::ramp(place, 1, plan_.dot), plan_.dot),
           slot = tile_.slot(m, loop::var_ref(n));
      Expr products = loop::reduce_lanes(BinaryOp::k_add, wide(loop::var_ref(a)) * wide(b));
      return loop::for_loop(n, index(tile_.columns()), AxisKind::kUnrolled,
                            loop::store(sums, slot, loop::load(sums, slot) + products));
    };
    return for_rows([&](Expr m) {
      Expr from = loop::ramp(loop::load(row_offsets, m) + a_outer + vector * index(lanes), 1, plan_.dot);
      Expr used = loop::binary(BinaryOp::k_lt, loop::ramp(index(0), 1, plan_.dot),
                               loop::broadcast(index(count), plan_.dot));
      loop::Var a = fresh_var("a", {a_buffer_->dtype, plan_.dot});
      Expr value = count == lanes ? loop::load(a_rows, from, plan_.dot)
                                  : loop::load_guarded(a_rows, from, used,
                                                       loop::const_int(a_buffer_->dtype, 0, plan_.dot));
      return loop::block({loop::let(a, value), multiply(m, a)});
    });
  };
  // What fills up gathered rows is zero.
  int64_t whole = (last.value() + (own_rows_ ? lanes - 1 : 0)) / lanes,
          rest = own_rows_ ? 0 : last.value() % lanes;
  std::vector<Stmt> steps;
  if (whole > 0) {
    loop::Var vector = index_var("k");
    steps.push_back(loop::for_loop(vector, index(whole),
                                   whole <= kUnrolledVectors ? AxisKind::kUnrolled : AxisKind::kReduction,
                                   step(loop::var_ref(vector), lanes)));
  }
  if (rest > 0) steps.push_back(step(index(whole), rest));
  Stmt all = sum_loops(loops, last.value(), sums,
                       [&](const loop::Buffer&) { return loop::block(std::move(steps)); });
  Stmt clear = for_sums([&](const Expr& m, const Expr& n) {
    return loop::store(sums, tile_.slot(m, n), loop::const_int(accumulator_dtype_, 0));
  });
  Stmt keep = for_sums([&](const Expr& m, const Expr& n) {
    return loop::store(acc, tile_.slot(m, n), loop::load(sums, tile_.slot(m, n)));
  });
  return loop::block({loop::alloc(sums), clear, all, keep});
}

}  // namespace quernel::lower
