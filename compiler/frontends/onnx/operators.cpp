#include "frontends/onnx/operators.h"

#include <unordered_map>

namespace quernel::onnx_import {
namespace {

constexpr int kManyInputs = 1 << 20;

const Operator kOperators[] = {
#define QUERNEL_ONNX(domain, name, since, until, min_inputs, max_inputs, function) \
  {domain, #name, since, until, min_inputs, max_inputs, import_##function},
#include "frontends/onnx/operators.def"
};

struct Reason {
  std::string_view name;
  std::string_view reason;
};
constexpr std::string_view kSequence =
    "strings and maps, and operators on sequences whose length is not known, are not supported";
constexpr std::string_view kLegacy = "an experimental operator that left the ONNX standard";
constexpr Reason kReasons[] = {
    {"ImageDecoder", "compressed images are decoded by the application"},
    {"StringNormalizer", kSequence},
    {"StringConcat", kSequence},
    {"StringSplit", kSequence},
    {"RegexFullMatch", kSequence},
    {"Affine", kLegacy},
    {"Crop", kLegacy},
    {"ImageScaler", kLegacy},
    {"ParametricSoftplus", kLegacy},
    {"ScaledTanh", kLegacy},
    {"GivenTensorFill", kLegacy},
    {"DynamicSlice", kLegacy},
    {"GRUUnit", kLegacy},
    {"ATen", kLegacy},
    {"Scale", kLegacy},
};

std::string versions(const Operator& op) {
  if (op.until) return "opset " + std::to_string(op.since) + " to " + std::to_string(op.until);
  return "opset " + std::to_string(op.since) + " on";
}

const std::unordered_multimap<std::string_view, const Operator*>& by_name() {
  static const auto* const index = [] {
    auto* map = new std::unordered_multimap<std::string_view, const Operator*>;
    for (const Operator& op : kOperators) map->emplace(op.name, &op);
    return map;
  }();
  return *index;
}

}  // namespace

const Operator* find_operator(std::string_view domain, std::string_view name, int64_t opset) {
  auto [begin, end] = by_name().equal_range(name);
  for (auto it = begin; it != end; ++it) {
    const Operator& op = *it->second;
    if (op.domain != domain) continue;
    if (!domain.empty() || (opset >= op.since && (op.until == 0 || opset <= op.until))) return &op;
  }
  return nullptr;
}

Diagnostic why_unsupported(std::string_view domain, std::string_view name, int64_t opset,
                           const Location& place) {
  std::string op(name);
  if (domain == "ai.onnx.ml" && name == "ZipMap")
    return unsupported("operator ZipMap is not supported: sequences of maps are no tensors", place,
                       "export the model with the option zipmap=False, or end it at the node's input");
  if (!domain.empty())
    return unsupported(
        "operator " + op + " of domain '" + std::string(domain) + "' is not supported", place,
        "export the model with operators of the default ONNX domain, or describe the operator to "
        "compute it yourself: --custom-op FILE");
  auto [begin, end] = by_name().equal_range(name);
  std::string available;
  for (auto it = begin; it != end; ++it)
    if (it->second->domain.empty()) available += (available.empty() ? "" : ", ") + versions(*it->second);
  if (!available.empty())
    return invalid_input(
        "operator " + op + " does not exist at opset " + std::to_string(opset) + "; expected " + available,
        place, "re-export the model at an opset that has it");
  for (const Reason& reason : kReasons)
    if (reason.name == name)
      return unsupported("operator " + op + " is not supported: " + std::string(reason.reason), place,
                         reason.reason == kLegacy
                             ? "convert the model to operators of opset 7 or newer"
                             : "replace the node in the model, or simplify the model (e.g. with onnxsim)");
  return unsupported(
      "operator " + op + " is not supported", place,
      "replace the node by supported operators (`quernel check` lists all that are missing), or "
      "describe it to compute it yourself: --custom-op FILE");
}

}  // namespace quernel::onnx_import
