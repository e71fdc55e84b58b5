// Activation functions on real values (f32).
#pragma once

#include "frontends/tflite/node_import.h"

namespace quernel::tflite_import {

using tflite::ActivationFunctionType;

// Returns x after a fused activation function; unsupported for SIGN_BIT. Integers of 32 and 64 bits are clamped, too.
Expected<ValueId> activate(NodeImport& n, ValueId x, ActivationFunctionType function);

// Where a fused activation function clamps: real values, infinite where it does not. nullopt: it is no clamp.
struct ClampRange {
  double lo, hi;
};
std::optional<ClampRange> clamp_range(ActivationFunctionType function);
ValueId clamp(ImportedNode& n, ValueId x, const ClampRange& range);

ValueId logistic(ImportedNode& n, ValueId x);
// x * Phi(x), with the normal distribution's Phi or its approximation by tanh.
ValueId gelu(ImportedNode& n, ValueId x, bool approximate);

}  // namespace quernel::tflite_import
