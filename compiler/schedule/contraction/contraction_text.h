// Names of contractions in tuning files and tables: the class of the kernel, then extents and strides in the
// roles that the plan gives its axes.
#pragma once

#include <string>

#include "schedule/contraction/contraction_plan.h"
#include "schedule/winograd/winograd_plan.h"

namespace quernel::schedule {

// Writes each axis as extent:a:b:out (without b if it is packed):
//   gemm f32*f32 packed rows 49:512:1024 columns 1024:0:1 reduce 512:1:0
std::string contraction_text(const Graph& graph, const Node& contract, const ContractionPlan& plan);
// For a convolution that Winograd's algorithm may compute:
//   winograd f32 image 56x56 channels 64 columns 64
std::string contraction_text(const Contraction& contraction, const WinogradForm& form);

}  // namespace quernel::schedule
