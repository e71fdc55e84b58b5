// What free dims have to be for a model to make sense.
#pragma once

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "frontends/shared/solve_dims.h"
#include "graph/build.h"

namespace quernel {

// The symbol as a multiple of m, with a range that begins and ends with one.
inline Symbol with_multiple(Symbol s, int64_t m) {
  s.multiple_of = m;
  s.min = std::max<int64_t>(s.min + m - 1, 0) / m * m;
  s.max = s.max / m * m;
  return s;
}

// What has to hold of free dims for the model to make sense: found while importing, then checked whenever the
// model runs, as the symbols' ranges and the inputs' shapes are.
struct DimAssumptions {
  std::map<std::string, int64_t> min;         // by symbol; of one without a range from the options
  std::map<std::string, int64_t> least, max;  // by symbol; what the model demands
  std::map<std::string, Dim> same_as;  // symbol -> what stands for it, of symbols that stand for themselves
  std::map<std::string, int64_t> multiple_of;  // by symbol
  std::vector<std::string> notes;

  // Adds what would make the two equal; false where nothing simple would.
  bool make_equal(const GraphBuilder::UnequalDims& dims) {
    using K = Dim::Kind;
    auto plain = [](const Dim& d) { return d.kind() == K::kSymbol && !d.facts().runtime; };
    for (auto [x, y] : {std::pair(dims.a, dims.b), std::pair(dims.b, dims.a)}) {
      if (dims.only_equal && plain(x) && y.is_const()) return add_constant(x, y);
      if (plain(x) && y.kind() == K::kMin && y.rhs().is_const() && y.lhs() == x)
        return add_max(x.name(), y.rhs().value());
      if (plain(x) && plain(y) && add_same(y, x)) return true;
      if (plain(x) && add_same(x, y)) return true;
    }
    if (make_equal_as_multiple(dims.a, dims.b)) return true;
    for (const DimSolution& s : dims.only_equal ? solve_equal(dims.a, dims.b) : std::vector<DimSolution>())
      if (s.value.is_const() ? add_constant(s.symbol, s.value) : add_same(s.symbol, s.value)) return true;
    return false;
  }

  // Adds a range of one symbol that makes a dim large enough; false where none does.
  bool make_at_least(const LeastDim& wanted) {
    std::vector<Symbol> symbols;
    wanted.dim.collect_symbols(symbols);
    if (symbols.size() != 1) return false;
    if (std::optional<int64_t> from = minimum_for(symbols[0], wanted))
      return add_least(symbols[0].name, *from);
    std::optional<int64_t> most = maximum_for(symbols[0], wanted);
    return most && add_max(symbols[0].name, *most);
  }

 private:
  bool add_same(const Dim& x, const Dim& y) {
    std::vector<Symbol> symbols;
    y.collect_symbols(symbols);
    for (const Symbol& s : symbols)
      if (s.runtime || s.name == x.name() || same_as.count(s.name)) return false;
    if (symbols.empty() || !same_as.emplace(x.name(), y).second) return false;
    replace(x, y);
    notes.push_back("free dims '" + to_string(y) + "' and '" + x.name() + "' must be equal");
    return true;
  }

  bool add_constant(const Dim& x, const Dim& y) {
    const Symbol& facts = x.facts();
    if (y.value() < facts.min || y.value() > facts.max || y.value() % facts.multiple_of != 0) return false;
    if (!same_as.emplace(x.name(), y).second) return false;
    replace(x, y);
    notes.push_back("free dim '" + x.name() + "' must be " + to_string(y));
    return true;
  }

  // In what stands for others.
  void replace(const Dim& x, const Dim& y) {
    for (auto& [name, value] : same_as) value = value.substitute(std::map<std::string, Dim>{{x.name(), y}});
  }

  // Halves that are doubled again equal the whole when it is even. One dim, or all of them; where that cannot
  // be shown, many sizes will do.
  bool make_equal_as_multiple(const Dim& a, const Dim& b) {
    std::vector<Symbol> symbols;
    a.collect_symbols(symbols);
    b.collect_symbols(symbols);
    for (auto equal : {shown_equal, equal_on_samples}) {
      if (equal(a, b)) return false;
      for (const Symbol& s : symbols)
        if (make_multiples(a, b, {s}, equal)) return true;
      if (symbols.size() > 1 && make_multiples(a, b, symbols, equal)) return true;
    }
    return false;
  }

  static bool shown_equal(const Dim& a, const Dim& b) { return a == b; }

  bool make_multiples(const Dim& a, const Dim& b, const std::vector<Symbol>& symbols,
                      bool (*equal)(const Dim&, const Dim&)) {
    constexpr int64_t kMaxMultiple = 256;
    int64_t step = 1;
    std::vector<Symbol> all;
    a.collect_symbols(all);
    b.collect_symbols(all);
    bool several = all.size() > 1;
    for (const Symbol& s : symbols) {
      if (s.runtime || s.multiple_of > kMaxMultiple) return false;
      step = std::lcm(step, s.multiple_of);
    }
    for (int64_t m = 2 * step; m <= kMaxMultiple; m += step) {
      std::map<std::string, Dim> values;
      bool fits = true;
      for (const Symbol& s : symbols) {
        Symbol multiple = with_multiple(s, m);
        fits = fits && multiple.max >= m && multiple.min <= multiple.max;
        values.emplace(s.name, Dim::symbol(multiple));
      }
      if (!fits || !equal(a.substitute(values), b.substitute(values))) continue;
      // Of several dims other ones may do it, too; one dim has sizes between that are given up.
      if (several && !solutions_are_multiples(a, b, symbols, m)) return false;
      for (const Symbol& s : symbols) multiple_of[s.name] = m;
      return true;
    }
    return false;
  }

  // A narrower range than before.
  bool add_least(const std::string& name, int64_t value) {
    auto [it, added] = least.try_emplace(name, value);
    if (!added && it->second >= value) return false;
    it->second = value;
    return true;
  }
  bool add_max(const std::string& name, int64_t value) {
    auto [it, added] = max.try_emplace(name, value);
    if (!added && it->second <= value) return false;
    it->second = value;
    return true;
  }
};

}  // namespace quernel
