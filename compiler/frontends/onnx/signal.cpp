// Fourier transforms as products with constant matrices, and the constants that accompany them.
#include <algorithm>
#include <cmath>

#include "frontends/onnx/operators.h"
#include "frontends/shared/contraction.h"

namespace quernel::onnx_import {
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

struct Transform {
  int64_t length = 1;  // of the transform
  bool inverse = false;
  // The result is real and the input the first half of its spectrum.
  bool to_real = false;
  double sign() const { return inverse ? 1 : -1; }
};

// M[k,d,t,c]: part d of result k gets part c of element t times it.
Tensor dft_matrix(DType dtype, const Transform& f, int64_t results, int64_t result_parts, int64_t elements,
                  int64_t parts) {
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
Tensor second_matrix(DType dtype, const Transform& f, int64_t outer, int64_t inner) {
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

// x [outer, elements, inner, parts] with its second dim transformed: [outer, results, inner, result parts].
//
// Computed in f64: a sum whose true value is near zero is then as accurate as its operands.
Expected<ValueId> transform(NodeImport& n, ValueId x, const Transform& f, int64_t results) {
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
  Transform first = f;
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

// x with dim 1 of [outer, L, inner, parts] cut or padded with zeros to `length`.
ValueId fit_length(NodeImport& n, ValueId x, int64_t length) {
  Shape shape = n.shape(x), stops = shape;
  stops[1] = min(shape[1], length);
  if (!always_le(shape[1], length)) x = n.build.slice(x, {0, 0, 0, 0}, stops);
  return n.build.pad(x, {0, 0, 0, 0}, {0, Dim(length) - stops[1], 0, 0});
}

Status check_length(NodeImport& n, int64_t length) {
  if (length >= 1 && length <= (int64_t{1} << 22)) return {};
  return n.refuse("expected a transform length from 1 to 2^22, found " + std::to_string(length));
}

Expected<DType> window_dtype(NodeImport& n) {
  QUERNEL_TRY(DType dtype,
              dtype_from_onnx(static_cast<int>(n.attr_int("output_datatype", 1)), n.build.location()));
  if (!is_float(dtype) || dtype >= DType::kI4)
    return n.refuse("attribute 'output_datatype': expected a float type, found " +
                    std::string(to_string(dtype)));
  return dtype;
}

// a0 - a1 cos(2 pi i / N) + a2 cos(4 pi i / N); N is the size, or one less for a symmetric window.
Status import_window(NodeImport& n, double a0, double a1, double a2) {
  QUERNEL_TRY(int64_t size, n.int_in(0, "size"));
  bool periodic = n.attr_int("periodic", 1) != 0;
  QUERNEL_TRY(DType dtype, window_dtype(n));
  if (size < 0 || size > kMaxMatrix)
    return n.refuse("expected a window of at most 2^24 elements, found " + std::to_string(size));
  double span = static_cast<double>(periodic || size == 1 ? size : size - 1);
  std::vector<uint8_t> data(static_cast<size_t>(byte_size(dtype, size)));
  for (int64_t i = 0; i < size; ++i) {
    double angle = 2 * kPi * static_cast<double>(i) / span;
    store_f64(dtype, data.data(), i, a0 - a1 * std::cos(angle) + a2 * std::cos(2 * angle));
  }
  return n.output(n.build.constant({dtype, {size}, Bytes::own(std::move(data))}));
}

}  // namespace

Status import_hann_window(NodeImport& n) { return import_window(n, 0.5, 0.5, 0); }
Status import_hamming_window(NodeImport& n) { return import_window(n, 25.0 / 46, 21.0 / 46, 0); }
Status import_blackman_window(NodeImport& n) { return import_window(n, 0.42, 0.5, 0.08); }

// The axis is an attribute before opset 20, then an operand. The last dim holds the real part, or both parts.
Status import_dft(NodeImport& n) {
  bool inverse = n.attr_int("inverse", 0) != 0, onesided = n.attr_int("onesided", 0) != 0;
  Shape dims = n.shape(n.in(0));
  int rank = static_cast<int>(dims.size());
  if (rank < 2 || !(dims.back() == Dim(1) || dims.back() == Dim(2)))
    return n.invalid("expected an input [...,1] or [...,2], found " + to_string(n.shape(n.in(0))));
  int64_t axis = n.opset < 20 ? n.attr_int("axis", 1) : -2;
  if (n.opset >= 20 && n.has(2)) {
    QUERNEL_TRY(axis, n.int_in(2, "axis"));
  }
  QUERNEL_TRY(axis, n.axis(axis, rank));
  if (axis == rank - 1) return n.invalid("expected an axis other than the last, which holds the parts");
  Transform f;
  f.inverse = inverse;
  f.to_real = inverse && onesided;
  size_t along = static_cast<size_t>(axis);
  Dim elements = dims[along];
  if (n.has(1)) {
    QUERNEL_TRY(f.length, n.int_in(1, "dft_length"));
  } else {
    QUERNEL_TRY(int64_t known, n.dim(elements));
    f.length = f.to_real ? 2 * (known - 1) : known;
  }
  QUERNEL_CHECK(check_length(n, f.length));
  if (!inverse && onesided && !(dims.back() == Dim(1)))
    return n.invalid("expected a real input for a one-sided transform");
  Dim outer = element_count(Shape(dims.begin(), dims.begin() + axis)),
      inner = element_count(Shape(dims.begin() + axis + 1, dims.end() - 1));
  ValueId x = n.build.reshape(n.in(0), {outer, elements, inner, dims.back()});
  x = fit_length(n, x, f.to_real ? f.length / 2 + 1 : f.length);
  int64_t results = !inverse && onesided ? f.length / 2 + 1 : f.length;
  QUERNEL_TRY(ValueId y, transform(n, x, f, results));
  dims[along] = results;
  dims.back() = f.to_real ? 1 : 2;
  return n.output(n.build.cast(n.build.reshape(y, dims), n.dtype(n.in(0))));
}

// Overlapping frames, weighted and transformed.
Status import_stft(NodeImport& n) {
  n.compute_wide();
  bool onesided = n.attr_int("onesided", 1) != 0;
  QUERNEL_TRY(int64_t step, n.int_in(1, "frame_step"));
  Shape dims = n.shape(n.in(0));
  if (dims.size() == 2) dims.push_back(1);
  if (dims.size() != 3 || !(dims[2] == Dim(1) || dims[2] == Dim(2)))
    return n.invalid("expected a signal [B,L,1] or [B,L,2], found " + to_string(n.shape(n.in(0))));
  int64_t length = 0;
  if (n.has(2)) {
    if (n.rank(n.in(2)) != 1)
      return n.invalid("expected a window of rank 1, found " + to_string(n.shape(n.in(2))));
    QUERNEL_TRY(length, n.dim(n.in(2), 0));
  }
  if (n.has(3) && !(n.has(2) && !n.constant(n.in(3)))) {  // that of the window, if it is given
    QUERNEL_TRY(int64_t given, n.int_in(3, "frame_length"));
    if (n.has(2) && given != length)
      return n.invalid("expected a window of frame_length elements, found " + std::to_string(length) +
                       " and " + std::to_string(given));
    length = given;
  }
  if (!n.has(2) && !n.has(3)) {
    QUERNEL_TRY(length, n.dim(dims[1]));
  }
  QUERNEL_CHECK(check_length(n, length));
  if (step < 1 || always_lt(dims[1], length))
    return n.invalid("expected a frame_step of at least 1 and frames within the signal, found " +
                     std::to_string(step) + " and " + std::to_string(length));
  if (onesided && !(dims[2] == Dim(1))) return n.invalid("expected a real signal for a one-sided transform");
  Dim frames = max(floordiv(dims[1] - length, step) + 1, 0);
  IndexMap map;
  map.indices = {IndexExpr::axis(0), IndexExpr::axis(1) * step + IndexExpr::axis(2), IndexExpr::axis(3)};
  ValueId x =
      n.build.view(n.build.reshape(n.in(0), dims), {dims[0], frames, length, dims[2]}, std::move(map));
  if (n.has(2)) x = n.binary(BinaryOp::k_mul, x, n.reshape(n.build.cast(n.in(2), n.dtype(x)), {length, 1}));
  x = n.build.reshape(x, {dims[0] * frames, length, 1, dims[2]});
  Transform f;
  f.length = length;
  int64_t results = onesided ? length / 2 + 1 : length;
  QUERNEL_TRY(ValueId y, transform(n, x, f, results));
  return n.output(n.build.cast(n.build.reshape(y, {dims[0], frames, results, 2}), n.dtype(n.in(0))));
}

// Triangles between the corner frequencies that are equidistant on the mel scale; all operands are constants.
Status import_mel_weight_matrix(NodeImport& n) {
  QUERNEL_TRY(int64_t bins, n.int_in(0, "num_mel_bins"));
  QUERNEL_TRY(int64_t length, n.int_in(1, "dft_length"));
  QUERNEL_TRY(int64_t rate, n.int_in(2, "sample_rate"));
  QUERNEL_TRY(double lower, n.float_in(3, "lower_edge_hertz"));
  QUERNEL_TRY(double upper, n.float_in(4, "upper_edge_hertz"));
  QUERNEL_TRY(DType dtype, window_dtype(n));
  if (bins < 1 || length < 1 || rate < 1 || bins > kMaxMatrix || length / 2 + 1 > kMaxMatrix / bins)
    return n.invalid("expected a matrix of at most 2^24 elements");
  auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  double step = (mel(upper) - mel(lower)) / static_cast<double>(bins + 2);
  int64_t rows = length / 2 + 1;
  std::vector<int64_t> corner;
  for (int64_t i = 0; i < bins + 2; ++i) {
    double hertz = 700 * (std::pow(10, (static_cast<double>(i) * step + mel(lower)) / 2595) - 1);
    double row = std::floor(static_cast<double>(length + 1) * hertz / static_cast<double>(rate));
    if (!(row >= 0 && row < static_cast<double>(rows)))
      return n.invalid("expected edge frequencies from 0 to half the sample rate");
    corner.push_back(static_cast<int64_t>(row));
  }
  std::vector<uint8_t> data(static_cast<size_t>(byte_size(dtype, rows * bins)));
  for (int64_t i = 0; i < bins; ++i) {
    int64_t left = corner[i], centre = corner[i + 1], right = corner[i + 2];
    auto put = [&](int64_t row, int64_t above, int64_t below) {
      store_f64(dtype, data.data(), row * bins + i, static_cast<double>(above) / static_cast<double>(below));
    };
    if (left == centre) put(centre, 1, 1);
    for (int64_t row = left; left < centre && row <= centre; ++row) put(row, row - left, centre - left);
    for (int64_t row = centre; row < right; ++row) put(row, right - row, right - centre);
  }
  return n.output(n.build.constant({dtype, {rows, bins}, Bytes::own(std::move(data))}));
}

}  // namespace quernel::onnx_import
