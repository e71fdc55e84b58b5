// The parts that convolutions of floats and of integers share: what the options and shapes say.
#pragma once

#include "frontends/tflite/activation.h"
#include "frontends/tflite/window.h"

namespace quernel::tflite_import {

// A convolution of x, by CONV_2D, DEPTHWISE_CONV_2D, CONV_3D or TRANSPOSE_CONV.
struct Convolution {
  Window window;
  WeightLayout layout = WeightLayout::kOutputFirst;
  int64_t groups = 1;
  int64_t channels = 0;                  // of the result
  int input = 0, weights = 1, bias = 2;  // operands
  ActivationFunctionType activation = ActivationFunctionType::NONE;
  // TRANSPOSE_CONV: zeros between the elements of x, strides - 1 in each spatial dim; the window has stride 1, and may
  // leave out elements at the edges where its padding is negative. The weights' kernel is reversed.
  std::vector<int64_t> spread;
};

// Returns x with spread elements and padding: `fill` is what stands for 0.
ValueId window_input(ImportedNode& n, ValueId x, const Convolution& c, double fill);
// Returns the weights as the contraction takes them.
ValueId window_weights(ImportedNode& n, ValueId weights, const Convolution& c);

// Emits the convolution of integers and its requantization.
Status quantized_convolution(NodeImport& n, const Convolution& c);

}  // namespace quernel::tflite_import
