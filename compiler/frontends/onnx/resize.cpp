// Resize and Upsample: options, sizes and scales; the axes one after another.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "frontends/onnx/operators.h"
#include "frontends/onnx/resize.h"

namespace quernel::onnx_import {
namespace {

constexpr int64_t kMaxExtent = 1 << 22;  // of a resized dim: tables of positions are made for it

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
  if (r.mode != "nearest") n.compute_wide();
  ValueId x = n.in(0);
  if (r.mode != "nearest" && !is_float(n.dtype(x)))
    return n.refuse("resizing " + std::string(to_string(n.dtype(x))) +
                        " other than to the nearest element is not supported",
                    "cast to float before");
  Shape shape = n.shape(x);
  for (const ResizeAxis& a : axes) shape[static_cast<size_t>(a.axis)] = a.out;
  for (const ResizeAxis& a : axes)
    if (a.out.is_const() && (a.out.value() < 0 || a.out.value() > kMaxExtent))
      return n.refuse("resized dims above 2^22 are not supported, found " + to_string(a.out));
  if (is_static(shape) && !element_count(static_dims(shape)))
    return n.refuse("a resized tensor of more elements than fit 63 bits");
  if (std::any_of(axes.begin(), axes.end(), [](const ResizeAxis& a) { return a.out == Dim(0); }))
    return n.output(n.full(n.dtype(x), shape, 0));
  for (const ResizeAxis& a : axes) {
    bool crops = r.coordinates == "tf_crop_and_resize";
    if (a.in == a.out && a.scale == 1 && !crops) continue;
    if (a.is_known()) {
      QUERNEL_TRY(x, resize_known_axis(n, x, r, a));
    } else {
      QUERNEL_TRY(x, resize_free_axis(n, x, r, a));
    }
  }
  return n.output(x);
}

// floor(dim * scale), exactly: a float is a fraction.
Expected<Dim> scaled_dim(NodeImport& n, const Dim& dim, double scale) {
  if (dim.is_const()) return Dim(static_cast<int64_t>(std::floor(static_cast<double>(dim.value()) * scale)));
  int exponent = 0;
  double mantissa = std::frexp(scale, &exponent);
  while (mantissa != std::floor(mantissa)) mantissa *= 2, --exponent;
  if (mantissa >= 0x1p24 || exponent < -40 || exponent > 20)
    return n.refuse("free dims can be scaled by float factors from 2^-16 to 2^20, found " +
                    std::to_string(scale));
  Dim product = dim * Dim(static_cast<int64_t>(std::ldexp(mantissa, std::max(exponent, 0))));
  return floordiv(product, Dim(int64_t{1} << std::max(-exponent, 0)));
}

// The axes `which` resized by scales; those that keep their size are left out, unless cropped.
Expected<std::vector<ResizeAxis>> scaled_axes(NodeImport& n, const ResizeOptions& r,
                                              const std::vector<int64_t>& which,
                                              const std::vector<double>& scales) {
  if (scales.size() != which.size())
    return n.invalid("expected " + std::to_string(which.size()) + " scales, found " +
                     std::to_string(scales.size()));
  std::vector<ResizeAxis> axes;
  Shape shape = n.shape(n.in(0));
  for (size_t i = 0; i < scales.size(); ++i) {
    if (scales[i] == 1 && r.coordinates != "tf_crop_and_resize") continue;
    ResizeAxis a{.axis = which[i], .in = shape[static_cast<size_t>(which[i])], .scale = scales[i]};
    double estimate = static_cast<double>(a.in.is_const() ? a.in.value() : 1) * scales[i];
    if (!(scales[i] > 0) || !(estimate < 1e9))
      return n.invalid("expected positive scales that give dims below 1e9, found " +
                       std::to_string(scales[i]));
    QUERNEL_TRY(a.out, scaled_dim(n, a.in, scales[i]));
    a.shrink = static_cast<int64_t>(std::ceil(std::min(std::max(1.0, 1 / scales[i]), 1e9)));
    if (a.in == Dim(0) && !(a.out == Dim(0))) return n.invalid("cannot resize an empty dim");
    axes.push_back(a);
  }
  return axes;
}

// The axes `which` resized to sizes. A policy other than stretch takes the least or greatest of their scales
// for all of them.
Expected<std::vector<ResizeAxis>> sized_axes(NodeImport& n, const std::vector<int64_t>& which,
                                             const Shape& sizes, const std::string& policy) {
  if (sizes.size() != which.size())
    return n.invalid("expected " + std::to_string(which.size()) + " sizes, found " +
                     std::to_string(sizes.size()));
  if (policy != "stretch" && policy != "not_larger" && policy != "not_smaller")
    return n.invalid(
        "attribute 'keep_aspect_ratio_policy': expected stretch, not_larger or not_smaller, found '" +
        policy + "'");
  std::vector<ResizeAxis> axes;
  Shape shape = n.shape(n.in(0));
  bool known = true;
  for (size_t i = 0; i < which.size(); ++i) {
    ResizeAxis a{.axis = which[i], .in = shape[static_cast<size_t>(which[i])], .out = sizes[i]};
    // Nothing can be read from an axis that may be empty.
    if (!a.in.is_const())
      QUERNEL_CHECK(n.require_at_least(a.in, 1, "dim " + std::to_string(a.axis) + " of the resized tensor"));
    if (!always_le(1, a.in) || (a.out.is_const() && (a.out.value() < 1 || a.out.value() > 1000000000)))
      return n.invalid("expected sizes of at least 1 and below 1e9, found " + to_string(a.out));
    known = known && a.in.is_const() && a.out.is_const();
    axes.push_back(a);
  }
  bool largest = policy == "not_smaller", common = policy != "stretch";
  if (known) {
    double extreme = largest ? 0 : INFINITY;
    for (ResizeAxis& a : axes) {
      a.scale = static_cast<double>(a.out.value()) / static_cast<double>(a.in.value());
      extreme = largest ? std::max(extreme, *a.scale) : std::min(extreme, *a.scale);
    }
    for (ResizeAxis& a : axes) {
      if (!common) break;
      a.scale = extreme;
      a.out = static_cast<int64_t>(std::floor(extreme * static_cast<double>(a.in.value()) + 0.5));
    }
    return axes;
  }
  ValueId extreme = kNoValue;
  Dim shrink = 1;
  for (ResizeAxis& a : axes) {
    if (a.in == a.out) {
      a.scale = 1;
      if (!common) continue;
    }
    a.free_scale = n.binary(BinaryOp::k_div, n.number(DType::kF64, a.out), n.number(DType::kF64, a.in));
    a.shrink = ceildiv(a.in, max(a.out, 1));
    auto choose = [&](const Dim& x, const Dim& y) { return largest ? min(x, y) : max(x, y); };
    shrink = &a == &axes[0] ? a.shrink : choose(shrink, a.shrink);
    extreme = extreme == kNoValue
                  ? a.free_scale
                  : n.binary(largest ? BinaryOp::k_max : BinaryOp::k_min, extreme, a.free_scale);
  }
  if (!common) return axes;
  for (ResizeAxis& a : axes) {
    // round(scale * in), halves up, of the least or greatest scale.
    std::optional<Dim> out;
    for (size_t i = 0; i < which.size(); ++i) {
      const Dim& other = shape[static_cast<size_t>(which[i])];
      Dim length = floordiv(sizes[i] * a.in * 2 + other, other * 2);
      out = !out ? length : largest ? max(*out, length) : min(*out, length);
    }
    a.out = *out;
    a.scale.reset();
    a.free_scale = extreme;
    a.shrink = shrink;
  }
  return axes;
}

std::vector<int64_t> all_axes(NodeImport& n) {
  std::vector<int64_t> axes(static_cast<size_t>(n.rank(n.in(0))));
  std::iota(axes.begin(), axes.end(), 0);
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
  QUERNEL_TRY(std::vector<ResizeAxis> axes, scaled_axes(n, r, all_axes(n), scales));
  return emit_resize(n, r, axes);
}

// The first Resize: as Upsample, also shrinking.
Status import_resize_10(NodeImport& n) {
  ResizeOptions r;
  r.mode = n.attr_string("mode", "nearest");
  r.coordinates = "asymmetric";
  r.nearest_mode = "floor";
  QUERNEL_TRY(std::vector<double> scales, n.floats_in(1, "scales"));
  QUERNEL_TRY(std::vector<ResizeAxis> axes, scaled_axes(n, r, all_axes(n), scales));
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
  r.whole_length = n.choices.align_corners;
  std::vector<int64_t> which = all_axes(n);
  std::string policy = "stretch";
  if (n.opset >= 18) {
    r.antialias = n.attr_int("antialias", 0) != 0;
    policy = n.attr_string("keep_aspect_ratio_policy", "stretch");
    if (auto axes = n.attr_ints("axes")) {
      QUERNEL_TRY(which, n.axes_in_range(*axes, n.rank(n.in(0))));
    }
  }
  if (r.mode == "nearest") r.antialias = false;
  // An operand that is given but empty counts as absent.
  auto given = [&](int i) { return n.has(i) && n.shape(n.in(i)) != Shape{0}; };
  std::vector<ResizeAxis> axes;
  if (given(3)) {
    QUERNEL_TRY(Shape sizes, n.dims_in(3, "sizes"));
    QUERNEL_TRY(axes, sized_axes(n, which, sizes, policy));
  } else if (given(2)) {
    QUERNEL_TRY(std::vector<double> scales, n.floats_in(2, "scales"));
    QUERNEL_TRY(axes, scaled_axes(n, r, which, scales));
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
