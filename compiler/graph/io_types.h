// Dtypes of a quantized model's inputs and outputs: real numbers, or the integers that stand for them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "graph/ir.h"
#include "support/scale_rounding.h"

namespace quernel {

// real = scale * (integer - zero_point), for all elements of a tensor.
struct IntegerScale {
  float scale = 1;
  int64_t zero_point = 0;
  bool operator==(const IntegerScale&) const = default;
};

// A node of the model between a real value and integers of one scale.
struct ScaleNode {
  std::string real, integers;  // names of the graph's values
  bool makes_integers = false;
  IntegerScale scale;
};

// What an importer knows about the scales of a model's inputs and outputs.
struct IoScales {
  std::map<std::string, IntegerScale> inputs, outputs;  // those of integers, by name
  std::vector<ScaleNode> nodes;                         // next to inputs and outputs
  ScaleRounding rounding = ScaleRounding::kEven;        // of a real number that becomes an integer
};

// Returns the value that movement ops (a reshape, a permute) make `v` of; `v` itself if none does.
ValueId moved_from(const Graph& graph, ValueId v);

// Adds the scales that integer inputs and outputs have by the nodes next to them.
void derive_io_scales(const Graph& graph, IoScales& scales);

// Whether a scale says what integers of the dtype stand for.
bool is_scale_of(const IntegerScale& scale, DType dtype);

enum class IoTypes : uint8_t {
  kModel,     // as the model has them
  kReal,      // f32: i8[4] becomes f32[4] and a quantization; outputs alike
  kIntegers,  // without the quantizations at inputs, and without the dequantizations at outputs
};

// Returns the graph with other dtypes of inputs and outputs, and brings `scales` up to date. States, and integers
// without a scale, stay; of the latter, and where nothing is quantized, `notes` says so. kIntegers is unsupported where
// an input of floats has another reader than quantizations of one scale, or an output of floats is no dequantization;
// movement ops between them move the integers.
// `file`: of the model, in diagnostics.
Expected<Graph> set_io_types(const Graph& graph, IoTypes types, IoScales& scales, const std::string& file,
                             std::vector<std::string>& notes);

}  // namespace quernel
