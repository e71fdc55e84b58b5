// Resizing axes of known sizes: taps and their weights become constants.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "frontends/onnx/resize.h"
#include "frontends/shared/contraction.h"

namespace quernel::onnx_import {
namespace {

// An axis in numbers.
struct KnownAxis {
  int64_t axis, in, out;
  double scale, roi_start, roi_end;
};

// Element o of the output is the sum over t of input[index[t][o]] * weight[t][o], or the extrapolation value.
struct Taps {
  std::vector<std::vector<int64_t>> index;
  std::vector<std::vector<double>> weight;
  std::vector<uint8_t> inside;
};

double input_position(const ResizeOptions& r, const KnownAxis& a, double o) {
  double out = static_cast<double>(a.out), in = static_cast<double>(a.in);
  if (r.coordinates == "asymmetric") return o / a.scale;
  // ONNX's lengths are exact products here, not the integers they are rounded to (ops/CHOICES.md).
  if (r.coordinates == "align_corners")
    return a.out == 1 ? 0 : o * (in - 1) / ((r.whole_length ? out : a.scale * in) - 1);
  if (r.coordinates == "pytorch_half_pixel") return a.out == 1 ? 0 : (o + 0.5) / a.scale - 0.5;
  if (r.coordinates == "tf_half_pixel_for_nn") return (o + 0.5) / a.scale;
  if (r.coordinates == "half_pixel_symmetric") {
    double adjustment = out / (a.scale * in), center = in / 2;
    return center * (1 - adjustment) + (o + 0.5) / a.scale - 0.5;
  }
  if (r.coordinates == "tf_crop_and_resize") {
    if (a.out == 1) return 0.5 * (a.roi_start + a.roi_end) * (in - 1);
    return a.roi_start * (in - 1) + o * (a.roi_end - a.roi_start) * (in - 1) / (out - 1);
  }
  return (o + 0.5) / a.scale - 0.5;  // half_pixel
}

int64_t nearest_index(const std::string& mode, double position) {
  if (mode == "floor") return static_cast<int64_t>(std::floor(position));
  if (mode == "ceil") return static_cast<int64_t>(std::ceil(position));
  if (mode == "round_prefer_ceil") return static_cast<int64_t>(std::floor(position + 0.5));
  return static_cast<int64_t>(std::ceil(position - 0.5));  // round_prefer_floor
}

double cubic_weight(double a, double distance) {
  double d = std::abs(distance);
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  if (d < 2) return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
  return 0;
}

// The taps of one output element, positions not yet clamped.
std::vector<std::pair<int64_t, double>> taps_at(const ResizeOptions& r, const KnownAxis& a, double position) {
  if (r.mode == "nearest") return {{nearest_index(r.nearest_mode, position), 1.0}};
  bool cubic = r.mode == "cubic";
  // Antialiasing widens the filter when shrinking.
  double stretch = r.antialias && a.scale < 1 ? 1 / a.scale : 1, support = (cubic ? 2 : 1) * stretch;
  std::vector<std::pair<int64_t, double>> taps;
  double floor = std::floor(position);
  int64_t first = r.antialias ? static_cast<int64_t>(std::floor(position - support)) + 1
                              : static_cast<int64_t>(floor) - (cubic ? 1 : 0);
  int64_t last = r.antialias ? static_cast<int64_t>(std::ceil(position + support)) - 1
                             : static_cast<int64_t>(floor) + (cubic ? 2 : 1);
  double sum = 0;
  for (int64_t i = first; i <= last; ++i) {
    double distance = (static_cast<double>(i) - position) / stretch;
    double weight = cubic ? cubic_weight(r.cubic_coeff_a, distance) : std::max(0.0, 1 - std::abs(distance));
    if (r.exclude_outside && (i < 0 || i >= a.in)) weight = 0;
    taps.emplace_back(i, weight);
    sum += weight;
  }
  if ((r.exclude_outside || r.antialias) && sum != 0)
    for (auto& tap : taps) tap.second /= sum;
  return taps;
}

Expected<Taps> compute_taps(NodeImport& n, const ResizeOptions& r, const KnownAxis& a) {
  constexpr int64_t kMaxTaps = 1 << 24;
  Taps result;
  result.inside.assign(static_cast<size_t>(a.out), 1);
  for (int64_t o = 0; o < a.out; ++o) {
    double position = input_position(r, a, static_cast<double>(o));
    if (!(std::abs(position) < 1e15)) return n.invalid("scales give positions out of range");
    double filter = r.antialias && a.scale < 1 ? 4 / a.scale : 4;
    if (filter * static_cast<double>(a.out) > kMaxTaps) return n.refuse("the resize filter is too large");
    std::vector<std::pair<int64_t, double>> taps = taps_at(r, a, position);
    if (r.coordinates == "tf_crop_and_resize")
      result.inside[static_cast<size_t>(o)] = position >= 0 && position <= static_cast<double>(a.in - 1);
    while (result.index.size() < taps.size()) {
      result.index.emplace_back(static_cast<size_t>(a.out), 0);
      result.weight.emplace_back(static_cast<size_t>(a.out), 0.0);
    }
    for (size_t t = 0; t < taps.size(); ++t) {
      result.index[t][static_cast<size_t>(o)] = std::clamp<int64_t>(taps[t].first, 0, a.in - 1);
      result.weight[t][static_cast<size_t>(o)] = taps[t].second;
    }
  }
  return result;
}

// x with one axis read at `index`: a repetition where each element is taken k times in a row, else a gather.
ValueId read_axis(NodeImport& n, ValueId x, const KnownAxis& a, const std::vector<int64_t>& index) {
  if (a.out % a.in == 0) {
    int64_t times = a.out / a.in;
    bool repeats = true;
    for (size_t o = 0; o < index.size(); ++o)
      repeats = repeats && index[o] == static_cast<int64_t>(o) / times;
    if (repeats) return repeat_along_axis(n, x, a.axis, times);
  }
  return n.build.take(x, n.build.constant(i64_tensor({a.out}, index)), a.axis);
}

ValueId constant_weights(NodeImport& n, DType dtype, const std::vector<int64_t>& dims,
                         const std::vector<double>& weights) {
  return n.build.cast(n.build.constant(make_tensor<double>(DType::kF64, dims, weights)), dtype);
}

// The matrix of the taps' weights; for wide filters.
ValueId dense_weights(NodeImport& n, DType dtype, const KnownAxis& a, const Taps& taps) {
  constexpr int64_t kMaxMatrix = 1 << 24;
  if (a.in > kMaxMatrix / std::max<int64_t>(a.out, 1))
    return n.build.fail(n.refuse("the resize filter is too large"));
  std::vector<double> matrix(static_cast<size_t>(a.out * a.in));
  for (size_t t = 0; t < taps.index.size(); ++t)
    for (size_t o = 0; o < taps.index[t].size(); ++o)
      matrix[o * static_cast<size_t>(a.in) + static_cast<size_t>(taps.index[t][o])] += taps.weight[t][o];
  return constant_weights(n, dtype, {a.out, a.in}, matrix);
}

ValueId weighted_sum(NodeImport& n, ValueId x, const KnownAxis& a, const Taps& taps,
                     const std::vector<int64_t>& weight_dims) {
  constexpr size_t kMaxGathers = 4;
  if (taps.index.size() > kMaxGathers)
    return multiply_axis(n, x, a.axis, a.in, a.out, dense_weights(n, n.dtype(x), a, taps));
  ValueId sum = kNoValue;
  for (size_t t = 0; t < taps.index.size(); ++t) {
    const std::vector<double>& weights = taps.weight[t];
    auto all = [&](double value) {
      return std::all_of(weights.begin(), weights.end(), [&](double w) { return w == value; });
    };
    if (all(0) && (sum != kNoValue || t + 1 < taps.index.size())) continue;
    ValueId term = read_axis(n, x, a, taps.index[t]);
    if (!all(1))
      term = n.binary(BinaryOp::k_mul, term, constant_weights(n, n.dtype(x), weight_dims, weights));
    sum = sum == kNoValue ? term : n.binary(BinaryOp::k_add, sum, term);
  }
  return sum;
}

}  // namespace

ValueId repeat_along_axis(NodeImport& n, ValueId x, int64_t axis, int64_t times) {
  if (times == 1) return x;
  Shape split = n.shape(x), merged = split;
  split.insert(split.begin() + axis + 1, Dim(1));
  Shape grown = split;
  grown[static_cast<size_t>(axis + 1)] = times;
  merged[static_cast<size_t>(axis)] *= times;
  return n.build.reshape(n.build.broadcast_to(n.build.reshape(x, split), grown), merged);
}

ValueId multiply_axis(NodeImport& n, ValueId x, int64_t axis, const Dim& in, const Dim& out,
                      ValueId weights) {
  ContractionBuilder c;
  std::vector<IndexExpr> index_x, index_out;
  Shape shape = n.shape(x);
  for (size_t i = 0; i < shape.size(); ++i) {
    bool resized = static_cast<int64_t>(i) == axis;
    index_out.push_back(c.axis("d" + std::to_string(i), resized ? out : shape[i]));
    index_x.push_back(resized ? IndexExpr(0) : index_out.back());
  }
  size_t along = static_cast<size_t>(axis);
  index_x[along] = c.reduction("k", in);
  return c.emit(n, x, index_x, weights, {index_out[along], index_x[along]}, index_out);
}

std::optional<int64_t> whole_repeats(const ResizeOptions& r, const ResizeAxis& a) {
  if (r.mode != "nearest" || !a.scale || r.coordinates == "align_corners" ||
      r.coordinates == "tf_crop_and_resize")
    return std::nullopt;
  double times = *a.scale;
  if (times != std::floor(times) || times < 1 || times > 1024) return std::nullopt;
  // Positions depend on the place within a period, and on nothing else.
  KnownAxis some{0, 3, 3 * static_cast<int64_t>(times), times, 0, 1};
  for (int64_t o = 0; o < some.out; ++o) {
    int64_t index = nearest_index(r.nearest_mode, input_position(r, some, static_cast<double>(o)));
    if (std::clamp<int64_t>(index, 0, some.in - 1) != o / static_cast<int64_t>(times)) return std::nullopt;
  }
  return static_cast<int64_t>(times);
}

Expected<ValueId> resize_known_axis(NodeImport& n, ValueId x, const ResizeOptions& r,
                                    const ResizeAxis& axis) {
  KnownAxis a{axis.axis, axis.in.value(), axis.out.value(), *axis.scale, axis.roi_start, axis.roi_end};
  QUERNEL_TRY(Taps taps, compute_taps(n, r, a));
  std::vector<int64_t> along(static_cast<size_t>(n.rank(x) - a.axis), 1);
  along[0] = a.out;
  x = weighted_sum(n, x, a, taps, along);
  if (std::find(taps.inside.begin(), taps.inside.end(), 0) != taps.inside.end())
    x = n.build.where(n.build.constant({DType::kBool, along, Bytes::own(std::move(taps.inside))}), x,
                      n.scalar(n.dtype(x), r.extrapolation));
  return x;
}

}  // namespace quernel::onnx_import
