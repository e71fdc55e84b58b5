// Conv of any rank, group, stride and dilation: padding and one contraction.
#include <algorithm>

#include "frontends/onnx/conv.h"
#include "frontends/onnx/operators.h"
#include "frontends/onnx/window.h"
#include "frontends/shared/contraction.h"

namespace quernel::onnx_import {

// out[n, g*OG+o, y, x] = sum over c, ky, kx of x[n, g*CG+c, sy*y + dy*ky, …] * w[g*OG+o, c, ky, kx]
ValueId contract_windows(NodeImport& n, ValueId x, ValueId weights, const Window& w,
                         const std::vector<int64_t>& weight_dims, const Dim& batch, int64_t groups,
                         std::optional<DType> accumulator) {
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
    IndexExpr at = position[i] * w.strides[i] + k * w.dilations[i];
    index_x.push_back(w.first.empty() ? at : at + w.first[i]);
    index_w.push_back(k);
  }
  return c.emit(n, x, std::move(index_x), weights, std::move(index_w), std::move(index_out), accumulator);
}

Expected<ValueId> convolve(NodeImport& n, ValueId x, ValueId weights, double fill,
                           std::optional<DType> accumulator) {
  Shape dims = n.shape(x);
  QUERNEL_TRY(std::vector<int64_t> weight_dims, n.dims(weights));
  if (dims.size() < 3 || weight_dims.size() != dims.size())
    return n.invalid("expected input [N,C,D...] and weights [M,C/group,K...] of one rank, found " +
                     to_string(n.shape(x)) + " and " + to_string(n.shape(weights)));
  int64_t groups = n.attr_int("group", 1);
  if (groups < 1 || groups > weight_dims[0] || weight_dims[0] % groups != 0)
    return n.invalid("attribute 'group': expected a divisor of " + std::to_string(weight_dims[0]) +
                     " output channels, found " + std::to_string(groups));
  if (!(dims[1] == Dim(weight_dims[1] * groups)))
    return n.invalid("expected " + std::to_string(weight_dims[1]) + " * group " + std::to_string(groups) +
                     " input channels for weights " + to_string(n.shape(weights)) + ", found " +
                     to_string(dims[1]));
  std::vector<int64_t> kernel(weight_dims.begin() + 2, weight_dims.end());
  Shape spatial(dims.begin() + 2, dims.end());
  if (auto declared = n.attr_ints("kernel_shape"); declared && *declared != kernel)
    return n.invalid("attribute 'kernel_shape' disagrees with weights of shape " +
                     to_string(n.shape(weights)));
  QUERNEL_TRY(Window w, read_window(n, kernel, spatial, false));
  ValueId padded = pad_for_windows(n, x, w, spatial, fill);
  ValueId y = contract_windows(n, padded, weights, w, weight_dims, dims[0], groups, accumulator);
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
  if (n.has(2)) n.compute_wide();
  QUERNEL_TRY(ValueId y, convolve(n, n.in(0), n.in(1)));
  if (n.has(2)) {
    QUERNEL_TRY(y, add_bias(n, y, n.in(2)));
  }
  return n.output(y);
}

}  // namespace quernel::onnx_import
