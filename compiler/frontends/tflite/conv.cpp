// CONV_2D, DEPTHWISE_CONV_2D, CONV_3D, TRANSPOSE_CONV and Convolution2DTransposeBias.
#include "frontends/tflite/conv.h"

#include <algorithm>
#include <array>
#include <cstring>

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

namespace {

// TRANSPOSE_CONV, once the result's spatial dims, and the padding that is cut off in front, are known. Weights
// [output channels, kernel…, input channels].
Status transposed_convolution(NodeImport& n, Convolution c, const std::vector<int64_t>& out,
                              const std::vector<int64_t>& cut) {
  Window& w = c.window;
  for (size_t i = 0; i < 2; ++i) {
    w.strides[i] = 1;
    w.out[i] = out[i];
    // x spread has size * stride elements; the windows of kernel - 1 more than the result has reach over it.
    w.before[i] = w.kernel[i] - 1 - cut[i];
    w.after[i] = out[i] + w.kernel[i] - 1 - w.size[i] * c.spread[i] - w.before[i];
    if (out[i] < 1 || w.before[i] + w.size[i] * c.spread[i] < 1 || w.after[i] + w.size[i] * c.spread[i] < 1)
      return n.invalid("expected a result's size that the operand can have, found " +
                       to_string(make_shape(out)));
  }
  return convolution(n, c);
}

// What all forms of TRANSPOSE_CONV have.
Expected<Convolution> read_transposed(NodeImport& n, int input, int bias, int64_t stride_h, int64_t stride_w,
                                      tflite::Padding padding) {
  for (int i : {input, 1}) QUERNEL_CHECK(n.expect_rank(i, 4, 4));
  Convolution c;
  c.input = input;
  c.bias = bias;
  c.spread = {stride_h, stride_w};
  if (!(n.shape(n.in(input)).back() == n.shape(n.in(1)).back())) return channels_disagree(n, c);
  QUERNEL_TRY(c.channels, n.dim(n.in(1), 0));
  QUERNEL_TRY(std::vector<int64_t> kernel, kernel_of(n, 1));
  QUERNEL_TRY(c.window, make_window(n, n.in(input), std::move(kernel), c.spread, {1, 1}, padding));
  return c;
}

}  // namespace

// Operands: the result's shape, weights, x, bias.
Status import_transpose_conv(NodeImport& n) {
  const auto& options = n.options<tflite::TransposeConvOptions>();
  QUERNEL_TRY(Convolution c,
              read_transposed(n, 2, 3, options.stride_h(), options.stride_w(), options.padding()));
  c.activation = options.fused_activation_function();
  QUERNEL_TRY(std::vector<int64_t> out, n.ints_in(0, "the result's shape"));
  if (out.size() != 4) return channels_disagree(n, c);
  std::vector<int64_t> cut(2);
  if (options.padding() == tflite::Padding::SAME)
    for (size_t i = 0; i < 2; ++i) {
      int64_t covered = (c.window.size[i] - 1) * c.spread[i] + c.window.kernel[i];
      cut[i] = std::max<int64_t>(covered - out[i + 1], 0) / 2;
    }
  return transposed_convolution(n, std::move(c), {out[1], out[2]}, cut);
}

// MediaPipe's custom operator. Operands: x, weights, bias. Its options are words of 32 bits: padding (1: SAME, 2: VALID),
// stride of columns, stride of rows, and others that it does not read.
Status import_convolution_2d_transpose_bias(NodeImport& n) {
  std::vector<uint8_t> bytes = n.custom_options();
  std::array<int32_t, 3> words{};
  if (bytes.size() < sizeof words)
    return n.invalid("expected options of at least " + std::to_string(sizeof words) + " bytes, found " +
                     std::to_string(bytes.size()));
  std::memcpy(words.data(), bytes.data(), sizeof words);
  if (words[0] != 1 && words[0] != 2) return n.bad_option("padding", "1 or 2", std::to_string(words[0]));
  bool same = words[0] == 1;
  for (int i : {0, 1, 2}) QUERNEL_CHECK(n.expect_dtypes(i, {DType::kF32}));
  QUERNEL_TRY(Convolution c, read_transposed(n, 0, 2, words[2], words[1],
                                             same ? tflite::Padding::SAME : tflite::Padding::VALID));
  std::vector<int64_t> out(2), cut(2);
  for (size_t i = 0; i < 2; ++i) {
    int64_t last = c.window.size[i] - 1, kernel = c.window.kernel[i];
    int64_t spare = same ? std::max<int64_t>(kernel - last % c.spread[i] - 1, 0) : 0;
    out[i] = last * c.spread[i] + kernel - spare;
    cut[i] = spare / 2;
  }
  return transposed_convolution(n, std::move(c), out, cut);
}

}  // namespace quernel::tflite_import
