// Fourier transforms, and the constants that accompany them.
#include <algorithm>
#include <cmath>

#include "frontends/onnx/operators.h"
#include "frontends/shared/fourier.h"

namespace quernel::onnx_import {
namespace {

constexpr int64_t kMaxMatrix = int64_t{1} << 24;  // elements of a constant made here
const double kPi = std::acos(-1.0);

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
  FourierTransform f;
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
  QUERNEL_CHECK(check_transform_length(n, f.length));
  if (!inverse && onesided && !(dims.back() == Dim(1)))
    return n.invalid("expected a real input for a one-sided transform");
  Dim outer = element_count(Shape(dims.begin(), dims.begin() + axis)),
      inner = element_count(Shape(dims.begin() + axis + 1, dims.end() - 1));
  ValueId x = n.build.reshape(n.in(0), {outer, elements, inner, dims.back()});
  x = fit_transform_length(n, x, f.to_real ? f.length / 2 + 1 : f.length);
  int64_t results = !inverse && onesided ? f.length / 2 + 1 : f.length;
  QUERNEL_TRY(ValueId y, fourier_transform(n, x, f, results));
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
  QUERNEL_CHECK(check_transform_length(n, length));
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
  FourierTransform f;
  f.length = length;
  int64_t results = onesided ? length / 2 + 1 : length;
  QUERNEL_TRY(ValueId y, fourier_transform(n, x, f, results));
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
