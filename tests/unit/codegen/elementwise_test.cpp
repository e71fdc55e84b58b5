// Every operation on every dtype, scalar and vector, on every preset the host runs, against the reference
// arithmetic of loop/evaluate_scalar.h; transcendental functions are in math_test.cpp.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <span>

#include "host_targets.h"
#include "kernel_maker.h"
#include "loop/evaluate_scalar.h"
#include "run_image.h"

namespace quernel::test {
namespace {

constexpr DType kTypes[] = {DType::kF32, DType::kF16, DType::kBF16, DType::kF64, DType::kI8,
                            DType::kU8,  DType::kI16, DType::kU16,  DType::kI32, DType::kU32,
                            DType::kI64, DType::kU64, DType::kBool};
constexpr UnaryOp kUnary[] = {UnaryOp::k_neg,   UnaryOp::k_abs,   UnaryOp::k_sign,    UnaryOp::k_floor,
                              UnaryOp::k_ceil,  UnaryOp::k_round, UnaryOp::k_trunc,   UnaryOp::k_sqrt,
                              UnaryOp::k_recip, UnaryOp::k_not,   UnaryOp::k_bit_not, UnaryOp::k_is_nan,
                              UnaryOp::k_is_inf};
constexpr BinaryOp kBinary[] = {BinaryOp::k_add,  BinaryOp::k_sub,  BinaryOp::k_mul,         BinaryOp::k_div,
                                BinaryOp::k_idiv, BinaryOp::k_fdiv, BinaryOp::k_mod,         BinaryOp::k_fmod,
                                BinaryOp::k_pow,  BinaryOp::k_max,  BinaryOp::k_min,         BinaryOp::k_and,
                                BinaryOp::k_or,   BinaryOp::k_xor,  BinaryOp::k_shl,         BinaryOp::k_shr,
                                BinaryOp::k_eq,   BinaryOp::k_ne,   BinaryOp::k_lt,          BinaryOp::k_le,
                                BinaryOp::k_gt,   BinaryOp::k_ge,   BinaryOp::k_threefry2x32};

// Raw elements in memory, and their bits.
struct Data {
  DType dtype;
  std::vector<uint8_t> bytes;
  Data(DType d, size_t count) : dtype(d), bytes(count * static_cast<size_t>(element_size(d)), 0xcd) {}
  uint64_t get(size_t i) const {
    uint64_t bits = 0;
    std::memcpy(&bits, bytes.data() + i * static_cast<size_t>(element_size(dtype)),
                static_cast<size_t>(element_size(dtype)));
    return bits;
  }
  void set(size_t i, uint64_t bits) {
    std::memcpy(bytes.data() + i * static_cast<size_t>(element_size(dtype)), &bits,
                static_cast<size_t>(element_size(dtype)));
  }
};

std::vector<uint64_t> interesting(DType d) {
  std::vector<uint64_t> values;
  if (d == DType::kBool) return {0, 1};
  if (is_float(d)) {
    for (double v : std::initializer_list<double>{0.0,
                                                  -0.0,
                                                  1.0,
                                                  -1.0,
                                                  0.5,
                                                  -0.5,
                                                  1.5,
                                                  2.5,
                                                  -2.5,
                                                  3.0,
                                                  7.0,
                                                  -7.0,
                                                  0.1,
                                                  100.0,
                                                  -1e4,
                                                  65504.0,
                                                  65520.0,
                                                  1e10,
                                                  -1e19,
                                                  1e38,
                                                  2147483648.0,
                                                  -2147483648.0,
                                                  8388607.5,
                                                  4503599627370495.5,
                                                  1e-40,
                                                  1e-7,
                                                  6e-8,
                                                  INFINITY,
                                                  -INFINITY,
                                                  NAN,
                                                  127.5,
                                                  255.9,
                                                  -128.9,
                                                  32767.4,
                                                  1.8446744073709552e19})
      values.push_back(loop::double_to_bits(d, v));
  } else {
    for (int64_t v : {int64_t{0},
                      int64_t{1},
                      int64_t{-1},
                      int64_t{2},
                      int64_t{-2},
                      int64_t{3},
                      int64_t{5},
                      int64_t{-7},
                      int64_t{7},
                      int64_t{8},
                      int64_t{15},
                      int64_t{16},
                      int64_t{31},
                      int64_t{32},
                      int64_t{33},
                      int64_t{63},
                      int64_t{64},
                      int64_t{100},
                      int64_t{127},
                      int64_t{-128},
                      int64_t{255},
                      int64_t{32767},
                      int64_t{-32768},
                      int64_t{16777217},
                      int64_t{2147483647},
                      int64_t{-2147483648},
                      INT64_MAX,
                      INT64_MIN,
                      (int64_t{1} << 53) + 1,
                      (int64_t{1} << 61) + (int64_t{1} << 53) + 1,
                      -((int64_t{1} << 61) + (int64_t{1} << 53) + 1)})
      values.push_back(loop::int_to_bits(d, v));
  }
  return values;
}

// Pairs: all combinations of interesting values, then random bits.
std::pair<Data, Data> operands(DType d, size_t count) {
  Data a(d, count), b(d, count);
  std::vector<uint64_t> values = interesting(d);
  std::mt19937_64 random(7);
  int width = bit_width(d);
  for (size_t i = 0; i < count; ++i) {
    size_t n = values.size();
    bool combination = i < n * n && count >= n * n;
    uint64_t x = combination ? values[i / n] : random(), y = combination ? values[i % n] : random();
    if (d == DType::kBool) x &= 1, y &= 1;
    if (!combination && is_integer(d) && i % 2) y %= 40;
    if (width < 64) x &= (uint64_t{1} << width) - 1, y &= (uint64_t{1} << width) - 1;
    a.set(i, x);
    b.set(i, y);
  }
  return {a, b};
}

bool equal(DType d, uint64_t got, uint64_t want, bool zero_sign_matters = true) {
  if (got == want) return true;
  if (!is_float(d)) return false;
  double g = loop::bits_to_double(d, got), w = loop::bits_to_double(d, want);
  return (std::isnan(g) && std::isnan(w)) || (!zero_sign_matters && g == 0 && w == 0);
}

constexpr size_t kCount = 1600;

using Builder = std::function<loop::Expr(const std::vector<loop::Expr>&)>;

struct Case {
  DType in, out;
  int lanes;
  bool is_binary;
  Builder build;
  std::function<uint64_t(uint64_t, uint64_t)> want;
  std::string what;
  bool zero_sign_matters = true;
};

bool shares_kernel(const Case& a, const Case& b) {
  return a.in == b.in && a.lanes == b.lanes && a.is_binary == b.is_binary;
}

// out0[i] = f0(a[i], b[i]), out1[i] = f1(a[i], b[i]) ...
loop::Kernel kernel_of(std::span<const Case> cases) {
  KernelMaker m(cases[0].what);
  std::vector<loop::Buffer> inputs = {m.global(cases[0].in, kCount)};
  if (cases[0].is_binary) inputs.push_back(m.global(cases[0].in, kCount));
  loop::Var i = m.var();
  int lanes = cases[0].lanes;
  loop::Expr index = lanes_from(loop::var_ref(i) * loop::const_index(lanes), lanes);
  std::vector<loop::Expr> values;
  for (const loop::Buffer& b : inputs) values.push_back(loop::load(b, index, lanes));
  std::vector<loop::Stmt> body;
  for (const Case& c : cases) body.push_back(loop::store(m.output(c.out, kCount), index, c.build(values)));
  m.kernel.body = loop::for_loop(i, loop::const_index(static_cast<int64_t>(kCount) / lanes),
                                 loop::AxisKind::kSerial, loop::block(body));
  return m.kernel;
}

// One image per preset, several cases to a kernel.
void check(const std::vector<Case>& cases) {
  constexpr size_t kLargestGroup = 12;
  std::vector<std::span<const Case>> groups;
  for (size_t first = 0; first < cases.size();) {
    size_t last = first + 1;
    while (last < cases.size() && last - first < kLargestGroup && shares_kernel(cases[first], cases[last]))
      ++last;
    groups.push_back(std::span(cases).subspan(first, last - first));
    first = last;
  }
  for (const std::string& target : host_targets()) {
    if (target == "x86-64-v2")
      continue;  // next to v1 nothing but rounding is new there, which math_test covers
    std::vector<loop::Kernel> kernels;
    for (auto group : groups) kernels.push_back(kernel_of(group));
    codegen::Image image = compile_or_fail(kernels, target);
    if (image.code.empty()) return;
    MappedImage mapped(image.code);
    for (size_t k = 0; k < groups.size(); ++k) {
      auto [a, b] = operands(groups[k][0].in, kCount);
      std::vector<void*> bindings = {a.bytes.data()};
      if (groups[k][0].is_binary) bindings.push_back(b.bytes.data());
      std::vector<Data> outputs;
      for (const Case& c : groups[k]) outputs.emplace_back(c.out, kCount);
      for (Data& out : outputs) bindings.push_back(out.bytes.data());
      EXPECT_EQ(mapped.call(k, bindings), 0);
      for (size_t n = 0; n < outputs.size(); ++n) {
        const Case& c = groups[k][n];
        int shown = 0;
        for (size_t i = 0; i < kCount && shown < 3; ++i) {
          uint64_t want = c.want(a.get(i), b.get(i)), got = outputs[n].get(i);
          if (equal(c.out, got, want, c.zero_sign_matters)) continue;
          ++shown;
          ADD_FAILURE() << target << ": " << c.what << "(0x" << std::hex << a.get(i) << ", 0x" << b.get(i)
                        << ") = 0x" << got << ", want 0x" << want;
        }
      }
    }
  }
}

std::string name_of(std::string_view op, DType d, int lanes) {
  return std::string(op) + "_" + std::string(to_string(d)) + "_x" + std::to_string(lanes);
}

TEST(Elementwise, unary) {
  std::vector<Case> cases;
  for (DType d : kTypes)
    for (int lanes : {1, 16})
      for (UnaryOp op : kUnary) {
        if (!loop::unary_accepts(op, d)) continue;
        DType out = is_predicate(op) ? DType::kBool : d;
        auto want = [=](uint64_t a, uint64_t) {
          return is_predicate(op) && !is_float(d) ? 0 : loop::evaluate_unary(op, d, a);
        };
        cases.push_back({d, out, lanes, false, [=](const auto& in) { return loop::unary(op, in[0]); }, want,
                         name_of(to_string(op), d, lanes)});
      }
  check(cases);
}

TEST(Elementwise, binary) {
  std::vector<Case> cases;
  for (DType d : kTypes)
    for (int lanes : {1, 16})
      for (BinaryOp op : kBinary) {
        if (!loop::binary_accepts(op, d) || (op == BinaryOp::k_pow && is_float(d))) continue;
        DType out = is_comparison(op) ? DType::kBool : d;
        bool extreme = op == BinaryOp::k_max || op == BinaryOp::k_min;
        cases.push_back({d, out, lanes, true, [=](const auto& in) { return loop::binary(op, in[0], in[1]); },
                         [=](uint64_t a, uint64_t b) { return loop::evaluate_binary(op, d, a, b); },
                         name_of(to_string(op), d, lanes), !extreme});
      }
  check(cases);
}

TEST(Elementwise, binary_with_constants) {
  std::vector<Case> cases;
  for (DType d : kTypes)
    for (BinaryOp op : {BinaryOp::k_idiv, BinaryOp::k_fdiv, BinaryOp::k_mod, BinaryOp::k_fmod,
                        BinaryOp::k_max, BinaryOp::k_shl})
      for (int64_t constant : {0, -1, 7, 8}) {
        if (!loop::binary_accepts(op, d) || d == DType::kBool) continue;
        uint64_t bits = is_float(d) ? loop::double_to_bits(d, static_cast<double>(constant))
                                    : loop::int_to_bits(d, constant);
        cases.push_back({d, d, 16, false,
                         [=](const auto& in) {
                           return loop::binary(op, in[0], loop::const_bits({d, 16}, bits));
                         },
                         [=](uint64_t a, uint64_t) { return loop::evaluate_binary(op, d, a, bits); },
                         name_of(to_string(op), d, 16) + "_by" + std::to_string(constant),
                         op != BinaryOp::k_max});
      }
  check(cases);
}

// 64-bit integers to bf16 in one rounding: the nearest of three candidates, compared exactly.
uint64_t want_cast(DType from, DType to, uint64_t bits) {
  uint64_t guess = loop::evaluate_cast(from, to, bits);
  if (to != DType::kBF16 || is_float(from) || bit_width(from) != 64) return guess;
  long double exact = from == DType::kU64 ? static_cast<long double>(bits)
                                          : static_cast<long double>(static_cast<int64_t>(bits));
  auto error = [&](uint64_t candidate) {
    return std::fabs(exact - bf16_bits_to_f32(static_cast<uint16_t>(candidate)));
  };
  uint64_t best = guess;
  for (uint64_t candidate : {guess - 1, guess + 1})
    if (error(candidate) < error(best) || (error(candidate) == error(best) && candidate % 2 == 0))
      best = candidate;
  return best;
}

TEST(Elementwise, casts) {
  std::vector<Case> cases;
  std::vector<DType> types(std::begin(kTypes), std::end(kTypes));
  types.insert(types.end(), {DType::kF8E4M3, DType::kF8E5M2});
  for (DType from : types)
    for (int lanes : {1, 16})
      for (DType to : types)
        cases.push_back({from, to, lanes, false, [=](const auto& in) { return loop::cast(to, in[0]); },
                         [=](uint64_t a, uint64_t) { return want_cast(from, to, a); },
                         name_of(std::string(to_string(from)) + "_to", to, lanes)});
  check(cases);
}

// As quantisation writes it: what is rounded, moved and saturated is one conversion.
TEST(Elementwise, rounded_casts_to_narrow_integers) {
  std::vector<Case> cases;
  for (DType to : {DType::kI8, DType::kU8, DType::kI16, DType::kU16})
    for (double zero : {0.0, 3.0, -128.0, 255.0, 0.5, 1000.0})
      for (int lanes : {1, 16}) {
        auto moved = [=](uint64_t a, uint64_t) {
          uint64_t rounded = loop::evaluate_unary(UnaryOp::k_round, DType::kF32, a);
          uint64_t by = loop::const_float(DType::kF32, zero)->bits;
          return want_cast(DType::kF32, to, loop::evaluate_binary(BinaryOp::k_add, DType::kF32, rounded, by));
        };
        cases.push_back({DType::kF32, to, lanes, false,
                         [=](const auto& in) {
                           loop::Expr by = loop::const_float(DType::kF32, zero, lanes);
                           return loop::cast(to, loop::unary(UnaryOp::k_round, in[0]) + by);
                         },
                         moved, name_of("rounded_to", to, lanes) + std::to_string(zero)});
      }
  check(cases);
}

TEST(Elementwise, mul_acc_select_and_bitcast) {
  std::vector<Case> cases;
  for (DType d : kTypes)
    for (int lanes : {1, 16}) {
      if (d == DType::kBool) continue;
      // Without FMA there are two roundings: compare where that makes no difference (16-bit floats,
      // integers).
      if (d != DType::kF32 && d != DType::kF64)
        cases.push_back({d, d, lanes, true, [](const auto& in) { return loop::mul_acc(in[0], in[1], in[0]); },
                         [=](uint64_t a, uint64_t b) { return loop::evaluate_mul_acc(d, a, b, a); },
                         name_of("mulacc", d, lanes)});
      cases.push_back(
          {d, d, lanes, true,
           [](const auto& in) {
             return loop::select(loop::binary(BinaryOp::k_lt, in[0], in[1]), in[1], in[0]);
           },
           [=](uint64_t a, uint64_t b) { return loop::evaluate_binary(BinaryOp::k_lt, d, a, b) ? b : a; },
           name_of("select", d, lanes)});
    }
  auto same = [](uint64_t a, uint64_t) { return a; };
  cases.push_back({DType::kF32, DType::kU32, 16, false,
                   [](const auto& in) {
                     return loop::bitcast({DType::kU32, 16}, in[0]);
                   },
                   same, "bitcast"});
  cases.push_back({DType::kI16, DType::kBF16, 1, false,
                   [](const auto& in) {
                     return loop::bitcast({DType::kBF16, 1}, in[0]);
                   },
                   same, "bitcast"});
  check(cases);
}

// Every f16 and many f32 and f64 through the conversions, on targets with and without hardware for it.
TEST(Elementwise, narrow_floats_exhaustively) {
  constexpr size_t n = 1 << 16;
  for (const std::string& target : host_targets()) {
    auto kernel = [&](DType from, DType to) {
      return elementwise("convert", {from}, to, n, 16, [&](const auto& in) { return loop::cast(to, in[0]); });
    };
    std::vector<std::pair<DType, DType>> pairs = {
        {DType::kF16, DType::kF32},    {DType::kF32, DType::kF16},    {DType::kF64, DType::kF16},
        {DType::kF32, DType::kBF16},   {DType::kF64, DType::kBF16},   {DType::kBF16, DType::kF16},
        {DType::kF16, DType::kF8E4M3}, {DType::kF16, DType::kF8E5M2}, {DType::kF32, DType::kF8E4M3},
        {DType::kF64, DType::kF8E5M2}};
    std::vector<loop::Kernel> kernels;
    for (auto [from, to] : pairs) kernels.push_back(kernel(from, to));
    codegen::Image image = compile_or_fail(kernels, target);
    if (image.code.empty()) return;
    MappedImage mapped(image.code);
    for (size_t k = 0; k < pairs.size(); ++k) {
      auto [from, to] = pairs[k];
      Data x(from, n), y(to, n);
      std::mt19937_64 random(k);
      for (size_t i = 0; i < n; ++i) {
        // Around values that are halfway between two of the narrow format.
        uint64_t r = random();
        double near = f16_bits_to_f32(static_cast<uint16_t>(i)) *
                      (1 + std::ldexp(static_cast<double>(static_cast<int64_t>(r % 64)) - 32, -16));
        uint64_t bits = bit_width(from) == 16 ? i : loop::double_to_bits(from, near);
        if (from == DType::kF64 && i % 3 == 0) bits += r % 5 - 2;
        x.set(i, bits);
      }
      mapped.call(k, {x.bytes.data(), y.bytes.data()});
      int shown = 0;
      for (size_t i = 0; i < n && shown < 3; ++i) {
        uint64_t want = loop::evaluate_cast(from, to, x.get(i));
        if (equal(to, y.get(i), want)) continue;
        ++shown;
        ADD_FAILURE() << target << ": " << to_string(from) << " to " << to_string(to) << " of 0x" << std::hex
                      << x.get(i) << " = 0x" << y.get(i) << ", want 0x" << want;
      }
    }
  }
}

}  // namespace
}  // namespace quernel::test
