// Random well-typed graphs over all core ops, for tests that compare two ways of computing the same. Values
// stay tame: the arguments of exp, log, div and the like are brought into range first, and ops that jump
// (floor, comparisons, casts to integers, argmax) only take operands that every correct implementation
// computes to the bit.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "graph/ir.h"

namespace quernel {

struct RandomGraphOptions {
  int min_nodes = 3, max_nodes = 25;  // ops asked for; broadcasts and range limits come on top
  int64_t max_elements = 4096;        // of one value
  bool zero_size_dims = true;
  bool half_floats = true;      // f16 and bf16
  bool all_integers = true;     // i8 u8 i16 u16 u32 u64 besides i32 i64
  bool transcendentals = true;  // ops whose last bits may differ between implementations
  bool contractions = true;
  bool gathers = true;
  bool ordered = true;  // scans, sorts, scatters
  bool bitcasts = true;
  bool storage_dtypes = true;  // i4 u4 f8e4m3 f8e5m2: converted and moved
  bool control = false;        // loops and branches
};

// The same seed and options give the same graph on every machine.
Graph random_graph(uint64_t seed, const RandomGraphOptions& options = {});
// A graph whose shapes are made of the symbols n (1 to 40) and m (even, 2 to 32). All values are small
// integers in one dtype or another, so that sums are exact in any order and every correct implementation
// gives the same bits.
Graph random_symbolic_graph(uint64_t seed, int min_nodes = 4, int max_nodes = 12);

// Inputs for any graph of static shapes: floats are multiples of 1/8 in [-2, 2], integers mostly small with
// some extremes.
std::vector<Tensor> random_inputs(const Graph& graph, uint64_t seed);
// Inputs for a symbolic graph, at these values of the symbols.
std::vector<Tensor> random_inputs_at(const Graph& graph, const std::map<std::string, int64_t>& symbols,
                                     uint64_t seed);

// A small, seeded generator (splitmix64).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  int64_t below(int64_t n) { return static_cast<int64_t>(next() % static_cast<uint64_t>(n)); }
  int64_t between(int64_t lo, int64_t hi) { return lo + below(hi - lo + 1); }  // inclusive
  bool chance(int percent) { return below(100) < percent; }
  template <class T>
  const T& pick(const std::vector<T>& from) {
    return from[static_cast<size_t>(below(static_cast<int64_t>(from.size())))];
  }

 private:
  uint64_t state_;
};

// A constant of the dtype as random_inputs makes them.
Tensor random_tensor(DType dtype, const std::vector<int64_t>& dims, Random& random);

}  // namespace quernel
