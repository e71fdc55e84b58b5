#include "frontends/tflite/window.h"

#include <algorithm>

#include "frontends/shared/contraction.h"

namespace quernel::tflite_import {
namespace {

std::string axis_name(const char* prefix, size_t i, size_t rank) {
  return prefix + std::string(1, static_cast<char>('x' + (rank - 1 - i)));
}

}  // namespace

std::vector<int64_t> Window::covered(size_t i) const {
  std::vector<int64_t> counts(static_cast<size_t>(out[i]));
  for (size_t o = 0; o < counts.size(); ++o)
    for (int64_t k = 0; k < kernel[i]; ++k) {
      int64_t position = static_cast<int64_t>(o) * strides[i] - before[i] + k * dilations[i];
      counts[o] += position >= 0 && position < size[i];
    }
  return counts;
}

Expected<Window> make_window(NodeImport& n, ValueId x, std::vector<int64_t> kernel,
                             std::vector<int64_t> strides, std::vector<int64_t> dilations,
                             tflite::Padding padding) {
  constexpr int64_t kMaxStep = int64_t{1} << 24;
  Window w{std::move(kernel), std::move(strides), std::move(dilations), {}, {}, {}, {}};
  if (padding != tflite::Padding::SAME && padding != tflite::Padding::VALID)
    return n.bad_option("padding", "SAME or VALID", std::to_string(static_cast<int>(padding)));
  for (const auto* steps : {&w.kernel, &w.strides, &w.dilations})
    for (int64_t step : *steps)
      if (step < 1 || step > kMaxStep)
        return n.invalid("expected a window with sizes, strides and dilations of at least 1, found " +
                         std::to_string(step));
  for (size_t i = 0; i < w.rank(); ++i) {
    QUERNEL_TRY(int64_t size, n.dim(x, static_cast<int64_t>(i) + 1));
    w.size.push_back(size);
    int64_t reach = size - w.extent(i);
    if (padding == tflite::Padding::SAME) {
      int64_t out = (size + w.strides[i] - 1) / w.strides[i];
      int64_t total = std::max<int64_t>((out - 1) * w.strides[i] + w.extent(i) - size, 0);
      w.out.push_back(out);
      w.before.push_back(total / 2);
      w.after.push_back(total - total / 2);
    } else {
      w.out.push_back(reach < 0 ? 0 : reach / w.strides[i] + 1);
      w.before.push_back(0);
      w.after.push_back(0);
    }
  }
  return w;
}

ValueId pad_for_windows(ImportedNode& n, ValueId x, const Window& w, double fill) {
  Shape before(w.rank() + 2, Dim(0)), after = before;
  bool any = false;
  for (size_t i = 0; i < w.rank(); ++i) {
    before[i + 1] = w.before[i];
    after[i + 1] = w.after[i];
    any = any || w.before[i] > 0 || w.after[i] > 0;
  }
  return any ? n.build.pad(x, before, after, PadMode::kConstant, fill) : x;
}

ValueId view_windows(ImportedNode& n, ValueId padded, const Window& w) {
  Shape from = n.shape(padded), dims{from[0]};
  int rank = static_cast<int>(w.rank());
  for (int64_t out : w.out) dims.push_back(out);
  for (int64_t kernel : w.kernel) dims.push_back(kernel);
  dims.push_back(from.back());
  IndexMap map;
  map.indices = {IndexExpr::axis(0)};
  for (int i = 0; i < rank; ++i) {
    size_t d = static_cast<size_t>(i);
    map.indices.push_back(IndexExpr::axis(1 + i) * w.strides[d] +
                          IndexExpr::axis(1 + rank + i) * w.dilations[d]);
  }
  map.indices.push_back(IndexExpr::axis(1 + 2 * rank));
  return n.build.view(padded, dims, std::move(map));
}

ValueId contract_windows(ImportedNode& n, ValueId padded, ValueId weights, const Window& w,
                         WeightLayout layout, int64_t groups, std::optional<DType> accumulator) {
  bool depthwise = layout == WeightLayout::kDepthwise;
  Shape shape = n.shape(weights);
  int64_t channels_out = (depthwise ? shape.back() : shape[0]).value() / groups;
  int64_t channels_in = depthwise ? 1 : shape.back().value();
  ContractionBuilder c;
  IndexExpr image = c.axis("n", n.shape(padded)[0]);
  std::vector<IndexExpr> position;
  for (size_t i = 0; i < w.rank(); ++i) position.push_back(c.axis(axis_name("", i, w.rank()), w.out[i]));
  IndexExpr group = c.axis("g", groups), o = c.axis("o", channels_out);
  IndexExpr out_channel = group * channels_out + o;
  std::vector<IndexExpr> index_x{image}, index_w{depthwise ? IndexExpr(0) : out_channel}, index_out{image};
  for (size_t i = 0; i < w.rank(); ++i) {
    IndexExpr k = c.reduction(axis_name("k", i, w.rank()), w.kernel[i]);
    index_x.push_back(position[i] * w.strides[i] + k * w.dilations[i]);
    index_w.push_back(k);
    index_out.push_back(position[i]);
  }
  IndexExpr in_channel = c.reduction("c", channels_in);
  index_x.push_back(group * channels_in + in_channel);
  index_w.push_back(depthwise ? out_channel : in_channel);
  index_out.push_back(out_channel);
  return c.emit(n, padded, std::move(index_x), weights, std::move(index_w), std::move(index_out),
                accumulator);
}

}  // namespace quernel::tflite_import
