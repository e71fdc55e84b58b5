// Loops and branches around random nodes.
#include <algorithm>

#include "graph/outline.h"
#include "random_graph/generator.h"

namespace quernel::random_graph_parts {

// Some nodes that may use everything so far; what they give is out of reach afterwards.
std::vector<ValueId> Generator::random_body() {
  size_t before = values_.size();
  ++nesting_;
  for (int64_t wanted = random.between(1, 4), attempts = 0; wanted > 0 && attempts < 40; ++attempts) {
    ValueId v = random_node();
    if (!build.ok()) break;
    if (v == kNoValue || graph.def(v) == nullptr) continue;
    if (element_count(static_dims(graph.shape(v))).value_or(INT64_MAX) > options.max_elements) continue;
    values_.push_back(v);
    --wanted;
  }
  --nesting_;
  std::vector<ValueId> made(values_.begin() + static_cast<std::ptrdiff_t>(before), values_.end());
  values_.resize(before);
  return made;
}

// A value that may be carried: it stays small in all iterations. kNoValue: its dtype is too narrow for that.
ValueId Generator::small(ValueId v) {
  DType dtype = graph.dtype(v);
  if (!is_float(dtype)) return v;
  if (dtype != DType::kF32 && dtype != DType::kF64) return kNoValue;
  return clamp(v, -8, 8);
}

// Of a count, which the results that are scanned have as their first dim, or until a counter says so.
ValueId Generator::random_loop() {
  std::vector<ValueId> initial;
  for (int64_t carried = random.between(0, 2); carried > 0; --carried)
    if (ValueId v = small(operand()); v != kNoValue) initial.push_back(v);
  bool counts = random.chance(70);
  int64_t rounds = random.between(options.zero_size_dims && random.chance(10) ? 0 : 1, 3);
  LoopSpec spec{"i", initial, Dim(rounds), kNoValue};
  if (!counts) {
    ValueId zero = build.full(DType::kI64, {}, 0);
    spec = {"i", initial, std::nullopt, build.binary(BinaryOp::k_lt, zero, static_cast<double>(rounds))};
    spec.initial.push_back(zero);
  }
  size_t before = values_.size(), scanned = 0;
  std::vector<Facts> scanned_facts;
  auto step = [&](const Dim& i, const std::vector<ValueId>& carried) -> std::optional<LoopStep> {
    for (size_t k = 0; k < initial.size(); ++k) {
      keep(carried[k], is_float(graph.dtype(carried[k])) ? Facts{8, kInexact} : Facts{});
      values_.push_back(carried[k]);
    }
    Attributes number;
    number.shape = {i};
    values_.push_back(keep(build.add(OpKind::k_dims, {}, std::move(number)), {3, 0}));
    std::vector<ValueId> made = random_body();
    values_.resize(before);
    LoopStep result;
    for (size_t k = 0; k < initial.size(); ++k) {
      auto fits = std::find_if(made.begin(), made.end(),
                               [&](ValueId v) { return graph.type(v) == graph.type(carried[k]); });
      ValueId next = fits != made.end() ? *fits : random.pick(carried);
      result.carried.push_back(graph.type(next) == graph.type(carried[k]) ? small(next) : carried[k]);
    }
    if (!counts) {
      result.carried.push_back(build.binary(BinaryOp::k_add, carried.back(), 1.0));
      result.condition = build.binary(BinaryOp::k_lt, result.carried.back(), static_cast<double>(rounds));
    } else {
      for (ValueId v : made)
        if (graph.rank(v) < 8 && random.chance(60)) {
          result.scanned.push_back(v);
          scanned_facts.push_back(facts(v));
        }
    }
    scanned = result.scanned.size();
    return build.ok() ? std::optional(std::move(result)) : std::nullopt;
  };
  std::optional<std::vector<ValueId>> results = build_loop(build, spec, step);
  values_.resize(before);
  if (!results || results->empty()) return kNoValue;
  for (size_t k = 0; k < results->size(); ++k) {
    ValueId v = (*results)[k];
    bool carries = k < initial.size();
    if (k >= results->size() - scanned)
      keep(v, scanned_facts[k - (results->size() - scanned)]);
    else
      keep(v, carries && is_float(graph.dtype(v)) ? Facts{8, kInexact} : Facts{});
    values_.push_back(v);
  }
  ValueId last = values_.back();
  values_.pop_back();  // the caller adds it
  return last;
}

// On whether any element of some integers is odd.
ValueId Generator::random_branch() {
  ValueId x =
      operand_if([&](ValueId v) { return graph.dtype(v) == DType::kI32 || graph.dtype(v) == DType::kI64; });
  if (x == kNoValue) return kNoValue;
  std::vector<int64_t> axes(static_cast<size_t>(graph.rank(x)));
  for (size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int64_t>(i);
  ValueId odd = build.binary(BinaryOp::k_ne, build.binary(BinaryOp::k_and, x, 1.0), 0.0);
  ValueId condition = build.reduce(OpKind::k_reduce_or, odd, axes, false);
  // The first side decides the types of the results; the other gives what it has of them.
  std::vector<ValueId> first;
  auto yes = [&]() -> std::optional<std::vector<ValueId>> { return first = random_body(); };
  std::vector<Facts> joined;
  auto no = [&]() -> std::optional<std::vector<ValueId>> {
    std::vector<ValueId> made = random_body(), results;
    for (ValueId v : first) {
      auto fits =
          std::find_if(made.begin(), made.end(), [&](ValueId o) { return graph.type(o) == graph.type(v); });
      ValueId other = fits != made.end()
                          ? *fits
                          : keep(build.full(graph.dtype(v) < DType::kI4 ? graph.dtype(v) : DType::kF32,
                                            graph.shape(v), 1),
                                 {1, 0});
      if (graph.dtype(other) != graph.dtype(v)) other = keep(build.cast(other, graph.dtype(v)), {1, 0});
      Facts a = facts(v), b = facts(other);
      bool both = a.fraction_bits != kInexact && b.fraction_bits != kInexact;
      joined.push_back(
          {std::max(a.bound, b.bound), both ? std::max(a.fraction_bits, b.fraction_bits) : kInexact});
      results.push_back(other);
    }
    return results;
  };
  std::optional<std::vector<ValueId>> results =
      build_branch(build, "odd", condition, yes, no, random.chance(50) ? 0 : 4);
  if (!results || results->empty()) return kNoValue;
  for (size_t k = 0; k < results->size(); ++k) {
    keep((*results)[k], joined[k]);
    if (k > 0) values_.push_back((*results)[k]);
  }
  return (*results)[0];
}

}  // namespace quernel::random_graph_parts
