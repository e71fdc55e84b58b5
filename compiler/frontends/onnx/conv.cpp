// Conv of any rank, group, stride and dilation: padding and one contraction.
#include <algorithm>

#include "frontends/onnx/contraction.h"
#include "frontends/onnx/conv.h"
#include "frontends/onnx/operators.h"
#include "frontends/onnx/window.h"

namespace quernel::onnx_import {
namespace {

// out[n, g*OG+o, y, x] = sum over c, ky, kx of x[n, g*CG+c, sy*y + dy*ky, …] * w[g*OG+o, c, ky, kx]
ValueId contract_windows(NodeImport& n, ValueId x, ValueId weights, const Window& w,
                         const std::vector<int64_t>& weight_dims, int64_t batch, int64_t groups,
                         std::optional<DType> accumulator = {}) {
  int64_t channels_out = weight_dims[0] / groups, channels_in = weight_dims[1];
  ContractionBuilder c;
  IndexExpr image = c.axis("n", batch), group = c.axis("g", groups), o = c.axis("o", channels_out);
  IndexExpr out_channel = group * channels_out + o;
  std::vector<IndexExpr> index_x{image, 0}, index_w{out_channel}, index_out{image, out_channel}, position;
  for (size_t i = 0; i < w.rank(); ++i) {
    position.push_back(c.axis(spatial_axis_name(i, w.rank()), w.out[i]));
    index_out.push_back(position.back());
  }
  IndexExpr in_channel = c.reduction("c", channels_in);
  index_x[1] = group * channels_in + in_channel;
  index_w.push_back(in_channel);
  for (size_t i = 0; i < w.rank(); ++i) {
    IndexExpr k = c.reduction(spatial_axis_name(i, w.rank(), "k"), w.kernel[i]);
    index_x.push_back(position[i] * w.strides[i] + k * w.dilations[i]);
    index_w.push_back(k);
  }
  return c.emit(n, x, std::move(index_x), weights, std::move(index_w), std::move(index_out), accumulator);
}

}  // namespace

Expected<ValueId> convolve(NodeImport& n, ValueId x, ValueId weights, double fill,
                           std::optional<DType> accumulator) {
  QUERNEL_TRY(std::vector<int64_t> dims, n.dims(x));
  QUERNEL_TRY(std::vector<int64_t> weight_dims, n.dims(weights));
  if (dims.size() < 3 || weight_dims.size() != dims.size())
    return n.invalid("expected input [N,C,D...] and weights [M,C/group,K...] of one rank, found " +
                     to_string(n.shape(x)) + " and " + to_string(n.shape(weights)));
  int64_t groups = n.attr_int("group", 1);
  if (groups < 1 || groups > weight_dims[0] || weight_dims[0] % groups != 0)
    return n.invalid("attribute 'group': expected a divisor of " + std::to_string(weight_dims[0]) +
                     " output channels, found " + std::to_string(groups));
  if (dims[1] % groups != 0 || dims[1] / groups != weight_dims[1])
    return n.invalid("expected " + std::to_string(weight_dims[1]) + " * group " + std::to_string(groups) +
                     " input channels for weights " + to_string(n.shape(weights)) + ", found " +
                     std::to_string(dims[1]));
  std::vector<int64_t> kernel(weight_dims.begin() + 2, weight_dims.end()),
      spatial(dims.begin() + 2, dims.end());
  if (auto declared = n.attr_ints("kernel_shape"); declared && *declared != kernel)
    return n.invalid("attribute 'kernel_shape' disagrees with weights of shape " +
                     to_string(n.shape(weights)));
  QUERNEL_TRY(Window w, read_window(n, kernel, spatial, false));
  ValueId padded = pad_for_windows(n, x, w, spatial, fill);
  ValueId y = contract_windows(n, padded, weights, w, weight_dims, dims[0], groups, accumulator);
  QUERNEL_CHECK(n.build.status());
  return y;
}

Expected<ValueId> add_bias(NodeImport& n, ValueId y, ValueId v) {
  Shape dims(static_cast<size_t>(n.rank(y)), Dim(1));
  dims[1] = n.shape(y)[1];
  if (n.shape(v) != Shape{dims[1]})
    return n.invalid("expected a bias of [" + to_string(dims[1]) + "], found " + to_string(n.shape(v)));
  return n.binary(BinaryOp::k_add, y, n.build.reshape(v, dims));
}

Status import_conv(NodeImport& n) {
  // With a bias, narrow floats are rounded once, after it.
  bool biased = n.has(2);
  QUERNEL_TRY(ValueId y,
              convolve(n, biased ? n.widen(n.in(0)) : n.in(0), biased ? n.widen(n.in(1)) : n.in(1)));
  if (biased) {
    QUERNEL_TRY(y, add_bias(n, y, n.widen(n.in(2))));
  }
  return n.output(n.build.cast(y, n.dtype(n.in(0))));
}

// The gradient of Conv as a Conv of stride 1: zeros between the input's elements, padding, weights flipped in
// space.
Status import_conv_transpose(NodeImport& n) {
  ValueId x = n.in(0), weights = n.in(1);
  QUERNEL_TRY(std::vector<int64_t> dims, n.dims(x));
  QUERNEL_TRY(std::vector<int64_t> weight_dims, n.dims(weights));
  size_t rank = dims.size() - 2;
  if (dims.size() < 3 || weight_dims.size() != dims.size())
    return n.invalid("expected input [N,C,D...] and weights [C,M/group,K...] of one rank, found " +
                     to_string(n.shape(x)) + " and " + to_string(n.shape(weights)));
  int64_t groups = n.attr_int("group", 1);
  if (groups < 1 || groups > dims[1] || dims[1] % groups != 0 || weight_dims[0] != dims[1])
    return n.invalid("expected weights for " + std::to_string(dims[1]) +
                     " input channels in whole groups, found " + to_string(n.shape(weights)) + " and group " +
                     std::to_string(groups));
  std::vector<int64_t> kernel(weight_dims.begin() + 2, weight_dims.end());
  if (auto declared = n.attr_ints("kernel_shape"); declared && *declared != kernel)
    return n.invalid("attribute 'kernel_shape' disagrees with weights of shape " +
                     to_string(n.shape(weights)));
  QUERNEL_TRY(std::vector<int64_t> strides, read_window_steps(n, "strides", rank));
  QUERNEL_TRY(std::vector<int64_t> dilations, read_window_steps(n, "dilations", rank));
  QUERNEL_TRY(WindowPads pads, read_window_pads(n, rank));
  std::string auto_pad = n.attr_string("auto_pad", "NOTSET");
  std::vector<int64_t> extra = n.attr_ints("output_padding").value_or(std::vector<int64_t>(rank, 0));
  std::optional<std::vector<int64_t>> wanted = n.attr_ints("output_shape");
  if (wanted && wanted->size() == rank + 2) wanted->erase(wanted->begin(), wanted->begin() + 2);
  if (extra.size() != rank || (wanted && wanted->size() != rank))
    return n.invalid("attributes 'output_padding' and 'output_shape': expected " + std::to_string(rank) +
                     " values");

  // A view of x: element (position - before) / stride where that is whole and inside, else 0.
  IndexMap stuffed;
  stuffed.indices = {IndexExpr::axis(0), IndexExpr::axis(1)};
  std::vector<int64_t> stuffed_dims{dims[0], dims[1]};
  Window w{kernel, std::vector<int64_t>(rank, 1), dilations, {}, {}, {}, {}};
  for (size_t i = 0; i < rank; ++i) {
    constexpr int64_t kLimit = int64_t{1} << 31;
    int64_t size = dims[i + 2], stride = strides[i];
    if (kernel[i] < 1 || kernel[i] > kLimit || size > kLimit || extra[i] < 0 || extra[i] > kLimit ||
        (wanted && ((*wanted)[i] < 1 || (*wanted)[i] > kLimit)))
      return n.invalid("expected kernel sizes of at least 1 and output padding of at least 0, below 2^31");
    int64_t full = (size - 1) * stride + w.extent(i) + extra[i];
    bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
    if (wanted || same) {
      int64_t target = wanted ? (*wanted)[i] : size * stride;
      int64_t total = std::max<int64_t>(0, full - target);
      pads.before[i] = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
      pads.after[i] = total - pads.before[i];
      full = std::max(full, target);
    } else if (auto_pad == "VALID") {
      pads.before[i] = pads.after[i] = 0;
    } else if (auto_pad != "NOTSET" && !auto_pad.empty()) {
      return n.invalid("attribute 'auto_pad': expected NOTSET, SAME_UPPER, SAME_LOWER or VALID, found '" +
                       auto_pad + "'");
    }
    int64_t out = full - pads.before[i] - pads.after[i];
    if (size < 1 || out < 1)
      return n.invalid("expected an output of at least one element on spatial dim " + std::to_string(i));
    w.out.push_back(out);
    int64_t before = w.extent(i) - 1 - pads.before[i];
    IndexExpr position = IndexExpr::axis(static_cast<int>(i) + 2) + IndexExpr(-before);
    stuffed_dims.push_back(out + w.extent(i) - 1);
    stuffed.indices.push_back(floordiv(position, stride));
    stuffed.guards.push_back({position, 0, (size - 1) * stride + 1});
    if (stride > 1) stuffed.guards.push_back({floormod(position, stride), 0, 1});
  }
  if (!element_count(stuffed_dims)) return n.refuse("the padded input has more elements than fit 63 bits");
  ValueId padded = n.build.view(x, make_shape(stuffed_dims), stuffed, 0);
  std::vector<int64_t> spatial_axes;
  for (size_t i = 0; i < rank; ++i) spatial_axes.push_back(static_cast<int64_t>(i) + 2);
  ValueId flipped = n.build.flip(weights, spatial_axes);

  // Weights [g*CG+c, o, k…] become [g*OG+o, c, k…], as Conv has them.
  int64_t channels_in = dims[1] / groups, channels_out = weight_dims[1];
  std::vector<int64_t> split{groups, channels_in, channels_out}, order{0, 2, 1},
      merged{groups * channels_out, channels_in};
  for (size_t i = 0; i < rank; ++i) {
    split.push_back(kernel[i]);
    order.push_back(static_cast<int64_t>(i) + 3);
    merged.push_back(kernel[i]);
  }
  ValueId arranged = n.reshape(n.build.permute(n.reshape(flipped, split), order), merged);
  ValueId y = contract_windows(n, padded, arranged, w, merged, dims[0], groups);
  if (n.has(2)) {
    if (n.shape(n.in(2)) != Shape{merged[0]})
      return n.invalid("expected a bias of [" + std::to_string(merged[0]) + "], found " +
                       to_string(n.shape(n.in(2))));
    std::vector<int64_t> bias_dims(dims.size(), 1);
    bias_dims[1] = merged[0];
    y = n.binary(BinaryOp::k_add, y, n.reshape(n.in(2), bias_dims));
  }
  return n.output(y);
}

}  // namespace quernel::onnx_import
