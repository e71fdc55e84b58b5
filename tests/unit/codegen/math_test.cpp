// Error bounds of the transcendental functions, against long double libm: every QUERNEL_ULP_STRIDE-th f32 of
// all bit patterns (default 16381), random f64 of all patterns and of the interesting ranges; edge cases of
// pow.
#include <gtest/gtest.h>

#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>

#include "host_targets.h"
#include "kernel_maker.h"
#include "run_image.h"

namespace quernel::test {
namespace {

struct Function {
  UnaryOp op;
  long double (*reference)(long double);
  double f32_ulp, f64_ulp;
};

// The bounds are those of codegen/llvm/README.md.
const Function kFunctions[] = {
    {UnaryOp::k_exp, std::exp, 1.1, 1.1},     {UnaryOp::k_exp2, std::exp2, 1.25, 1.25},
    {UnaryOp::k_expm1, std::expm1, 2, 2},     {UnaryOp::k_log, std::log, 1, 1},
    {UnaryOp::k_log2, std::log2, 1, 1},       {UnaryOp::k_log1p, std::log1p, 1, 1},
    {UnaryOp::k_sin, std::sin, 2, 2.5},       {UnaryOp::k_cos, std::cos, 2, 2.5},
    {UnaryOp::k_tan, std::tan, 3.25, 4},      {UnaryOp::k_asin, std::asin, 1.25, 1.25},
    {UnaryOp::k_acos, std::acos, 1.25, 1.25}, {UnaryOp::k_atan, std::atan, 2, 2},
    {UnaryOp::k_sinh, std::sinh, 2, 2},       {UnaryOp::k_cosh, std::cosh, 1.5, 1.5},
    {UnaryOp::k_tanh, std::tanh, 1.5, 1.5},   {UnaryOp::k_asinh, std::asinh, 2, 2},
    {UnaryOp::k_acosh, std::acosh, 2, 2},     {UnaryOp::k_atanh, std::atanh, 2, 2},
    {UnaryOp::k_erf, std::erf, 1.5, 1.5},
};

template <class T>
double ulp_error(T got, long double want) {
  T rounded = static_cast<T>(want);
  if (std::isnan(rounded)) return std::isnan(got) ? 0 : 1e30;
  if (got == rounded) {
    if (rounded == 0 || std::isinf(rounded)) return std::signbit(got) == std::signbit(rounded) ? 0 : 1e30;
  } else if (!std::isfinite(got) || !std::isfinite(rounded)) {
    // Overflow one unit too early or too late.
    T big = std::numeric_limits<T>::max();
    bool near_overflow =
        std::signbit(got) == std::signbit(rounded) && std::fabs(got) >= big && std::fabs(rounded) >= big;
    return near_overflow ? 1 : 1e30;
  }
  int exponent = 0;
  std::frexp(rounded, &exponent);
  exponent = std::max(exponent, std::numeric_limits<T>::min_exponent);
  long double ulp = std::ldexp(1.0L, exponent - std::numeric_limits<T>::digits);
  return static_cast<double>(std::fabs(static_cast<long double>(got) - want) / ulp);
}

std::vector<float> f32_samples() {
  const char* text = std::getenv("QUERNEL_ULP_STRIDE");
  uint64_t stride = text ? std::strtoull(text, nullptr, 10) : 16381;
  std::vector<float> x;
  for (uint64_t bits = 0; bits <= 0xffffffff; bits += stride)
    x.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  for (float special : {0.0f, -0.0f, 1.0f, -1.0f, 0.5f, -0.5f, INFINITY, -INFINITY, NAN, 0x1p-149f,
                        -0x1p-149f, FLT_MAX, 0x1p20f, 88.7228394f, -103.97f, 0.625f})
    x.push_back(special);
  while (x.size() % 16) x.push_back(0);
  return x;
}

std::vector<double> f64_samples() {
  std::mt19937_64 random(1);
  std::vector<double> x = {0.0, -0.0,      1.0,     -1.0,   0.5,    -0.5,   INFINITY, -INFINITY,
                           NAN, 0x1p-1074, DBL_MAX, 0x1p20, 709.78, -745.1, 0.625,    6.0};
  for (int i = 0; i < 40000; ++i) x.push_back(std::bit_cast<double>(random()));
  for (double range : {1.0, 3.0, 10.0, 30.0, 750.0, 1e6})
    for (int i = 0; i < 10000; ++i)
      x.push_back(range * (static_cast<double>(random() >> 11) * 0x1p-52 - 1.0));
  while (x.size() % 16) x.push_back(0);
  return x;
}

template <class T>
void check_functions(DType dtype, const std::vector<T>& x, bool is_f32) {
  std::vector<std::vector<long double>> references;
  for (const Function& f : kFunctions) {
    std::vector<long double> want(x.size());
    for (size_t i = 0; i < x.size(); ++i) want[i] = f.reference(x[i]);
    references.push_back(std::move(want));
  }
  for (const std::string& target : host_targets()) {
    std::vector<loop::Kernel> kernels;
    for (const Function& f : kFunctions)
      for (int lanes : {1, 16})
        kernels.push_back(elementwise(std::string(to_string(f.op)) + std::to_string(lanes), {dtype}, dtype,
                                      static_cast<int64_t>(x.size()), lanes,
                                      [&](const auto& in) { return loop::unary(f.op, in[0]); }));
    codegen::Image image = compile_or_fail(kernels, target);
    if (image.code.empty()) return;
    MappedImage mapped(image.code);
    for (size_t k = 0; k < std::size(kFunctions); ++k) {
      const Function& f = kFunctions[k];
      std::vector<T> y(x.size()), scalar(x.size());
      mapped.call(2 * k, {const_cast<T*>(x.data()), scalar.data()});
      mapped.call(2 * k + 1, {const_cast<T*>(x.data()), y.data()});
      double worst = 0;
      size_t where = 0;
      bool same = true;
      for (size_t i = 0; i < x.size(); ++i) {
        double error = ulp_error(y[i], references[k][i]);
        if (error > worst) worst = error, where = i;
        same = same && (std::isnan(y[i]) ? std::isnan(scalar[i]) : y[i] == scalar[i]);
      }
      double bound = is_f32 ? f.f32_ulp : f.f64_ulp;
      if (std::getenv("QUERNEL_ULP_PRINT"))
        std::printf("%-10s %-4s %-6s %.3g ulp at %a: %a, want %La\n", target.c_str(),
                    std::string(to_string(dtype)).c_str(), std::string(to_string(f.op)).c_str(), worst,
                    static_cast<double>(x[where]), static_cast<double>(y[where]), references[k][where]);
      EXPECT_LE(worst, bound) << to_string(f.op) << "(" << x[where] << ") = " << y[where] << " on " << target
                              << ", want " << static_cast<double>(references[k][where]);
      EXPECT_TRUE(same) << to_string(f.op) << " on " << target << ": scalars and vectors differ";
    }
  }
}

TEST(Math, f32_within_bounds) { check_functions<float>(DType::kF32, f32_samples(), true); }
TEST(Math, f64_within_bounds) { check_functions<double>(DType::kF64, f64_samples(), false); }

template <class T>
void check_pow(DType dtype, double bound) {
  std::vector<T> specials = {0.0,
                             -0.0,
                             1.0,
                             -1.0,
                             2.0,
                             -2.0,
                             0.5,
                             -0.5,
                             3.0,
                             -3.0,
                             0.9999,
                             1.0001,
                             INFINITY,
                             -INFINITY,
                             NAN,
                             std::numeric_limits<T>::denorm_min(),
                             std::numeric_limits<T>::max(),
                             1e10,
                             -1e10,
                             16777217.0,
                             1e30};
  std::vector<T> x, y;
  for (T a : specials)
    for (T b : specials) x.push_back(a), y.push_back(b);
  std::mt19937_64 random(2);
  auto unit = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  for (int i = 0; i < 100000; ++i) {
    double a = std::exp((unit() - 0.5) * (i % 3 == 0 ? 140 : i % 3 == 1 ? 4 : 0.01));
    // Exponents that keep the result finite, most of them close to over- or underflow.
    double limit = (sizeof(T) == 4 ? 88.0 : 709.0) / std::fabs(std::log(a));
    double b = (unit() * 2 - 1) * limit;
    if (i % 5 == 0) b = std::nearbyint(std::min(b, 1e6));
    if (i % 10 == 0) a = -a;
    x.push_back(static_cast<T>(a)), y.push_back(static_cast<T>(b));
  }
  while (x.size() % 16) x.push_back(1), y.push_back(1);
  for (const std::string& target : host_targets()) {
    auto kernel = elementwise("pow", {dtype, dtype}, dtype, static_cast<int64_t>(x.size()), 16,
                              [](const auto& in) { return loop::binary(BinaryOp::k_pow, in[0], in[1]); });
    codegen::Image image = compile_or_fail({kernel}, target);
    if (image.code.empty()) return;
    MappedImage mapped(image.code);
    std::vector<T> z(x.size());
    mapped.call(0, {x.data(), y.data(), z.data()});
    double worst = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      long double want = std::pow(static_cast<long double>(x[i]), static_cast<long double>(y[i]));
      double error = ulp_error(z[i], want);
      worst = std::max(worst, error);
      EXPECT_LE(error, bound) << "pow(" << x[i] << ", " << y[i] << ") = " << z[i] << " on " << target;
    }
    if (std::getenv("QUERNEL_ULP_PRINT"))
      std::printf("%s pow %s %.3g ulp\n", target.c_str(), std::string(to_string(dtype)).c_str(), worst);
  }
}

TEST(Math, pow_f32) { check_pow<float>(DType::kF32, 0.51); }
TEST(Math, pow_f64) { check_pow<double>(DType::kF64, 4); }

// Constant exponents become multiplications and roots.
TEST(Math, pow_of_constant_exponents) {
  std::vector<float> x = {0.0f,   -0.0f,    1.0f,      -1.0f, 2.5f,   -2.5f, 1e20f, -1e20f,
                          1e-20f, INFINITY, -INFINITY, NAN,   3e-39f, 0.1f,  -7.0f, 65537.0f};
  for (const std::string& target : host_targets())
    for (float exponent : {0.0f, 1.0f, -1.0f, 2.0f, 0.5f, 3.0f, -2.0f, 16.0f, 2.5f, -7.0f, 40.0f}) {
      auto kernel = elementwise("pow", {DType::kF32}, DType::kF32, 16, 16, [&](const auto& in) {
        return loop::binary(BinaryOp::k_pow, in[0], loop::const_float(DType::kF32, exponent, 16));
      });
      codegen::Image image = compile_or_fail({kernel}, target);
      if (image.code.empty()) return;
      MappedImage mapped(image.code);
      std::vector<float> y(16);
      mapped.call(0, {x.data(), y.data()});
      for (size_t i = 0; i < 16; ++i)
        EXPECT_LE(
            ulp_error(y[i], std::pow(static_cast<long double>(x[i]), static_cast<long double>(exponent))),
            0.51)
            << "pow(" << x[i] << ", " << exponent << ") = " << y[i] << " on " << target;
    }
}

}  // namespace
}  // namespace quernel::test
