#include "random_graph/random_graph.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "graph/passes/passes.h"
#include "random_graph/generator.h"

namespace quernel::random_graph_parts {

int mantissa_bits(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return 52;
    case DType::kF32:
      return 23;
    case DType::kF16:
      return 10;
    case DType::kBF16:
      return 7;
    case DType::kF8E4M3:
      return 3;
    case DType::kF8E5M2:
      return 2;
    default:
      return 63;
  }
}

// What is known of a result: exact only while it fits the dtype's mantissa.
Facts Generator::facts_of(DType dtype, double bound, int fraction_bits) const {
  if (!is_float(dtype)) return {1, 0};
  bool fits = fraction_bits >= 0 && std::log2(std::max(bound, 1.0)) + fraction_bits <= mantissa_bits(dtype);
  return {bound, fits ? fraction_bits : kInexact};
}

ValueId Generator::keep(ValueId v, Facts facts) {
  if (v == kNoValue) return v;
  if (static_cast<size_t>(v) >= facts_.size()) facts_.resize(static_cast<size_t>(v) + 64);
  facts_[static_cast<size_t>(v)] = facts;
  // Large values would overflow somewhere; integers wrap and may be anything.
  if (!is_float(graph.dtype(v)) || facts.bound <= 1000) return v;
  return clamp(v, -8, 8);
}

ValueId Generator::clamp(ValueId v, double lo, double hi) {
  DType dtype = graph.dtype(v);
  if (is_unsigned_integer(dtype)) lo = std::max(lo, 0.0);
  Facts f = facts(v);
  int bits = is_float(dtype) && exact(v) ? std::max(f.fraction_bits, 3) : f.fraction_bits;
  const Shape shape = graph.shape(v);  // a copy: the graph grows
  ValueId result =
      build.add(OpKind::k_clamp, {v, build.full(dtype, shape, lo), build.full(dtype, shape, hi)});
  return keep(result, facts_of(dtype, std::max(std::fabs(lo), std::fabs(hi)), bits));
}

std::vector<int64_t> Generator::random_dims() {
  static const std::vector<int64_t> kDims{1, 1, 2, 2, 3, 4, 5, 7, 8, 16, 17, 33, 67};
  std::vector<int64_t> dims;
  int64_t rank = random.chance(4) ? random.between(6, 8) : random.between(0, 5), count = 1;
  for (int64_t d = 0; d < rank; ++d) {
    int64_t size = options.zero_size_dims && random.chance(1) ? 0 : random.pick(kDims);
    if (count * size > options.max_elements / 2) size = 1;
    dims.push_back(size);
    count *= std::max<int64_t>(size, 1);
  }
  return dims;
}

DType Generator::random_dtype() {
  static const std::vector<DType> kIntegers{DType::kI32, DType::kI64, DType::kU8, DType::kI8};
  static const std::vector<DType> kMore{DType::kI16, DType::kU16, DType::kU32, DType::kU64};
  if (random.chance(40)) return DType::kF32;
  if (random.chance(12)) return DType::kBool;
  if (random.chance(20)) return DType::kF64;
  if (options.half_floats && random.chance(35)) return random.chance(50) ? DType::kF16 : DType::kBF16;
  if (!options.all_integers) return random.chance(50) ? DType::kI32 : DType::kI64;
  return random.pick(random.chance(50) ? kIntegers : kMore);
}

DType Generator::random_storage_dtype() {
  static const std::vector<DType> kStored{DType::kI4, DType::kU4, DType::kF8E4M3, DType::kF8E5M2};
  return random.pick(kStored);
}

ValueId Generator::source(DType dtype, const std::vector<int64_t>& dims) {
  Facts facts = is_float(dtype) ? Facts{2, 3} : Facts{};
  if (inputs_ < 6 && dims.size() <= 8 && random.chance(inputs_ == 0 ? 100 : 45)) {
    ++inputs_;
    return keep(graph.add_input("x" + std::to_string(inputs_), {dtype, make_shape(dims)}), facts);
  }
  if (dtype == DType::kI64 && dims.size() == 1 && random.chance(20)) {
    Attributes attributes;
    for (int64_t i = 0; i < dims[0]; ++i) attributes.shape.push_back(random.between(0, 3));
    return keep(build.add(OpKind::k_dims, {}, std::move(attributes)), facts);
  }
  if (dtype < DType::kI4 && random.chance(30)) {
    double value = dtype == DType::kBool
                       ? static_cast<double>(random.below(2))
                       : static_cast<double>(random.between(is_unsigned_integer(dtype) ? 0 : -2, 2));
    return keep(build.full(dtype, make_shape(dims), value), facts);
  }
  return keep(build.constant(random_tensor(dtype, dims, random)), facts);
}

// The first sources are of dtypes that ops compute in.
ValueId Generator::operand() {
  for (;;)
    if (ValueId v = any_operand(); graph.dtype(v) < DType::kI4) return v;
}

ValueId Generator::any_operand() { return random.pick(values_); }

ValueId Generator::operand_if(const std::function<bool(ValueId)>& accepts) {
  for (int attempt = 0; attempt < 12; ++attempt)
    if (ValueId v = any_operand(); accepts(v)) return v;
  return kNoValue;
}

ValueId Generator::partner(ValueId v) {
  DType dtype = graph.dtype(v);
  ValueId other = operand_if([&](ValueId o) {
    return graph.dtype(o) == dtype && o != v && graph.rank(o) <= graph.rank(v) && broadcasts_to(o, v);
  });
  if (other != kNoValue && random.chance(70)) return broadcast(other, v);
  std::vector<int64_t> dims = static_dims(graph.shape(v));
  if (random.chance(20))
    dims.erase(dims.begin(), dims.begin() + random.below(static_cast<int64_t>(dims.size()) + 1));
  for (int64_t& d : dims)
    if (random.chance(25)) d = 1;
  return broadcast(source(dtype, dims), v);
}

bool Generator::broadcasts_to(ValueId from, ValueId to) const {
  Expected<Shape> shape = broadcast_shapes(graph.shape(from), graph.shape(to));
  return shape && *shape == graph.shape(to);
}

ValueId Generator::broadcast(ValueId v, ValueId like) {
  Facts f = facts(v);
  const Shape shape = graph.shape(like);
  return keep(build.broadcast_to(v, shape), f);
}

void Generator::run() {
  int sources = static_cast<int>(random.between(1, 3));
  for (int i = 0; i < sources; ++i) values_.push_back(source(random_dtype(), random_dims()));
  if (options.storage_dtypes && random.chance(15))
    values_.push_back(source(random_storage_dtype(), random_dims()));
  int64_t wanted = random.between(options.min_nodes, options.max_nodes);
  for (int64_t made = 0, attempts = 0; made < wanted && attempts < wanted * 20; ++attempts) {
    ValueId v = random_node();
    if (!build.ok()) return;
    if (v == kNoValue || graph.def(v) == nullptr) continue;
    int64_t count = element_count(static_dims(graph.shape(v))).value_or(INT64_MAX);
    if (count > options.max_elements) continue;
    values_.push_back(v);
    ++made;
  }
  choose_outputs();
}

ValueId Generator::random_node() {
  if (options.control && nesting_ < 2 && random.chance(12))
    return random.chance(60) ? random_loop() : random_branch();
  int64_t choice = random.below(100);
  if (choice < 18) return random_unary();
  if (choice < 40) return random_binary();
  if (choice < 48) return random_ternary();
  if (choice < 54) return random_cast();
  if (choice < 74) return random_movement();
  if (choice < 77) return random_cat();
  if (choice < 84) return random_reduce();
  if (choice < 90) {
    if (!options.contractions) return kNoValue;
    return random.chance(5) ? random_winograd() : random_contract();
  }
  if (choice < 96) {
    if (!options.ordered) return kNoValue;
    return choice < 92 ? random_scan() : choice < 93 ? random_argsort() : random_scatter();
  }
  return options.gathers ? random_gather() : kNoValue;
}

// Everything that nothing else reads, up to four, and sometimes a value that is read as well.
void Generator::choose_outputs() {
  std::vector<int32_t> uses = graph.use_counts();
  std::vector<ValueId> chosen;
  for (auto it = values_.rbegin(); it != values_.rend() && chosen.size() < 4; ++it)
    if (uses[static_cast<size_t>(*it)] == 0 && graph.def(*it)) chosen.push_back(*it);
  if (random.chance(40)) chosen.push_back(any_operand());
  if (chosen.empty()) chosen.push_back(values_.back());
  for (size_t i = 0; i < chosen.size(); ++i)
    graph.outputs.push_back({"y" + std::to_string(i + 1), chosen[i]});
}

}  // namespace quernel::random_graph_parts

namespace quernel {

Graph random_graph(uint64_t seed, const RandomGraphOptions& options) {
  random_graph_parts::Generator generator(seed, options);
  generator.run();
  if (!generator.build.ok()) fatal(__FILE__, __LINE__, to_string(generator.build.take_status().errors()));
  if (!options.control) return std::move(generator.graph);
  Expected<Graph> graph = eliminate_dead_nodes(generator.graph);  // what bodies have left behind
  if (!graph) fatal(__FILE__, __LINE__, to_string(graph.errors()));
  return std::move(*graph);
}

}  // namespace quernel
