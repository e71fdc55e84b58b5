// Normalisations over channels, spatial dims or trailing dims.
#include <algorithm>
#include <cmath>

#include "frontends/onnx/normalization.h"
#include "frontends/onnx/operators.h"

namespace quernel::onnx_import {
namespace {

// [1, C, 1, …] of the given rank.
ValueId per_channel(NodeImport& n, ValueId v, int rank) {
  Shape shape(static_cast<size_t>(rank), Dim(1));
  shape[1] = element_count(n.shape(v));
  return n.build.reshape(v, shape);
}

Status check_channels(NodeImport& n, const char* what, ValueId v, const Dim& channels) {
  if (n.rank(v) == 1 && n.shape(v)[0] == channels) return {};
  if (n.rank(v) == 1) n.build.note_unequal(n.shape(v)[0], channels, true);
  return n.invalid(std::string("expected ") + what + " of [" + to_string(channels) + "], found " +
                   to_string(n.shape(v)));
}

}  // namespace

std::vector<int64_t> axes_from(int64_t first, int rank) {
  std::vector<int64_t> axes;
  for (int64_t i = first; i < rank; ++i) axes.push_back(i);
  return axes;
}

Standardized standardize(NodeImport& n, ValueId x, const std::vector<int64_t>& axes, double epsilon) {
  Standardized s;
  s.mean = n.mean(x, axes, true);
  ValueId centered = n.binary(BinaryOp::k_sub, x, s.mean);
  ValueId variance = n.mean(n.binary(BinaryOp::k_mul, centered, centered), axes, true);
  ValueId deviation = n.unary(UnaryOp::k_sqrt, n.binary(BinaryOp::k_add, variance, epsilon));
  s.inverse_deviation = n.unary(UnaryOp::k_recip, deviation);
  s.value = n.binary(BinaryOp::k_mul, centered, s.inverse_deviation);
  return s;
}

Standardized divide_by_rms(NodeImport& n, ValueId x, const std::vector<int64_t>& axes, double epsilon) {
  Standardized s;
  s.mean = n.mean(n.binary(BinaryOp::k_mul, x, x), axes, true);
  ValueId root = n.unary(UnaryOp::k_sqrt, n.binary(BinaryOp::k_add, s.mean, epsilon));
  s.inverse_deviation = n.unary(UnaryOp::k_recip, root);
  s.value = n.binary(BinaryOp::k_div, x, root);
  return s;
}

namespace {

// Normalises with the batch's own mean and variance, and blends these into the running ones.
Status batch_statistics(NodeImport& n, double epsilon, double momentum) {
  ValueId x = n.in(0), wide = n.widen(x);
  int rank = n.rank(x);
  std::vector<int64_t> axes = axes_from(2, rank);
  axes.insert(axes.begin(), 0);
  ValueId mean = n.mean(wide, axes, true), centered = n.binary(BinaryOp::k_sub, wide, mean);
  ValueId variance = n.mean(n.binary(BinaryOp::k_mul, centered, centered), axes, true);
  ValueId deviation = n.unary(UnaryOp::k_sqrt, n.binary(BinaryOp::k_add, variance, epsilon));
  auto parameter = [&](int i) { return n.build.cast(per_channel(n, n.in(i), rank), n.dtype(wide)); };
  ValueId y = n.binary(BinaryOp::k_div, n.binary(BinaryOp::k_mul, centered, parameter(1)), deviation);
  y = n.build.cast(n.binary(BinaryOp::k_add, y, parameter(2)), n.dtype(x));
  auto blend = [&](int i, ValueId current) {
    ValueId flat = n.build.reshape(current, {n.shape(x)[1]}), running = n.build.cast(n.in(i), n.dtype(wide));
    ValueId sum = n.binary(BinaryOp::k_add, n.binary(BinaryOp::k_mul, running, momentum),
                           n.binary(BinaryOp::k_mul, flat, 1 - momentum));
    return n.build.cast(sum, n.dtype(n.in(i)));
  };
  return n.set_outputs({y, blend(3, mean), blend(4, variance)});
}

// y = x * s + t with s = gamma / sqrt(var + eps) and t = beta - mean * s, which folds into a convolution
// before it; parameters are constants, computed in f64.
ValueId scale_and_shift_by_constants(NodeImport& n, double epsilon) {
  ValueId x = n.in(0);
  const Tensor* parameters[4];
  for (int i = 0; i < 4; ++i) parameters[i] = n.build.graph().constant(n.in(i + 1));
  DType dtype = n.dtype(x);
  int64_t channels = parameters[0]->count();
  std::vector<uint8_t> scale(static_cast<size_t>(channels * element_size(dtype))), shift(scale.size());
  for (int64_t c = 0; c < channels; ++c) {
    double s = element_as_f64(*parameters[0], c) / std::sqrt(element_as_f64(*parameters[3], c) + epsilon);
    store_f64(dtype, scale.data(), c, s);
    store_f64(dtype, shift.data(), c,
              element_as_f64(*parameters[1], c) - element_as_f64(*parameters[2], c) * s);
  }
  std::vector<int64_t> dims(static_cast<size_t>(n.rank(x)) - 1, 1);
  dims[0] = channels;
  ValueId s = n.build.constant({dtype, dims, Bytes::own(std::move(scale))});
  ValueId t = n.build.constant({dtype, dims, Bytes::own(std::move(shift))});
  return n.binary(BinaryOp::k_add, n.binary(BinaryOp::k_mul, x, s), t);
}

// y = (x - mean) * s + beta: exact in the difference, where x is close to a large mean.
ValueId centre_and_scale(NodeImport& n, double epsilon) {
  ValueId wide = n.widen(n.in(0)), p[4];
  DType dtype = n.dtype(wide);
  for (int i = 0; i < 4; ++i) p[i] = per_channel(n, n.build.cast(n.in(i + 1), dtype), n.rank(wide));
  ValueId s =
      n.binary(BinaryOp::k_div, p[0], n.unary(UnaryOp::k_sqrt, n.binary(BinaryOp::k_add, p[3], epsilon)));
  ValueId y = n.binary(BinaryOp::k_mul, n.binary(BinaryOp::k_sub, wide, p[2]), s);
  return n.build.cast(n.binary(BinaryOp::k_add, y, p[1]), n.dtype(n.in(0)));
}

}  // namespace

Status import_batch_normalization(NodeImport& n) {
  double epsilon = n.attr_float("epsilon", 1e-5f);
  double momentum = n.attr_float("momentum", 0.9f);
  bool training = n.opset >= 14 && n.attr_int("training_mode", 0) != 0;
  if (!training && n.wants_output(1))
    return n.refuse("training mode is not supported", "export the model for inference");
  if (n.opset < 9 && n.attr_int("spatial", 1) == 0)
    return n.refuse("attribute 'spatial': only 1 is supported, found 0");
  ValueId x = n.in(0);
  if (n.rank(x) < 2) return n.invalid("expected an input [N,C,...], found " + to_string(n.shape(x)));
  for (int i = 1; i <= 4; ++i) QUERNEL_CHECK(check_channels(n, "parameters", n.in(i), n.shape(x)[1]));
  if (training) return batch_statistics(n, epsilon, momentum);
  bool folds = n.dtype(x) == DType::kF32 || n.dtype(x) == DType::kF64;
  for (int i = 1; i <= 4; ++i) folds = n.constant(n.in(i)) && folds;
  return n.output(folds ? scale_and_shift_by_constants(n, epsilon) : centre_and_scale(n, epsilon));
}

Status import_instance_normalization(NodeImport& n) {
  n.compute_wide();
  double epsilon = n.attr_float("epsilon", 1e-5f);
  ValueId x = n.in(0);
  int rank = n.rank(x);
  if (rank < 3) return n.invalid("expected an input [N,C,D...], found " + to_string(n.shape(x)));
  for (int i = 1; i <= 2; ++i) QUERNEL_CHECK(check_channels(n, "scale and bias", n.in(i), n.shape(x)[1]));
  ValueId y = standardize(n, x, axes_from(2, rank), epsilon).value;
  y = n.binary(BinaryOp::k_mul, y, per_channel(n, n.in(1), rank));
  return n.output(n.binary(BinaryOp::k_add, y, per_channel(n, n.in(2), rank)));
}

// Channels in groups; scale and bias per group before opset 21, per channel from then on.
Status import_group_normalization(NodeImport& n) {
  n.compute_wide();
  double epsilon = n.attr_float("epsilon", 1e-5f);
  int64_t groups = n.attr_int("num_groups", 0);
  n.ignore_attribute("stash_type");  // f32, which narrow data are computed in anyway
  ValueId x = n.in(0);
  Shape dims = n.shape(x);
  if (dims.size() < 2) return n.invalid("expected an input [N,C,...], found " + to_string(dims));
  QUERNEL_TRY(int64_t channels, n.dim(dims[1]));
  if (groups < 1 || channels % groups != 0)
    return n.invalid("attribute 'num_groups': expected a divisor of the channels of " +
                     to_string(n.shape(x)) + ", found " + std::to_string(groups));
  int64_t scales = n.opset < 21 ? groups : channels;
  for (int i = 1; i <= 2; ++i) QUERNEL_CHECK(check_channels(n, "scale and bias", n.in(i), scales));
  Shape grouped{dims[0], groups, channels / groups};
  std::vector<int64_t> parameter{1, groups, scales / groups};
  grouped.insert(grouped.end(), dims.begin() + 2, dims.end());
  parameter.resize(grouped.size(), 1);
  ValueId y =
      standardize(n, n.build.reshape(x, grouped), axes_from(2, static_cast<int>(grouped.size())), epsilon)
          .value;
  y = n.binary(BinaryOp::k_mul, y, n.reshape(n.in(1), parameter));
  y = n.binary(BinaryOp::k_add, y, n.reshape(n.in(2), parameter));
  return n.output(n.build.reshape(y, dims));
}

namespace {

// The normalised value, which is wide, times the scale, plus the bias where there is one, in `dtype`; both
// broadcast to it.
Expected<ValueId> scale_and_shift(NodeImport& n, ValueId normalized, ValueId scale, ValueId bias,
                                  DType dtype) {
  auto parameter = [&](ValueId v) { return n.build.cast(v, n.dtype(normalized)); };
  ValueId y = n.binary(BinaryOp::k_mul, normalized, parameter(scale));
  if (bias != kNoValue) y = n.binary(BinaryOp::k_add, y, parameter(bias));
  if (n.shape(y) != n.shape(normalized))
    return n.invalid("expected scale and bias that broadcast to " + to_string(n.shape(normalized)));
  return n.build.cast(y, dtype);
}

}  // namespace

Status import_layer_normalization(NodeImport& n) {
  double epsilon = n.attr_float("epsilon", 1e-5f);
  n.ignore_attribute("stash_type");
  ValueId x = n.in(0);
  int rank = n.rank(x);
  QUERNEL_TRY(int64_t axis, n.axis(n.attr_int("axis", -1), rank));
  Standardized s = standardize(n, n.widen(x), axes_from(axis, rank), epsilon);
  QUERNEL_TRY(ValueId y, scale_and_shift(n, s.value, n.in(1), n.in(2), n.dtype(x)));
  return n.set_outputs({y, s.mean, s.inverse_deviation});
}

namespace {

// The normalised values, of the scale's dtype, and 1 / root mean square.
Expected<std::vector<ValueId>> normalize_by_rms(NodeImport& n) {
  double epsilon = n.attr_float("epsilon", 1e-5f);
  n.ignore_attribute("stash_type");
  ValueId x = n.in(0);
  int rank = n.rank(x);
  QUERNEL_TRY(int64_t axis, n.axis(n.attr_int("axis", -1), rank));
  Standardized s = divide_by_rms(n, n.widen(x), axes_from(axis, rank), epsilon);
  QUERNEL_TRY(ValueId y, scale_and_shift(n, s.value, n.in(1), kNoValue, n.dtype(n.in(1))));
  return std::vector<ValueId>{y, s.inverse_deviation};
}

}  // namespace

Status import_rms_normalization(NodeImport& n) {
  QUERNEL_TRY(std::vector<ValueId> results, normalize_by_rms(n));
  return n.output(results[0]);
}

// The name that RMSNormalization had among ONNX Runtime's operators, with a second result.
Status import_simplified_layer_normalization(NodeImport& n) {
  QUERNEL_TRY(std::vector<ValueId> results, normalize_by_rms(n));
  return n.set_outputs(results);
}

// x / (bias + alpha/size * sum of squares over `size` channels around)^beta
Status import_lrn(NodeImport& n) {
  n.compute_wide();
  double alpha = n.attr_float("alpha", 0.0001f), beta = n.attr_float("beta", 0.75),
         bias = n.attr_float("bias", 1);
  int64_t size = n.attr_int("size", 0);
  ValueId x = n.in(0);
  Shape dims = n.shape(x);
  if (dims.size() < 2) return n.invalid("expected an input [N,C,...], found " + to_string(n.shape(x)));
  if (size < 1 || size > (int64_t{1} << 20))
    return n.invalid("attribute 'size': expected at least 1, found " + std::to_string(size));
  ValueId square = n.binary(BinaryOp::k_mul, x, x);
  Shape before(dims.size(), Dim(0)), after(dims.size(), Dim(0));
  before[1] = (size - 1) / 2;
  after[1] = size - 1 - (size - 1) / 2;
  ValueId padded = n.build.pad(square, before, after);
  // [N, C, …, size]: the channels around each.
  Shape window_dims = dims;
  window_dims.push_back(size);
  if (is_static(window_dims) && !element_count(static_dims(window_dims)))
    return n.refuse("the windows have more elements than fit 63 bits");
  IndexMap map;
  for (size_t i = 0; i < dims.size(); ++i) map.indices.push_back(IndexExpr::axis(static_cast<int>(i)));
  map.indices[1] = map.indices[1] + IndexExpr::axis(static_cast<int>(dims.size()));
  ValueId windows = n.build.view(padded, window_dims, std::move(map));
  ValueId sum = n.build.reduce(OpKind::k_reduce_sum, windows, {static_cast<int64_t>(dims.size())}, false);
  ValueId base =
      n.binary(BinaryOp::k_add, n.binary(BinaryOp::k_mul, sum, alpha / static_cast<double>(size)), bias);
  return n.output(n.binary(BinaryOp::k_div, x, n.binary(BinaryOp::k_pow, base, beta)));
}

Status import_lp_normalization(NodeImport& n) {
  n.compute_wide();
  int64_t p = n.attr_int("p", 2);
  ValueId x = n.in(0);
  QUERNEL_TRY(int64_t axis, n.axis(n.attr_int("axis", -1), n.rank(x)));
  if (p != 1 && p != 2) return n.invalid("attribute 'p': expected 1 or 2, found " + std::to_string(p));
  ValueId norm =
      p == 1 ? n.build.reduce(OpKind::k_reduce_sum, n.unary(UnaryOp::k_abs, x), {axis}, true)
             : n.unary(UnaryOp::k_sqrt,
                       n.build.reduce(OpKind::k_reduce_sum, n.binary(BinaryOp::k_mul, x, x), {axis}, true));
  // A zero norm gives zeros, as ONNX's reference does.
  ValueId zero = n.scalar(n.dtype(x), 0);
  ValueId is_zero = n.binary(BinaryOp::k_eq, norm, zero);
  ValueId divisor = n.build.where(is_zero, n.scalar(n.dtype(x), 1), norm);
  return n.output(n.binary(BinaryOp::k_div, x, divisor));
}

Status import_mean_variance_normalization(NodeImport& n) {
  n.compute_wide();
  ValueId x = n.in(0);
  std::vector<int64_t> axes = n.attr_ints("axes").value_or(std::vector<int64_t>{0, 2, 3});
  QUERNEL_TRY(axes, n.axes_in_range(axes, n.rank(x)));
  ValueId centered = n.binary(BinaryOp::k_sub, x, n.mean(x, axes, true));
  ValueId variance = n.mean(n.binary(BinaryOp::k_mul, centered, centered), axes, true);
  ValueId deviation = n.binary(BinaryOp::k_add, n.unary(UnaryOp::k_sqrt, variance), 1e-9);
  return n.output(n.binary(BinaryOp::k_div, centered, deviation));
}

}  // namespace quernel::onnx_import
