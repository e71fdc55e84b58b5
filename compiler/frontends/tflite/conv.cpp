// CONV_2D, DEPTHWISE_CONV_2D, CONV_3D and TRANSPOSE_CONV.
#include "frontends/tflite/conv.h"

#include <algorithm>

#include "frontends/tflite/operators.h"

namespace quernel::tflite_import {
namespace {

// Weights of integers stand for reals also where x is a float; then they are dequantized.
Status float_convolution(NodeImport& n, const Convolution& c) {
  ValueId x = window_input(n, n.real(c.input), c, 0);
  ValueId weights = window_weights(n, n.real(c.weights), c);
  ValueId y = contract_windows(n, x, weights, c.window, c.layout, c.groups, std::nullopt);
  if (n.has(c.bias)) y = n.binary(BinaryOp::k_add, y, n.real(c.bias));
  QUERNEL_TRY(y, activate(n, y, c.activation));
  return n.output(n.build.cast(y, n.out_dtype(0)));
}

Status convolution(NodeImport& n, const Convolution& c) {
  if (n.has(c.bias) && !(n.shape(n.in(c.bias)) == Shape{c.channels}))
    return n.invalid("expected a bias of [" + std::to_string(c.channels) + "], found " +
                     to_string(n.shape(n.in(c.bias))));
  return n.is_float(c.input) ? float_convolution(n, c) : quantized_convolution(n, c);
}

Expected<std::vector<int64_t>> kernel_of(NodeImport& n, int weights) {
  QUERNEL_TRY(std::vector<int64_t> dims, n.dims(n.in(weights)));
  return std::vector<int64_t>(dims.begin() + 1, dims.end() - 1);
}

Diagnostic channels_disagree(NodeImport& n, const Convolution& c) {
  return n.invalid("expected weights for the channels of " + to_string(n.shape(n.in(c.input))) + ", found " +
                   to_string(n.shape(n.in(c.weights))));
}

// CONV_2D and CONV_3D, once the window is known. Weights [output channels, kernel…, input channels / groups].
Status grouped_convolution(NodeImport& n, Convolution c) {
  QUERNEL_TRY(int64_t channels, n.dim(n.shape(n.in(c.input)).back()));
  QUERNEL_TRY(std::vector<int64_t> dims, n.dims(n.in(c.weights)));
  if (dims.back() < 1 || channels % dims.back() != 0 || channels == 0) return channels_disagree(n, c);
  c.groups = channels / dims.back();
  c.channels = dims[0];
  if (c.channels % c.groups != 0) return channels_disagree(n, c);
  return convolution(n, c);
}

}  // namespace

ValueId window_input(ImportedNode& n, ValueId x, const Convolution& c, double fill) {
  if (c.spread.empty()) return pad_for_windows(n, x, c.window, fill);
  Shape dims = n.shape(x), apart{dims[0]}, none{0}, gaps{0}, joined{dims[0]};
  for (size_t i = 0; i < c.spread.size(); ++i) {
    apart.insert(apart.end(), {dims[i + 1], 1});
    none.insert(none.end(), {0, 0});
    gaps.insert(gaps.end(), {0, c.spread[i] - 1});
    joined.push_back(dims[i + 1] * c.spread[i]);
  }
  apart.push_back(dims.back());
  none.push_back(0);
  gaps.push_back(0);
  joined.push_back(dims.back());
  if (std::any_of(c.spread.begin(), c.spread.end(), [](int64_t step) { return step > 1; }))
    x = n.build.reshape(n.build.pad(n.build.reshape(x, apart), none, gaps, PadMode::kConstant, fill), joined);
  // Negative padding leaves out edges, among them the gaps behind the last elements.
  Shape starts(dims.size(), Dim(0)), stops = n.shape(x);
  Window padded = c.window;
  for (size_t i = 0; i < c.spread.size(); ++i) {
    starts[i + 1] = std::max<int64_t>(-c.window.before[i], 0);
    stops[i + 1] = stops[i + 1] - std::max<int64_t>(-c.window.after[i], 0);
    padded.before[i] = std::max<int64_t>(c.window.before[i], 0);
    padded.after[i] = std::max<int64_t>(c.window.after[i], 0);
  }
  return pad_for_windows(n, n.build.slice(x, starts, stops), padded, fill);
}

ValueId window_weights(ImportedNode& n, ValueId weights, const Convolution& c) {
  if (c.spread.empty()) return weights;
  std::vector<int64_t> axes;
  for (size_t i = 0; i < c.spread.size(); ++i) axes.push_back(static_cast<int64_t>(i) + 1);
  return n.build.flip(weights, axes);
}

Status import_conv_2d(NodeImport& n) {
  const auto& options = n.options<tflite::Conv2DOptions>();
  for (int i : {0, 1}) QUERNEL_CHECK(n.expect_rank(i, 4, 4));
  Convolution c;
  QUERNEL_TRY(std::vector<int64_t> kernel, kernel_of(n, 1));
  QUERNEL_TRY(c.window,
              make_window(n, n.in(0), std::move(kernel), {options.stride_h(), options.stride_w()},
                          {options.dilation_h_factor(), options.dilation_w_factor()}, options.padding()));
  c.activation = options.fused_activation_function();
  return grouped_convolution(n, std::move(c));
}

// Weights [depth, height, width, input channels, output channels].
Status import_conv_3d(NodeImport& n) {
  const auto& options = n.options<tflite::Conv3DOptions>();
  for (int i : {0, 1}) {
    QUERNEL_CHECK(n.expect_rank(i, 5, 5));
    QUERNEL_CHECK(n.expect_dtypes(i, {DType::kF32}));
  }
  Convolution c;
  n.inputs[1] = n.build.permute(n.in(1), {4, 0, 1, 2, 3});
  QUERNEL_TRY(std::vector<int64_t> kernel, kernel_of(n, 1));
  QUERNEL_TRY(
      c.window,
      make_window(n, n.in(0), std::move(kernel), {options.stride_d(), options.stride_h(), options.stride_w()},
                  {options.dilation_d_factor(), options.dilation_h_factor(), options.dilation_w_factor()},
                  options.padding()));
  c.activation = options.fused_activation_function();
  return grouped_convolution(n, std::move(c));
}

// The depth multiplier follows from the shapes; files need not say it.
Status import_depthwise_conv_2d(NodeImport& n) {
  const auto& options = n.options<tflite::DepthwiseConv2DOptions>();
  for (int i : {0, 1}) QUERNEL_CHECK(n.expect_rank(i, 4, 4));
  Convolution c;
  QUERNEL_TRY(std::vector<int64_t> kernel, kernel_of(n, 1));
  QUERNEL_TRY(c.window,
              make_window(n, n.in(0), std::move(kernel), {options.stride_h(), options.stride_w()},
                          {options.dilation_h_factor(), options.dilation_w_factor()}, options.padding()));
  c.activation = options.fused_activation_function();
  c.layout = WeightLayout::kDepthwise;
  QUERNEL_TRY(c.groups, n.dim(n.shape(n.in(0)).back()));
  QUERNEL_TRY(c.channels, n.dim(n.shape(n.in(1)).back()));
  if (c.groups < 1 || c.channels % c.groups != 0 || !(n.shape(n.in(1))[0] == Dim(1)))
    return channels_disagree(n, c);
  return convolution(n, c);
}

// Operands: the result's shape, weights [output channels, kernel…, input channels], x, bias.
Status import_transpose_conv(NodeImport& n) {
  const auto& options = n.options<tflite::TransposeConvOptions>();
  for (int i : {1, 2}) QUERNEL_CHECK(n.expect_rank(i, 4, 4));
  QUERNEL_TRY(std::vector<int64_t> out, n.ints_in(0, "the result's shape"));
  QUERNEL_TRY(std::vector<int64_t> kernel, kernel_of(n, 1));
  Convolution c;
  c.input = 2;
  c.bias = 3;
  c.activation = options.fused_activation_function();
  c.spread = {options.stride_h(), options.stride_w()};
  if (out.size() != 4 || !(n.shape(n.in(2)).back() == n.shape(n.in(1)).back()))
    return channels_disagree(n, c);
  QUERNEL_TRY(c.channels, n.dim(n.in(1), 0));
  Window& w = c.window;
  QUERNEL_TRY(w, make_window(n, n.in(2), kernel, c.spread, {1, 1}, options.padding()));
  for (size_t i = 0; i < 2; ++i) {
    int64_t size = w.size[i], covered = (size - 1) * c.spread[i] + kernel[i];
    int64_t before =
        options.padding() == tflite::Padding::SAME ? std::max<int64_t>(covered - out[i + 1], 0) / 2 : 0;
    w.strides[i] = 1;
    w.out[i] = out[i + 1];
    // x spread has size * stride elements; the windows of kernel - 1 more than the result has reach over it.
    w.before[i] = kernel[i] - 1 - before;
    w.after[i] = out[i + 1] + kernel[i] - 1 - size * c.spread[i] - w.before[i];
    if (out[i + 1] < 1 || w.before[i] + size * c.spread[i] < 1 || w.after[i] + size * c.spread[i] < 1)
      return n.invalid("expected a result's shape that the operand can have, found " +
                       to_string(make_shape(out)));
  }
  return convolution(n, c);
}

}  // namespace quernel::tflite_import
