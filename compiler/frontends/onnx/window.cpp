#include "frontends/onnx/window.h"

#include <algorithm>

namespace quernel::onnx_import {
namespace {

constexpr int64_t kMaxWindow = int64_t{1} << 31;  // bound of kernel sizes, strides, dilations and pads

Diagnostic out_of_range(const NodeImport& n, const char* name, int64_t found, const char* expected) {
  return n.invalid(std::string("attribute '") + name + "': expected " + expected + ", found " +
                   std::to_string(found));
}

Diagnostic wrong_count(const NodeImport& n, const char* name, size_t expected, size_t found) {
  return n.invalid(std::string("attribute '") + name + "': expected " + std::to_string(expected) +
                   " values, found " + std::to_string(found));
}

}  // namespace

Expected<std::vector<int64_t>> read_window_steps(NodeImport& n, const char* name, size_t rank) {
  std::vector<int64_t> steps = n.attr_ints(name).value_or(std::vector<int64_t>(rank, 1));
  if (steps.size() != rank) return wrong_count(n, name, rank, steps.size());
  for (int64_t step : steps)
    if (step < 1 || step > kMaxWindow) return out_of_range(n, name, step, "values of at least 1");
  return steps;
}

Expected<WindowPads> read_window_pads(NodeImport& n, size_t rank) {
  std::vector<int64_t> pads = n.attr_ints("pads").value_or(std::vector<int64_t>(2 * rank, 0));
  if (pads.size() != 2 * rank) return wrong_count(n, "pads", 2 * rank, pads.size());
  for (int64_t pad : pads) {
    if (pad < 0)
      return n.refuse("attribute 'pads': negative pads are not supported, found " + std::to_string(pad),
                      "use a Slice before");
    if (pad > kMaxWindow) return out_of_range(n, "pads", pad, "values below 2^31");
  }
  auto middle = pads.begin() + static_cast<std::ptrdiff_t>(rank);
  return WindowPads{{pads.begin(), middle}, {middle, pads.end()}};
}

Expected<Window> read_window(NodeImport& n, std::vector<int64_t> kernel, const Shape& spatial,
                             bool ceil_mode) {
  Window w;
  size_t rank = spatial.size();
  if (kernel.size() != rank) return wrong_count(n, "kernel_shape", rank, kernel.size());
  for (int64_t size : kernel)
    if (size < 1 || size > kMaxWindow) return out_of_range(n, "kernel_shape", size, "values of at least 1");
  w.kernel = std::move(kernel);
  QUERNEL_TRY(w.strides, read_window_steps(n, "strides", rank));
  QUERNEL_TRY(w.dilations, read_window_steps(n, "dilations", rank));
  std::string auto_pad = n.attr_string("auto_pad", "NOTSET");
  QUERNEL_TRY(WindowPads pads, read_window_pads(n, rank));
  w.pad_before = make_shape(pads.before);
  w.pad_after = make_shape(pads.after);
  bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  if (!same && auto_pad != "VALID" && auto_pad != "NOTSET" && !auto_pad.empty())
    return n.invalid("attribute 'auto_pad': expected NOTSET, SAME_UPPER, SAME_LOWER or VALID, found '" +
                     auto_pad + "'");
  for (size_t i = 0; i < rank; ++i) {
    int64_t stride = w.strides[i];
    if (auto_pad == "VALID") w.pad_before[i] = w.pad_after[i] = 0;
    if (same) {
      Dim total = max((ceildiv(spatial[i], stride) - 1) * stride + w.extent(i) - spatial[i], 0);
      Dim smaller = floordiv(total, 2);
      w.pad_before[i] = auto_pad == "SAME_UPPER" ? smaller : total - smaller;
      w.pad_after[i] = total - w.pad_before[i];
    }
    Dim room = spatial[i] + w.pad_before[i] + w.pad_after[i] - w.extent(i);
    if (always_lt(room, 0))
      return n.invalid("the window of " + std::to_string(w.extent(i)) +
                       " is larger than the padded input of " + to_string(room + w.extent(i)) +
                       " on spatial dim " + std::to_string(i));
    // Rounded up, but for a last window that would start in the padding at the end.
    Dim out = floordiv(room, stride) + 1;
    if (ceil_mode)
      out = max(out, min(ceildiv(room, stride) + 1, ceildiv(spatial[i] + w.pad_before[i], stride)));
    // Smaller inputs than the window leave nothing.
    if (!always_le(0, room)) out = max(out, 0);
    w.out.push_back(out);
    w.reach.push_back((out - 1) * stride + w.extent(i));
  }
  return w;
}

ValueId pad_for_windows(NodeImport& n, ValueId x, const Window& w, const Shape& spatial, double fill) {
  Shape before{0, 0}, after{0, 0};
  for (size_t i = 0; i < w.rank(); ++i) {
    before.push_back(w.pad_before[i]);
    after.push_back(max(w.reach[i] - w.pad_before[i] - spatial[i], 0));
  }
  return n.build.pad(x, before, after, PadMode::kConstant, fill);
}

std::string spatial_axis_name(size_t i, size_t rank, const char* prefix) {
  static const char* const kNames[] = {"x", "y", "z"};
  size_t from_last = rank - 1 - i;
  return prefix + (from_last < 3 ? std::string(kNames[from_last]) : "s" + std::to_string(i));
}

}  // namespace quernel::onnx_import
