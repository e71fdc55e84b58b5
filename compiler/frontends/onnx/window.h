// The sliding window that convolutions and pools share: its attributes, read and checked, and the sizes they
// give.
#pragma once

#include <vector>

#include "frontends/onnx/node_import.h"

namespace quernel::onnx_import {

struct Window {
  std::vector<int64_t> kernel, strides, dilations;  // one per spatial dim
  Shape pad_before, pad_after;                      // as the node asks for
  Shape out;                                        // output sizes
  Shape first;  // of the padded input, where the first window begins: 0 where it is empty
  Shape reach;  // elements of the padded input that the windows cover: (out-1)*stride + extent

  size_t rank() const { return kernel.size(); }
  int64_t extent(size_t i) const { return (kernel[i] - 1) * dilations[i] + 1; }
};

// Reads strides, dilations, pads and auto_pad; `kernel` is what the window measures, `spatial` the input's
// sizes. ceil_mode (pools) rounds output sizes up, but drops a last window that would start in the padding at
// the end.
Expected<Window> read_window(NodeImport& n, std::vector<int64_t> kernel, const Shape& spatial,
                             bool ceil_mode);
// Strides or dilations: one positive value per spatial dim.
Expected<std::vector<int64_t>> read_window_steps(NodeImport& n, const char* name, size_t rank);
// Pads before and after; zero by default. Negative ones are refused.
struct WindowPads {
  std::vector<int64_t> before, after;
};
Expected<WindowPads> read_window_pads(NodeImport& n, size_t rank);

// x of [N, C, spatial…] with padding so that every window lies inside: exactly the elements that windows
// read.
ValueId pad_for_windows(NodeImport& n, ValueId x, const Window& w, const Shape& spatial, double fill);

// Names of the spatial axes: "z", "y", "x" for the last three.
std::string spatial_axis_name(size_t i, size_t rank, const char* prefix = "");

}  // namespace quernel::onnx_import
