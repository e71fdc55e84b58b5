// The table of ONNX operators (operators.def) and what is known about those that are not in it.
#pragma once

#include <string>
#include <string_view>

#include "frontends/onnx/node_import.h"

namespace quernel::onnx_import {

struct Operator {
  std::string_view domain;  // "" is the default domain
  std::string_view name;
  int64_t since = 7;   // first opset that has it, in the reading of this table
  int64_t until = 0;   // last opset that has it; 0: still there
  int min_inputs = 1;  // that must be present
  int max_inputs = 1;  // -1: any number
  Status (*import)(NodeImport&) = nullptr;
};

// The newest opset whose changes have been read and are reflected in the table.
inline constexpr int64_t kOldestOpset = 1;
inline constexpr int64_t kNewestOpset = 28;

const Operator* find_operator(std::string_view domain, std::string_view name, int64_t opset);
// Why an operator that find_operator does not know cannot be imported, and what to do.
Diagnostic why_unsupported(std::string_view domain, std::string_view name, int64_t opset,
                           const Location& place);

#define QUERNEL_ONNX(domain, name, since, until, min_inputs, max_inputs, function) \
  Status import_##function(NodeImport& n);
#include "frontends/onnx/operators.def"

}  // namespace quernel::onnx_import
