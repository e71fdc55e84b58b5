// The sliding window of convolutions and pools over [batch, spatial…, channels].
#pragma once

#include <string>
#include <vector>

#include "frontends/tflite/node_import.h"

namespace quernel::tflite_import {

struct Window {
  std::vector<int64_t> kernel, strides, dilations;  // one per spatial dim
  std::vector<int64_t> size;                        // of the input
  std::vector<int64_t> before, after;               // elements of padding that windows read
  std::vector<int64_t> out;                         // output sizes

  size_t rank() const { return kernel.size(); }
  int64_t extent(size_t i) const { return (kernel[i] - 1) * dilations[i] + 1; }
  // How many elements of the input each window position covers, in dim i.
  std::vector<int64_t> covered(size_t i) const;
};

// Returns the window over the spatial dims of x. Requires positive strides and dilations, else refuses.
Expected<Window> make_window(NodeImport& n, ValueId x, std::vector<int64_t> kernel,
                             std::vector<int64_t> strides, std::vector<int64_t> dilations,
                             tflite::Padding padding);

// Returns x with the window's padding around its spatial dims.
ValueId pad_for_windows(ImportedNode& n, ValueId x, const Window& w, double fill);
// Returns [batch, out…, kernel…, channels] of x, which has been padded: each window's elements.
ValueId view_windows(ImportedNode& n, ValueId padded, const Window& w);

// How the weights of a convolution are indexed.
enum class WeightLayout { kOutputFirst, kDepthwise };
// Returns the sum over each window of x times weights, [batch, out…, output channels]. x has been padded.
// kOutputFirst: weights [output channels, kernel…, input channels / groups]. kDepthwise: weights
// [1, kernel…, output channels], a group for each input channel.
ValueId contract_windows(ImportedNode& n, ValueId padded, ValueId weights, const Window& w,
                         WeightLayout layout, int64_t groups, std::optional<DType> accumulator);

}  // namespace quernel::tflite_import
