// Resizing axes of free sizes: positions and weights are computed at run time, as the constants of known
// sizes are.
#include "frontends/onnx/resize.h"
#include "frontends/shared/contraction.h"

namespace quernel::onnx_import {
namespace {

// Emits arithmetic on f64 vectors over the output's elements.
class FreeAxis {
 public:
  FreeAxis(NodeImport& n, const ResizeOptions& r, const ResizeAxis& a) : n_(n), r_(r), a_(a) {
    scale_ = a.scale ? n.scalar(DType::kF64, *a.scale) : a.free_scale;
    in_ = n.number(DType::kF64, a.in);
    out_ = n.number(DType::kF64, a.out);
    last_ = plus(in_, -1);
    position_ = position(numbers(a.out));
  }

  ValueId read_nearest(ValueId x) {
    ValueId index;
    if (r_.nearest_mode == "floor")
      index = floor(position_);
    else if (r_.nearest_mode == "ceil")
      index = ceil(position_);
    else if (r_.nearest_mode == "round_prefer_ceil")
      index = floor(plus(position_, 0.5));
    else
      index = ceil(plus(position_, -0.5));
    return read(x, index);
  }

  ValueId interpolate(ValueId x) {
    bool cubic = r_.mode == "cubic";
    ValueId first = floor(position_), total = kNoValue, sum = kNoValue;
    std::vector<ValueId> index, weight;
    for (int t = cubic ? -1 : 0; t <= (cubic ? 2 : 1); ++t) {
      index.push_back(plus(first, t));
      weight.push_back(weight_at(index.back(), sub(index.back(), position_)));
      total = total == kNoValue ? weight.back() : add(total, weight.back());
    }
    for (size_t t = 0; t < index.size(); ++t) {
      ValueId w = r_.exclude_outside ? quotient(weight[t], total) : weight[t];
      ValueId term =
          n_.binary(BinaryOp::k_mul, read(x, index[t]), along_axis(x, n_.build.cast(w, n_.dtype(x))));
      sum = sum == kNoValue ? term : n_.binary(BinaryOp::k_add, sum, term);
    }
    return sum;
  }

  // Antialiasing widens the filter when shrinking, so that any number of elements may count.
  ValueId filter(ValueId x) {
    Dim reach = a_.shrink * Dim(r_.mode == "cubic" ? 2 : 1) + 1, columns = a_.in + reach * Dim(2);
    ValueId stretch = n_.binary(BinaryOp::k_max, div(n_.scalar(DType::kF64, 1), scale_), 1.0);
    ValueId index = n_.binary(BinaryOp::k_sub, numbers(columns), n_.number(DType::kF64, reach));
    ValueId distance = div(sub(index, n_.build.reshape(position_, {a_.out, 1})), stretch);
    ValueId weight = weight_at(index, distance);
    weight = quotient(weight, n_.build.reduce(OpKind::k_reduce_sum, weight, {1}, true));
    Shape margin(static_cast<size_t>(n_.rank(x)), Dim(0));
    margin[static_cast<size_t>(a_.axis)] = reach;
    x = n_.build.pad(x, margin, margin, PadMode::kEdge);
    return multiply_axis(n_, x, a_.axis, columns, a_.out, n_.build.cast(weight, n_.dtype(x)));
  }

  // The extrapolation value at positions outside the input.
  ValueId extrapolate(ValueId x) {
    ValueId inside = n_.binary(BinaryOp::k_and, n_.binary(BinaryOp::k_ge, position_, 0.0),
                               n_.binary(BinaryOp::k_le, position_, last_));
    return n_.build.where(along_axis(x, inside), x, n_.scalar(n_.dtype(x), r_.extrapolation));
  }

 private:
  ValueId add(ValueId a, ValueId b) { return n_.binary(BinaryOp::k_add, a, b); }
  ValueId sub(ValueId a, ValueId b) { return n_.binary(BinaryOp::k_sub, a, b); }
  ValueId plus(ValueId a, double number) { return n_.binary(BinaryOp::k_add, a, number); }
  ValueId times(ValueId a, double number) { return n_.binary(BinaryOp::k_mul, a, number); }
  ValueId mul(ValueId a, ValueId b) { return n_.binary(BinaryOp::k_mul, a, b); }
  ValueId div(ValueId a, ValueId b) { return n_.binary(BinaryOp::k_div, a, b); }
  ValueId floor(ValueId a) { return n_.unary(UnaryOp::k_floor, a); }
  ValueId ceil(ValueId a) { return n_.unary(UnaryOp::k_ceil, a); }
  ValueId numbers(const Dim& count) { return n_.build.cast(n_.positions(DType::kI64, count), DType::kF64); }
  ValueId quotient(ValueId weight, ValueId total) {
    return n_.build.where(n_.binary(BinaryOp::k_eq, total, 0.0), weight, div(weight, total));
  }

  ValueId position(ValueId o) {
    ValueId half_pixel = plus(div(plus(o, 0.5), scale_), -0.5);
    ValueId one = n_.binary(BinaryOp::k_eq, out_, 1.0), zero = n_.scalar(DType::kF64, 0);
    if (r_.coordinates == "asymmetric") return div(o, scale_);
    if (r_.coordinates == "align_corners")
      return n_.build.where(one, zero,
                            div(mul(o, last_), plus(r_.whole_length ? out_ : mul(scale_, in_), -1)));
    if (r_.coordinates == "pytorch_half_pixel") return n_.build.where(one, zero, half_pixel);
    if (r_.coordinates == "tf_half_pixel_for_nn") return div(plus(o, 0.5), scale_);
    if (r_.coordinates == "half_pixel_symmetric") {
      ValueId adjustment = div(out_, mul(scale_, in_));
      return add(mul(times(in_, 0.5), sub(n_.scalar(DType::kF64, 1), adjustment)), half_pixel);
    }
    if (r_.coordinates == "tf_crop_and_resize") {
      ValueId step =
          div(times(last_, a_.roi_end - a_.roi_start), n_.binary(BinaryOp::k_max, plus(out_, -1), 1.0));
      return n_.build.where(one, times(last_, 0.5 * (a_.roi_start + a_.roi_end)),
                            add(mul(o, step), times(last_, a_.roi_start)));
    }
    return half_pixel;
  }

  ValueId cubic_weight(ValueId distance) {
    double a = r_.cubic_coeff_a;
    ValueId d = n_.unary(UnaryOp::k_abs, distance);
    ValueId near = plus(mul(mul(plus(times(d, a + 2), -(a + 3)), d), d), 1);
    ValueId far = plus(mul(plus(mul(plus(times(d, a), -5 * a), d), 8 * a), d), -4 * a);
    return n_.build.where(n_.binary(BinaryOp::k_le, d, 1.0), near,
                          n_.build.where(n_.binary(BinaryOp::k_lt, d, 2.0), far, n_.scalar(DType::kF64, 0)));
  }

  ValueId weight_at(ValueId index, ValueId distance) {
    ValueId weight = r_.mode == "cubic"
                         ? cubic_weight(distance)
                         : n_.binary(BinaryOp::k_max,
                                     sub(n_.scalar(DType::kF64, 1), n_.unary(UnaryOp::k_abs, distance)), 0.0);
    if (!r_.exclude_outside) return weight;
    ValueId inside = n_.binary(BinaryOp::k_and, n_.binary(BinaryOp::k_ge, index, 0.0),
                               n_.binary(BinaryOp::k_le, index, last_));
    return n_.build.where(inside, weight, n_.scalar(DType::kF64, 0));
  }

  ValueId read(ValueId x, ValueId index) {
    ValueId clamped = n_.binary(BinaryOp::k_max, n_.binary(BinaryOp::k_min, index, last_), 0.0);
    return n_.build.take(x, n_.build.cast(clamped, DType::kI64), a_.axis);
  }

  ValueId along_axis(ValueId x, ValueId vector) {
    Shape shape(static_cast<size_t>(n_.rank(x) - a_.axis), Dim(1));
    shape[0] = a_.out;
    return n_.build.reshape(vector, shape);
  }

  NodeImport& n_;
  const ResizeOptions& r_;
  const ResizeAxis& a_;
  ValueId scale_, in_, out_, last_, position_;
};

}  // namespace

Expected<ValueId> resize_free_axis(NodeImport& n, ValueId x, const ResizeOptions& r, const ResizeAxis& a) {
  if (std::optional<int64_t> times = whole_repeats(r, a); times && a.out == a.in * Dim(*times))
    return repeat_along_axis(n, x, a.axis, *times);
  FreeAxis axis(n, r, a);
  x = r.mode == "nearest" ? axis.read_nearest(x) : r.antialias ? axis.filter(x) : axis.interpolate(x);
  if (r.coordinates == "tf_crop_and_resize") x = axis.extrapolate(x);
  return x;
}

}  // namespace quernel::onnx_import
