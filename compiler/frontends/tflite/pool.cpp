// Pools: a view of the windows, reduced over them. Padding is no element.
#include <cmath>
#include <limits>

#include "frontends/tflite/activation.h"
#include "frontends/tflite/operators.h"
#include "frontends/tflite/quantize.h"
#include "frontends/tflite/window.h"

namespace quernel::tflite_import {
namespace {

constexpr std::initializer_list<DType> kElements{DType::kF32, DType::kI8, DType::kU8, DType::kI16};
const std::vector<int64_t> kWindowAxes{3, 4};

Expected<Window> pool_window(NodeImport& n, const tflite::Pool2DOptions& options) {
  QUERNEL_CHECK(n.expect_rank(0, 4, 4));
  QUERNEL_CHECK(n.expect_dtypes(0, kElements));
  if (!n.is_float(0) && !(n.in_quantization(0) == n.out_quantization(0)))
    return n.refuse("expected operands and result of one scale and zero point");
  return make_window(n, n.in(0), {options.filter_height(), options.filter_width()},
                     {options.stride_h(), options.stride_w()}, {1, 1}, options.padding());
}

// [out height, out width, 1]: how many elements each window has.
ValueId counts(NodeImport& n, const Window& w, DType dtype) {
  constexpr int64_t kMost = int64_t{1} << 22;
  for (int64_t size : {w.out[0], w.out[1]})
    if (size > kMost)
      return n.build.fail(
          n.refuse("expected at most 2^22 windows along a dim, found " + std::to_string(size)));
  ValueId rows = n.build.constant(i64_tensor({w.out[0], 1, 1}, w.covered(0))),
          columns = n.build.constant(i64_tensor({1, w.out[1], 1}, w.covered(1)));
  return n.build.cast(n.binary(BinaryOp::k_mul, rows, columns), dtype);
}

ValueId sum_windows(NodeImport& n, ValueId x, const Window& w) {
  ValueId windows = view_windows(n, pad_for_windows(n, x, w, 0), w);
  return n.build.reduce(OpKind::k_reduce_sum, windows, kWindowAxes, false);
}

}  // namespace

Status import_max_pool_2d(NodeImport& n) {
  const auto& options = n.options<tflite::Pool2DOptions>();
  QUERNEL_TRY(Window w, pool_window(n, options));
  DType dtype = n.dtype(n.in(0));
  double lowest = is_float(dtype)            ? -std::numeric_limits<double>::infinity()
                  : is_signed_integer(dtype) ? -std::ldexp(1.0, bit_width(dtype) - 1)
                                             : 0;
  ValueId windows = view_windows(n, pad_for_windows(n, n.in(0), w, lowest), w);
  ValueId y = n.build.reduce(OpKind::k_reduce_max, windows, kWindowAxes, false);
  if (!is_float(dtype)) return n.output(clamp_integers(n, y, options.fused_activation_function()));
  QUERNEL_TRY(y, activate(n, y, options.fused_activation_function()));
  return n.output(y);
}

// Means of integers round halves away from zero.
Status import_average_pool_2d(NodeImport& n) {
  const auto& options = n.options<tflite::Pool2DOptions>();
  QUERNEL_TRY(Window w, pool_window(n, options));
  if (n.is_float(0)) {
    ValueId sum = sum_windows(n, n.in(0), w);
    QUERNEL_TRY(ValueId y, activate(n, n.binary(BinaryOp::k_div, sum, counts(n, w, DType::kF32)),
                                    options.fused_activation_function()));
    return n.output(y);
  }
  ValueId sum = sum_windows(n, n.build.cast(n.in(0), DType::kI32), w);
  ValueId mean = divide_rounding(n, sum, counts(n, w, DType::kI32));
  return n.output(clamp_integers(n, mean, options.fused_activation_function()));
}

Status import_l2_pool_2d(NodeImport& n) {
  const auto& options = n.options<tflite::Pool2DOptions>();
  if (!n.is_float(0)) return n.no_kernel();
  QUERNEL_TRY(Window w, pool_window(n, options));
  ValueId sum = sum_windows(n, n.binary(BinaryOp::k_mul, n.in(0), n.in(0)), w);
  ValueId mean = n.binary(BinaryOp::k_div, sum, counts(n, w, DType::kF32));
  QUERNEL_TRY(ValueId y, activate(n, n.unary(UnaryOp::k_sqrt, mean), options.fused_activation_function()));
  return n.output(y);
}

}  // namespace quernel::tflite_import
