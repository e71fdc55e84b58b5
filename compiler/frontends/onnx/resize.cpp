// Resize and Upsample: separable; per axis, each output element is a weighted sum of few input elements whose
// positions and weights are known while importing.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "frontends/onnx/contraction.h"
#include "frontends/onnx/operators.h"

namespace quernel::onnx_import {
namespace {

constexpr int64_t kMaxExtent = 1 << 22;  // of a resized dim: tables of positions are made for it

struct ResizeOptions {
  std::string mode = "nearest";
  std::string coordinates = "half_pixel";
  std::string nearest_mode = "round_prefer_floor";
  double cubic_coeff_a = -0.75;
  bool exclude_outside = false;
  bool antialias = false;
  double extrapolation = 0;
};

struct ResizeAxis {
  int64_t axis = 0;
  int64_t in = 1, out = 1;
  double scale = 1;  // out / in as the model gives it
  double roi_start = 0, roi_end = 1;
};

// Element o of the output is the sum over t of input[index[t][o]] * weight[t][o]; nan weight: the
// extrapolation value.
struct Taps {
  std::vector<std::vector<int64_t>> index;
  std::vector<std::vector<double>> weight;
};

double input_position(const ResizeOptions& r, const ResizeAxis& a, double o) {
  double out = static_cast<double>(a.out), in = static_cast<double>(a.in);
  if (r.coordinates == "asymmetric") return o / a.scale;
  // ONNX's lengths are exact products here, not the integers they are rounded to.
  if (r.coordinates == "align_corners") return a.out == 1 ? 0 : o * (in - 1) / (a.scale * in - 1);
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
std::vector<std::pair<int64_t, double>> taps_at(const ResizeOptions& r, const ResizeAxis& a,
                                                double position) {
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

Expected<Taps> compute_taps(NodeImport& n, const ResizeOptions& r, const ResizeAxis& a) {
  constexpr int64_t kMaxTaps = 1 << 24;
  Taps result;
  for (int64_t o = 0; o < a.out; ++o) {
    double position = input_position(r, a, static_cast<double>(o));
    if (!(std::abs(position) < 1e15)) return n.invalid("scales give positions out of range");
    double filter = r.antialias && a.scale < 1 ? 4 / a.scale : 4;
    if (filter * static_cast<double>(a.out) > kMaxTaps) return n.refuse("the resize filter is too large");
    std::vector<std::pair<int64_t, double>> taps = taps_at(r, a, position);
    bool outside =
        r.coordinates == "tf_crop_and_resize" && (position < 0 || position > static_cast<double>(a.in - 1));
    while (result.index.size() < taps.size()) {
      result.index.emplace_back(static_cast<size_t>(a.out), 0);
      result.weight.emplace_back(static_cast<size_t>(a.out), 0.0);
    }
    for (size_t t = 0; t < taps.size(); ++t) {
      result.index[t][static_cast<size_t>(o)] = std::clamp<int64_t>(taps[t].first, 0, a.in - 1);
      result.weight[t][static_cast<size_t>(o)] = outside ? std::nan("") : taps[t].second;
    }
  }
  return result;
}

// x with one axis read at `index`: a repetition where each element is taken k times in a row, else a gather.
ValueId read_axis(NodeImport& n, ValueId x, const ResizeAxis& a, const std::vector<int64_t>& index) {
  Shape shape = n.shape(x);
  if (a.out == a.in) {
    std::vector<int64_t> identity(index.size());
    std::iota(identity.begin(), identity.end(), 0);
    if (identity == index) return x;
  }
  if (a.out % a.in == 0) {
    int64_t times = a.out / a.in;
    bool repeats = true;
    for (size_t o = 0; o < index.size(); ++o)
      repeats = repeats && index[o] == static_cast<int64_t>(o) / times;
    if (repeats) {
      Shape split = shape, grown, merged = shape;
      split.insert(split.begin() + a.axis + 1, Dim(1));
      grown = split;
      grown[a.axis + 1] = times;
      merged[a.axis] = a.out;
      return n.build.reshape(n.build.broadcast_to(n.build.reshape(x, split), grown), merged);
    }
  }
  return n.build.take(x, n.build.constant(i64_tensor({a.out}, index)), a.axis);
}

// The axis as a product with the dense matrix of the taps' weights; for wide filters.
ValueId multiply_axis(NodeImport& n, ValueId x, const ResizeAxis& a, const Taps& taps) {
  Expected<std::vector<int64_t>> dims = n.dims(x);
  if (!dims) return n.build.fail(dims.take_errors().front());
  constexpr int64_t kMaxMatrix = 1 << 24;
  if (a.in > kMaxMatrix / std::max<int64_t>(a.out, 1))
    return n.build.fail(n.refuse("the resize filter is too large"));
  std::vector<float> matrix(static_cast<size_t>(a.out * a.in));
  for (size_t t = 0; t < taps.index.size(); ++t)
    for (size_t o = 0; o < taps.index[t].size(); ++o)
      matrix[o * static_cast<size_t>(a.in) + static_cast<size_t>(taps.index[t][o])] +=
          static_cast<float>(taps.weight[t][o]);
  ValueId weights = n.build.cast(n.build.constant(f32_tensor({a.out, a.in}, matrix)), n.dtype(x));
  ContractionBuilder c;
  std::vector<IndexExpr> index_x, index_out;
  for (size_t i = 0; i < dims->size(); ++i) {
    bool resized = static_cast<int64_t>(i) == a.axis;
    index_out.push_back(c.axis("d" + std::to_string(i), resized ? a.out : (*dims)[i]));
    index_x.push_back(resized ? IndexExpr(0) : index_out.back());
  }
  index_x[a.axis] = c.reduction("k", a.in);
  return c.emit(n, x, index_x, weights, {index_out[a.axis], index_x[a.axis]}, index_out);
}

ValueId resize_axis(NodeImport& n, ValueId x, const ResizeOptions& r, const ResizeAxis& a, const Taps& taps) {
  constexpr size_t kMaxGathers = 4;
  if (taps.index.size() > kMaxGathers) return multiply_axis(n, x, a, taps);
  std::vector<int64_t> weight_dims(static_cast<size_t>(n.rank(x) - a.axis), 1);
  weight_dims[0] = a.out;
  ValueId sum = kNoValue;
  std::vector<uint8_t> inside(static_cast<size_t>(a.out), 1);
  bool any_outside = false;
  for (size_t t = 0; t < taps.index.size(); ++t) {
    std::vector<float> weights;
    bool all_one = true, all_zero = true;
    for (size_t o = 0; o < taps.weight[t].size(); ++o) {
      double w = taps.weight[t][o];
      if (std::isnan(w)) {
        inside[o] = 0;
        any_outside = true;
        w = 1;
      }
      all_one = all_one && w == 1;
      all_zero = all_zero && w == 0;
      weights.push_back(static_cast<float>(w));
    }
    if (all_zero && (sum != kNoValue || t + 1 < taps.index.size())) continue;
    ValueId term = read_axis(n, x, a, taps.index[t]);
    if (!all_one)
      term = n.binary(BinaryOp::k_mul, term,
                      n.build.cast(n.build.constant(f32_tensor(weight_dims, weights)), n.dtype(x)));
    sum = sum == kNoValue ? term : n.binary(BinaryOp::k_add, sum, term);
  }
  if (any_outside)
    sum = n.build.where(n.build.constant({DType::kBool, weight_dims, Bytes::own(std::move(inside))}), sum,
                        n.scalar(n.dtype(x), r.extrapolation));
  return sum;
}

Status emit_resize(NodeImport& n, const ResizeOptions& r, const std::vector<ResizeAxis>& axes) {
  static const char* const kCoordinates[] = {
      "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
      "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"};
  static const char* const kNearest[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
  auto listed = [](const auto& names, const std::string& name) {
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
  };
  if (r.mode != "nearest" && r.mode != "linear" && r.mode != "cubic")
    return n.invalid("attribute 'mode': expected nearest, linear or cubic, found '" + r.mode + "'");
  if (!listed(kCoordinates, r.coordinates))
    return n.invalid("attribute 'coordinate_transformation_mode': found unknown '" + r.coordinates + "'");
  if (!listed(kNearest, r.nearest_mode))
    return n.invalid("attribute 'nearest_mode': found unknown '" + r.nearest_mode + "'");
  ValueId x = n.in(0);
  if (r.mode != "nearest" && !is_float(n.dtype(x)))
    return n.refuse("resizing " + std::string(to_string(n.dtype(x))) +
                        " other than to the nearest element is not supported",
                    "cast to float before");
  Shape shape = n.shape(x);
  for (const ResizeAxis& a : axes) shape[a.axis] = a.out;
  for (const ResizeAxis& a : axes)
    if (a.out < 0 || a.out > kMaxExtent)
      return n.refuse("resized dims above 2^22 are not supported, found " + std::to_string(a.out));
  if (is_static(shape) && !element_count(static_dims(shape)))
    return n.refuse("a resized tensor of more elements than fit 63 bits");
  if (std::any_of(axes.begin(), axes.end(), [](const ResizeAxis& a) { return a.out == 0; }))
    return n.output(n.full(n.dtype(x), shape, 0));
  for (const ResizeAxis& a : axes) {
    bool crops = r.coordinates == "tf_crop_and_resize";
    if (a.in == a.out && a.scale == 1 && !crops) continue;
    QUERNEL_TRY(Taps taps, compute_taps(n, r, a));
    x = resize_axis(n, x, r, a, taps);
    QUERNEL_CHECK(n.build.take_status());
  }
  return n.output(x);
}

// An axis resized by a scale: floor(in * scale) elements.
Expected<ResizeAxis> scaled_axis(NodeImport& n, int64_t axis, double scale) {
  ResizeAxis a{axis};
  QUERNEL_TRY(a.in, n.dim(n.in(0), axis));
  double out = std::floor(static_cast<double>(a.in) * scale);
  if (!(scale > 0) || !(out < 1e9))
    return n.invalid("expected positive scales that give dims below 1e9, found " + std::to_string(scale));
  a.scale = scale;
  a.out = static_cast<int64_t>(out);
  if (a.in < 1 && a.out > 0) return n.invalid("cannot resize an empty dim");
  return a;
}

Expected<std::vector<ResizeAxis>> scaled_axes(NodeImport& n, const std::vector<double>& scales) {
  if (static_cast<int>(scales.size()) != n.rank(n.in(0)))
    return n.invalid("expected " + std::to_string(n.rank(n.in(0))) + " scales, found " +
                     std::to_string(scales.size()));
  std::vector<ResizeAxis> axes;
  for (size_t i = 0; i < scales.size(); ++i) {
    // A free dim that keeps its size needs no number.
    if (scales[i] == 1) continue;
    QUERNEL_TRY(ResizeAxis a, scaled_axis(n, static_cast<int64_t>(i), scales[i]));
    axes.push_back(a);
  }
  return axes;
}

}  // namespace

Status import_upsample(NodeImport& n) {
  ResizeOptions r;
  r.mode = n.attr_string("mode", "nearest");
  if (r.mode == "bilinear") r.mode = "linear";
  r.coordinates = "asymmetric";
  r.nearest_mode = "floor";
  std::vector<double> scales;
  if (n.opset < 9) {
    std::optional<std::vector<double>> given = n.attr_floats("scales");
    if (!given) return n.invalid("attribute 'scales' is missing");
    scales = *given;
  } else {
    QUERNEL_TRY(scales, n.floats_in(1, "scales"));
  }
  QUERNEL_TRY(std::vector<ResizeAxis> axes, scaled_axes(n, scales));
  return emit_resize(n, r, axes);
}

// The first Resize: as Upsample, also shrinking.
Status import_resize_10(NodeImport& n) {
  ResizeOptions r;
  r.mode = n.attr_string("mode", "nearest");
  r.coordinates = "asymmetric";
  r.nearest_mode = "floor";
  QUERNEL_TRY(std::vector<double> scales, n.floats_in(1, "scales"));
  QUERNEL_TRY(std::vector<ResizeAxis> axes, scaled_axes(n, scales));
  return emit_resize(n, r, axes);
}

Status import_resize(NodeImport& n) {
  ResizeOptions r;
  r.mode = n.attr_string("mode", "nearest");
  r.coordinates = n.attr_string("coordinate_transformation_mode", "half_pixel");
  r.nearest_mode = n.attr_string("nearest_mode", "round_prefer_floor");
  r.cubic_coeff_a = n.attr_float("cubic_coeff_a", -0.75);
  r.exclude_outside = n.attr_int("exclude_outside", 0) != 0;
  r.extrapolation = n.attr_float("extrapolation_value", 0);
  int rank = n.rank(n.in(0));
  std::vector<int64_t> which(static_cast<size_t>(rank));
  std::iota(which.begin(), which.end(), 0);
  std::string policy = "stretch";
  if (n.opset >= 18) {
    r.antialias = n.attr_int("antialias", 0) != 0;
    policy = n.attr_string("keep_aspect_ratio_policy", "stretch");
    if (auto axes = n.attr_ints("axes")) {
      QUERNEL_TRY(which, n.axes_in_range(*axes, rank));
    }
  }
  if (r.mode == "nearest") r.antialias = false;
  // An operand that is given but empty counts as absent.
  auto given = [&](int i) { return n.has(i) && n.shape(n.in(i)) != Shape{0}; };
  std::vector<ResizeAxis> axes;
  if (given(3)) {
    QUERNEL_TRY(std::vector<int64_t> sizes, n.ints_in(3, "sizes"));
    if (sizes.size() != which.size())
      return n.invalid("expected " + std::to_string(which.size()) + " sizes, found " +
                       std::to_string(sizes.size()));
    double common = policy == "not_larger" ? INFINITY : 0;
    for (size_t i = 0; i < which.size(); ++i) {
      // A free dim cannot be known to keep its size.
      ResizeAxis a{which[i]};
      QUERNEL_TRY(a.in, n.dim(n.in(0), which[i]));
      if (sizes[i] < 1 || sizes[i] > 1000000000 || a.in < 1)
        return n.invalid("expected sizes of at least 1 and below 1e9, found " + std::to_string(sizes[i]));
      a.out = sizes[i];
      a.scale = static_cast<double>(a.out) / static_cast<double>(a.in);
      common = policy == "not_larger" ? std::min(common, a.scale) : std::max(common, a.scale);
      axes.push_back(a);
    }
    if (policy == "not_larger" || policy == "not_smaller") {
      for (ResizeAxis& a : axes) {
        a.scale = common;
        a.out = static_cast<int64_t>(std::floor(common * static_cast<double>(a.in) + 0.5));
      }
    } else if (policy != "stretch") {
      return n.invalid(
          "attribute 'keep_aspect_ratio_policy': expected stretch, not_larger or not_smaller, found '" +
          policy + "'");
    }
  } else if (given(2)) {
    QUERNEL_TRY(std::vector<double> scales, n.floats_in(2, "scales"));
    if (scales.size() != which.size())
      return n.invalid("expected " + std::to_string(which.size()) + " scales, found " +
                       std::to_string(scales.size()));
    bool crops = r.coordinates == "tf_crop_and_resize";
    for (size_t i = 0; i < which.size(); ++i) {
      if (scales[i] == 1 && !crops) continue;
      QUERNEL_TRY(ResizeAxis a, scaled_axis(n, which[i], scales[i]));
      axes.push_back(a);
    }
  } else {
    return n.invalid("expected scales or sizes");
  }
  if (r.coordinates == "tf_crop_and_resize") {
    QUERNEL_TRY(std::vector<double> roi, n.floats_in(1, "roi"));
    if (roi.size() != 2 * which.size() || axes.size() != which.size())
      return n.invalid("expected a roi of " + std::to_string(2 * which.size()) + " values, found " +
                       std::to_string(roi.size()));
    for (size_t i = 0; i < axes.size(); ++i) {
      axes[i].roi_start = roi[i];
      axes[i].roi_end = roi[which.size() + i];
    }
  }
  return emit_resize(n, r, axes);
}

}  // namespace quernel::onnx_import
