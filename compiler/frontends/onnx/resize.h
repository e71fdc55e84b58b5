// What Resize and Upsample do along one axis. They are separable: each output element is a weighted sum of
// few input elements.
#pragma once

#include <optional>
#include <string>

#include "frontends/onnx/node_import.h"

namespace quernel::onnx_import {

struct ResizeOptions {
  std::string mode = "nearest";
  std::string coordinates = "half_pixel";
  std::string nearest_mode = "round_prefer_floor";
  double cubic_coeff_a = -0.75;
  bool exclude_outside = false;
  bool antialias = false;
  bool whole_length = false;  // align_corners: the resized length is the result's, a whole number
  double extrapolation = 0;
};

struct ResizeAxis {
  int64_t axis = 0;
  Dim in = 1, out = 1;
  // out / in as the model gives it; none where it follows from free sizes: then `free_scale`, an f64 scalar,
  // and `shrink`, which 1 / scale never exceeds.
  std::optional<double> scale;
  ValueId free_scale = kNoValue;
  Dim shrink = 1;
  double roi_start = 0, roi_end = 1;

  bool is_known() const { return in.is_const() && out.is_const() && scale; }
};

// Both give x, of a dtype that the mode can do, resized along the axis; neither dim is empty.
//
// Positions and weights are worked out here and become constants.
Expected<ValueId> resize_known_axis(NodeImport& n, ValueId x, const ResizeOptions& r, const ResizeAxis& a);
// They are computed at run time, in f64.
Expected<ValueId> resize_free_axis(NodeImport& n, ValueId x, const ResizeOptions& r, const ResizeAxis& a);

// x with axis `axis`, of length `in`, as its product with a matrix: weights [out, in].
ValueId multiply_axis(NodeImport& n, ValueId x, int64_t axis, const Dim& in, const Dim& out, ValueId weights);
// x with each element of the axis taken `times` times in a row.
ValueId repeat_along_axis(NodeImport& n, ValueId x, int64_t axis, int64_t times);
// Whether resizing the axis takes each element that often in a row, for every size of a free axis.
std::optional<int64_t> whole_repeats(const ResizeOptions& r, const ResizeAxis& a);

}  // namespace quernel::onnx_import
