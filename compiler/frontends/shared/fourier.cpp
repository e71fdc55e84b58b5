#include "frontends/shared/fourier.h"

#include <algorithm>
#include <cmath>

#include "frontends/shared/contraction.h"

namespace quernel {
namespace {

constexpr int64_t kMaxMatrix = int64_t{1} << 24;  // elements of a constant made here
const double kPi = std::acos(-1.0);

// e^(i * sign * 2 pi * k / length), exact in the multiples of a quarter turn.
struct Turn {
  double cosine, sine;
};
Turn turn(int64_t k, int64_t length, double sign) {
  k %= length;
  if (4 * k % length == 0) {
    static constexpr Turn kQuarters[] = {{1, 0}, {0, 1}, {-1, 0}, {0, -1}};
    Turn t = kQuarters[4 * k / length];
    return {t.cosine, sign * t.sine};
  }
  double angle = 2 * kPi * static_cast<double>(k) / static_cast<double>(length);
  return {std::cos(angle), sign * std::sin(angle)};
}

// M[k,d,t,c]: part d of result k gets part c of element t times it.
Tensor dft_matrix(DType dtype, const FourierTransform& f, int64_t results, int64_t result_parts,
                  int64_t elements, int64_t parts) {
  std::vector<uint8_t> data(static_cast<size_t>(byte_size(dtype, results * result_parts * elements * parts)));
  int64_t at = 0;
  for (int64_t k = 0; k < results; ++k)
    for (int64_t d = 0; d < result_parts; ++d)
      for (int64_t t = 0; t < elements; ++t)
        for (int64_t c = 0; c < parts; ++c, ++at) {
          Turn w = turn(k * t, f.length, f.sign());
          double value = d == c ? w.cosine : d == 0 ? -w.sine : w.sine;
          // Of a real result every element of the half spectrum but the ends stands for two.
          if (f.to_real && t != 0 && 2 * t != f.length) value *= 2;
          if (f.inverse) value /= static_cast<double>(f.length);
          store_f64(dtype, data.data(), at, value);
        }
  return {dtype, {results, result_parts, elements, parts}, Bytes::own(std::move(data))};
}

// M[k1,k2,d,b,c] of the second of two steps: the turns between the steps times the transform of length
// `inner`.
Tensor second_matrix(DType dtype, const FourierTransform& f, int64_t outer, int64_t inner) {
  std::vector<uint8_t> data(static_cast<size_t>(byte_size(dtype, outer * inner * inner * 4)));
  int64_t at = 0;
  for (int64_t k1 = 0; k1 < outer; ++k1)
    for (int64_t k2 = 0; k2 < inner; ++k2)
      for (int64_t d = 0; d < 2; ++d)
        for (int64_t b = 0; b < inner; ++b)
          for (int64_t c = 0; c < 2; ++c, ++at) {
            Turn w = turn(b * (k1 + outer * k2), f.length, f.sign());
            double value = d == c ? w.cosine : d == 0 ? -w.sine : w.sine;
            store_f64(dtype, data.data(), at, f.inverse ? value / static_cast<double>(inner) : value);
          }
  return {dtype, {outer, inner, 2, inner, 2}, Bytes::own(std::move(data))};
}

}  // namespace

// In f64 a sum whose true value is near zero is as accurate as its operands.
Expected<ValueId> fourier_transform(ImportedNode& n, ValueId x, const FourierTransform& f, int64_t results) {
  Shape dims = n.shape(x);
  QUERNEL_TRY(int64_t elements, n.dim(dims[1]));
  QUERNEL_TRY(int64_t parts, n.dim(dims[3]));
  int64_t result_parts = f.to_real ? 1 : 2;
  DType dtype = DType::kF64;
  x = n.build.cast(x, dtype);
  constexpr int64_t kDirect = 512;  // lengths up to which one step is cheap
  int64_t inner = 1;                // the largest factor up to 64: the second step's length
  for (int64_t factor = 2; factor <= 64 && factor * factor <= f.length; ++factor)
    if (f.length % factor == 0) inner = factor;
  int64_t outer = f.length / inner;
  bool two_steps = f.length > kDirect && inner > 1 && parts == 2 && result_parts == 2 &&
                   elements == f.length && outer * outer * 4 <= kMaxMatrix &&
                   f.length * inner * 4 <= kMaxMatrix;
  if (!two_steps) {
    if (results > kMaxMatrix / result_parts / std::max<int64_t>(elements * parts, 1))
      return n.refuse("a Fourier transform of length " + std::to_string(f.length) + " is not supported");
    ValueId m = n.build.constant(dft_matrix(dtype, f, results, result_parts, elements, parts));
    ContractionBuilder c;
    IndexExpr o = c.axis("o", dims[0]), k = c.axis("k", results), i = c.axis("i", dims[2]),
              d = c.axis("d", result_parts), t = c.reduction("t", elements), p = c.reduction("c", parts);
    return c.emit(n, x, {o, t, i, p}, m, {k, d, t, p}, {o, k, i, d});
  }
  // t = inner * a + b and k = k1 + outer * k2: transforms of length `outer` over a, then of length `inner`
  // over b.
  FourierTransform first = f;
  first.length = outer;
  ValueId m1 = n.build.constant(dft_matrix(dtype, first, outer, 2, outer, 2)),
          m2 = n.build.constant(second_matrix(dtype, f, outer, inner));
  ValueId half;
  {
    ContractionBuilder c;
    IndexExpr o = c.axis("o", dims[0]), k1 = c.axis("k", outer), b = c.axis("b", inner),
              i = c.axis("i", dims[2]), d = c.axis("d", 2), a = c.reduction("a", outer),
              p = c.reduction("c", 2);
    half = c.emit(n, x, {o, a * inner + b, i, p}, m1, {k1, d, a, p}, {o, k1, b, i, d});
  }
  ContractionBuilder c;
  IndexExpr o = c.axis("o", dims[0]), k2 = c.axis("l", inner), k1 = c.axis("k", outer),
            i = c.axis("i", dims[2]), d = c.axis("d", 2), b = c.reduction("b", inner),
            p = c.reduction("c", 2);
  ValueId y = c.emit(n, half, {o, k1, b, i, p}, m2, {k1, k2, d, b, p}, {o, k2 * outer + k1, i, d});
  if (results == f.length) return y;
  return n.build.slice(y, {0, 0, 0, 0}, {dims[0], results, dims[2], 2});
}

ValueId fit_transform_length(ImportedNode& n, ValueId x, int64_t length) {
  Shape shape = n.shape(x), stops = shape;
  stops[1] = min(shape[1], length);
  if (!always_le(shape[1], length)) x = n.build.slice(x, {0, 0, 0, 0}, stops);
  return n.build.pad(x, {0, 0, 0, 0}, {0, Dim(length) - stops[1], 0, 0});
}

Status check_transform_length(ImportedNode& n, int64_t length) {
  if (length >= 1 && length <= (int64_t{1} << 22)) return {};
  return n.refuse("expected a transform length from 1 to 2^22, found " + std::to_string(length));
}

}  // namespace quernel
