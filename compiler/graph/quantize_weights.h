// Weights of floats as integers of 8 or 4 bits with scales (CompileOptions::weights).
#pragma once

#include <string>
#include <vector>

#include "graph/ir.h"
#include "graph/weight_format.h"

namespace quernel {

// Replaces f32 constants of at least 4,096 elements by quantised ones where products of matrices and convolutions read them
// (depthwise ones do not), and tables of rows by rows of 8 bits with a scale each. Scales are those of the least squared
// error among a few for each block. Blocks of a convolution lie along its channels. Weights with other readers stay, and those whose node has
// a name that one of the shell patterns `floats` matches. Returns what was replaced. A pattern without a match is
// invalid input.
Expected<std::vector<QuantizedLayer>> quantize_weights(Graph& graph, const WeightFormat& format,
                                                       const std::vector<std::string>& floats);

// Returns sentences about the layers for people, the largest errors first.
std::vector<std::string> about_layers(const std::vector<QuantizedLayer>& layers);

}  // namespace quernel
