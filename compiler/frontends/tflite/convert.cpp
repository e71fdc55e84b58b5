// QUANTIZE, DEQUANTIZE, DENSIFY.
#include <algorithm>

#include "frontends/tflite/operators.h"
#include "frontends/tflite/quantize.h"

namespace quernel::tflite_import {

Status import_quantize(NodeImport& n) {
  if (!n.is_output_quantized()) return n.no_kernel();
  if (n.is_float(0)) {
    auto function = n.file.rounding == IntegerRounding::kFloat32 && n.out_quantization(0).is_per_tensor()
                        ? quantize_by_product
                        : quantize;
    return n.output(function(n, n.real(0), n.out_quantization(0), n.out_dtype(0)));
  }
  QUERNEL_CHECK(n.expect_dtypes(0, {DType::kI8, DType::kU8, DType::kI16, DType::kI32}));
  QUERNEL_CHECK(n.expect_per_tensor(0));
  QUERNEL_CHECK(n.expect_output_per_tensor());
  const Quantization &in = n.in_quantization(0), &out = n.out_quantization(0);
  Multiplier m =
      make_multiplier(static_cast<double>(in.scale()) / static_cast<double>(out.scale()), n.file.rounding);
  if (n.dtype(n.in(0)) == n.out_dtype(0)) m = eight_bit_multiplier(n, in.scale() / out.scale()).value_or(m);
  if (bit_width(n.dtype(n.in(0))) > 8)
    return n.output(requantize(n, centred(n, n.in(0), in.zero()), {m}, ActivationFunctionType::NONE));
  QUERNEL_TRY(IntegerRange range, integer_range(n, ActivationFunctionType::NONE, n.out_dtype(0), out));
  return n.output(look_up(n, n.in(0), n.out_dtype(0), [&](int64_t x) {
    return std::clamp(scale_integer(x - in.zero(), m) + out.zero(), range.lo, range.hi);
  }));
}

Status import_dequantize(NodeImport& n) { return n.output(n.build.cast(n.real(0), n.out_dtype(0))); }

// Sparse constants have been made dense when they were read.
Status import_densify(NodeImport& n) { return n.output(n.in(0)); }

}  // namespace quernel::tflite_import
