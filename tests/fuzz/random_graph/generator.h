// The generator behind random_graph: a growing graph, what is known of each value, and one function per op
// family.
#pragma once

#include <functional>
#include <vector>

#include "graph/build.h"
#include "random_graph/random_graph.h"

namespace quernel::random_graph_parts {

inline constexpr int kInexact = -1;

// |v| <= bound. While exact, v is a multiple of 2^-fraction_bits that its dtype holds, however it is
// computed.
struct Facts {
  double bound = 1;
  int fraction_bits = 0;
};

class Generator {
 public:
  Generator(uint64_t seed, const RandomGraphOptions& o) : options(o), random(seed), build(graph) {}
  void run();

  RandomGraphOptions options;
  Random random;
  Graph graph;
  GraphBuilder build;

 private:
  Facts facts(ValueId v) const { return facts_[static_cast<size_t>(v)]; }
  bool exact(ValueId v) const { return facts(v).fraction_bits != kInexact; }
  Facts facts_of(DType dtype, double bound, int fraction_bits) const;
  // Notes what is known of a new value, and limits its range where needed; gives the value to use.
  ValueId keep(ValueId v, Facts facts);
  ValueId clamp(ValueId v, double lo, double hi);

  std::vector<int64_t> random_dims();
  DType random_dtype();  // that ops compute in
  DType random_storage_dtype();
  ValueId source(DType dtype, const std::vector<int64_t>& dims);    // an input or a constant
  ValueId operand();                                                // of a dtype that ops compute in
  ValueId any_operand();                                            // of any, also those that are only stored
  ValueId operand_if(const std::function<bool(ValueId)>& accepts);  // kNoValue if none is found
  ValueId partner(ValueId v);                                       // a value of v's type, made if need be
  bool broadcasts_to(ValueId from, ValueId to) const;
  ValueId broadcast(ValueId v, ValueId like);

  // Each gives a new value, or kNoValue where its choice of operands does not work.
  ValueId random_node();
  ValueId random_unary();
  ValueId random_inexact_unary(ValueId x);
  ValueId random_binary();
  ValueId random_binary_of_floats(ValueId x);
  ValueId random_binary_of_integers(ValueId x);
  ValueId random_compare(ValueId x);
  ValueId random_ternary();
  ValueId random_cast();
  ValueId random_bitcast(ValueId x, DType to);
  ValueId random_movement();
  ValueId random_reshape(ValueId x);
  ValueId random_expand(ValueId x);
  ValueId random_slice(ValueId x);
  ValueId random_pad(ValueId x);
  ValueId random_view(ValueId x);
  ValueId random_cat();
  ValueId random_reduce();
  ValueId random_contract();
  ValueId random_linear(ValueId x, DType weights);
  ValueId random_convolution(ValueId x, DType weights);
  ValueId random_quantised();
  DType weights_dtype(ValueId x);
  ValueId quantised_constant(const std::vector<int64_t>& dims);
  ValueId rows_of_bytes(const std::vector<int64_t>& dims);
  ValueId weights(DType dtype, const std::vector<int64_t>& dims);
  ValueId random_einsum(ValueId x);
  ValueId finish_contract(ValueId a, ValueId b, Contraction contraction);
  ValueId random_winograd();
  ValueId random_gather();
  ValueId random_scan();
  ValueId random_argsort();
  ValueId random_scatter();
  ValueId random_loop();
  ValueId random_branch();
  std::vector<ValueId> random_body();
  ValueId small(ValueId v);
  void choose_outputs();

  std::vector<Facts> facts_;
  std::vector<ValueId> values_;  // that further nodes may use
  int inputs_ = 0, nesting_ = 0;
  double quantised_weights_ = 0;  // the scale of weights that are to be dequantised
};

}  // namespace quernel::random_graph_parts
