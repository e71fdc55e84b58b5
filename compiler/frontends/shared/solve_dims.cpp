#include "frontends/shared/solve_dims.h"

#include <algorithm>

namespace quernel {
namespace {

constexpr int64_t kMaxBound = int64_t{1} << 20;

bool holds(Symbol symbol, const LeastDim& wanted, int64_t min, int64_t max) {
  symbol.min = min;
  symbol.max = max;
  std::map<std::string, Dim> values{{symbol.name, Dim::symbol(symbol)}};
  return always_le(wanted.least, wanted.dim.substitute(values));
}

// The least x in [lo, hi] that fits, where larger ones fit, too.
template <typename Fits>
std::optional<int64_t> least_that_fits(int64_t lo, int64_t hi, const Fits& fits) {
  if (lo > hi || !fits(hi)) return std::nullopt;
  while (lo < hi) {
    int64_t middle = lo + (hi - lo) / 2;
    if (fits(middle))
      hi = middle;
    else
      lo = middle + 1;
  }
  return lo;
}

// Whether the dim is too small for all values from `first` to `last`.
bool fails_from(const Symbol& symbol, const LeastDim& wanted, int64_t first, int64_t last) {
  for (int64_t value = first; value <= last; ++value) {
    std::optional<int64_t> found = wanted.dim.evaluate({{symbol.name, value}});
    if (found && *found >= wanted.least && value % symbol.multiple_of == 0) return false;
  }
  return true;
}

constexpr int64_t kProbed = 4096;

// Of a value that has none, itself.
int64_t next_multiple(int64_t value, int64_t of) {
  int64_t rest = value % of;
  if (rest <= 0) return value - rest;
  return value > INT64_MAX - (of - rest) ? value : value + (of - rest);
}

}  // namespace

std::optional<int64_t> minimum_for(const Symbol& symbol, const LeastDim& wanted) {
  if (symbol.runtime || symbol.min < 0) return std::nullopt;
  std::optional<int64_t> least =
      least_that_fits(symbol.min, std::min(symbol.max, std::max(kMaxBound, symbol.min)),
                      [&](int64_t min) { return holds(symbol, wanted, min, symbol.max); });
  if (!least || !fails_from(symbol, wanted, std::max(symbol.min, *least - kProbed), *least - 1))
    return std::nullopt;
  least = next_multiple(*least, symbol.multiple_of);
  return *least <= symbol.max ? least : std::nullopt;
}

std::optional<int64_t> maximum_for(const Symbol& symbol, const LeastDim& wanted) {
  if (symbol.runtime || symbol.min < 0) return std::nullopt;
  int64_t most = std::min(symbol.max, kMaxBound);
  std::optional<int64_t> below =
      least_that_fits(most > symbol.min ? 0 : 1, most - symbol.min,
                      [&](int64_t less) { return holds(symbol, wanted, symbol.min, most - less); });
  if (!below) return std::nullopt;
  if (!fails_from(symbol, wanted, most - *below + 1, std::min(symbol.max, most - *below + kProbed)))
    return std::nullopt;
  int64_t max = (most - *below) / symbol.multiple_of * symbol.multiple_of;
  return max >= symbol.min ? std::optional(max) : std::nullopt;
}

std::vector<DimSolution> solve_equal(const Dim& a, const Dim& b) {
  std::vector<DimSolution> solutions;
  Dim difference = a - b;
  std::vector<Symbol> symbols;
  difference.collect_symbols(symbols);
  for (const Symbol& s : symbols) {
    if (s.runtime) continue;
    Dim symbol = Dim::symbol(s);
    Dim rest = difference.substitute(std::map<std::string, int64_t>{{s.name, 0}});
    Dim factor = difference.substitute(std::map<std::string, int64_t>{{s.name, 1}}) - rest;
    if (!(difference == factor * symbol + rest)) continue;
    if (std::optional<Dim> value = divide_exactly(Dim(0) - rest, factor))
      solutions.push_back({symbol, *value});
  }
  return solutions;
}

namespace {

// Calls see(values, a, b) with many values of the symbols of two dims, where both have one, until it says
// false. How often it was called.
template <typename See>
int sample(const Dim& a, const Dim& b, const See& see) {
  constexpr int kSamples = 96;
  std::vector<Symbol> symbols;
  a.collect_symbols(symbols);
  b.collect_symbols(symbols);
  uint64_t state = 1;
  int seen = 0;
  for (int i = 0; i < kSamples; ++i) {
    std::map<std::string, int64_t> values;
    for (const Symbol& s : symbols) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      // Every small value once, if there is one symbol only; else pairs of small ones, and some larger ones.
      int64_t draw = symbols.size() == 1 ? i : static_cast<int64_t>((state >> 40) % (i % 8 ? 24 : 1000));
      int64_t first = next_multiple(std::max<int64_t>(s.min, 0), s.multiple_of);
      int64_t last = s.max < first ? 0 : (s.max - first) / s.multiple_of;
      int64_t count = std::min(last, INT64_MAX - 1) + 1;
      values[s.name] = first + draw % count * s.multiple_of;
    }
    std::optional<int64_t> x = a.evaluate(values), y = b.evaluate(values);
    if (!x || !y) continue;
    ++seen;
    if (!see(values, *x, *y)) return seen;
  }
  return seen;
}

}  // namespace

bool equal_on_samples(const Dim& a, const Dim& b) {
  if (a == b) return true;
  bool equal = true;
  int seen = sample(a, b, [&](const auto&, int64_t x, int64_t y) { return equal = equal && x == y; });
  return equal && seen > 0;
}

bool solutions_are_multiples(const Dim& a, const Dim& b, const std::vector<Symbol>& symbols, int64_t m) {
  bool multiples = true;
  sample(a, b, [&](const auto& values, int64_t x, int64_t y) {
    for (const Symbol& s : symbols) multiples = multiples && (x != y || values.at(s.name) % m == 0);
    return multiples;
  });
  return multiples;
}

}  // namespace quernel
