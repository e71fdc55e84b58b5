#include "frontends/onnx/node_import.h"

namespace quernel::onnx_import {

using onnx::AttributeProto;

// ---- attributes

const AttributeProto* NodeImport::attribute(const char* name) {
  used_attributes_.insert(name);
  for (const AttributeProto& a : proto.attribute())
    if (a.name() == name) return &a;
  return nullptr;
}

namespace {
// Files of the first IR versions leave the type out.
bool has_type(const AttributeProto& a, AttributeProto::AttributeType type) {
  return a.type() == type || a.type() == AttributeProto::UNDEFINED;
}
}  // namespace

#define QUERNEL_EXPECT_TYPE(a, type_, words)                                                        \
  if (!has_type(*(a), AttributeProto::type_)) {                                                     \
    build.fail(invalid("attribute '" + (a)->name() + "': expected " words ", found another type")); \
    return {};                                                                                      \
  }

int64_t NodeImport::attr_int(const char* name, int64_t fallback) {
  const AttributeProto* a = attribute(name);
  if (!a) return fallback;
  QUERNEL_EXPECT_TYPE(a, INT, "an integer");
  return a->i();
}

double NodeImport::attr_float(const char* name, double fallback) {
  const AttributeProto* a = attribute(name);
  if (!a) return fallback;
  QUERNEL_EXPECT_TYPE(a, FLOAT, "a float");
  return a->f();
}

std::string NodeImport::attr_string(const char* name, const char* fallback) {
  const AttributeProto* a = attribute(name);
  if (!a) return fallback;
  QUERNEL_EXPECT_TYPE(a, STRING, "a string");
  return a->s();
}

std::optional<std::vector<int64_t>> NodeImport::attr_ints(const char* name) {
  const AttributeProto* a = attribute(name);
  if (!a) return std::nullopt;
  QUERNEL_EXPECT_TYPE(a, INTS, "a list of integers");
  return std::vector<int64_t>(a->ints().begin(), a->ints().end());
}

std::optional<std::vector<double>> NodeImport::attr_floats(const char* name) {
  const AttributeProto* a = attribute(name);
  if (!a) return std::nullopt;
  QUERNEL_EXPECT_TYPE(a, FLOATS, "a list of floats");
  return std::vector<double>(a->floats().begin(), a->floats().end());
}
#undef QUERNEL_EXPECT_TYPE

std::vector<std::string> NodeImport::unused_attributes() const {
  std::vector<std::string> names;
  for (const AttributeProto& a : proto.attribute())
    if (!used_attributes_.count(a.name())) names.push_back(a.name());
  return names;
}

Expected<std::optional<std::vector<int64_t>>> NodeImport::axes(int operand, int64_t since, const char* name) {
  if (opset < since) return attr_ints(name);
  if (!has(operand)) return std::optional<std::vector<int64_t>>();
  QUERNEL_TRY(std::vector<int64_t> values, ints_in(operand, name));
  return std::optional(std::move(values));
}

// ---- emission

void NodeImport::compute_wide(int like) {
  DType given = dtype(in(like));
  for (ValueId& v : inputs) v = widen(v);
  if (dtype(in(like)) != given) rounding_ = given;
}

// ---- ends

Status NodeImport::set_outputs(std::vector<ValueId> values) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (i < values.size()) outputs[i] = values[i];
    if (rounding_ && outputs[i] >= 0 && dtype(outputs[i]) == DType::kF32)
      outputs[i] = build.cast(outputs[i], *rounding_);
    if (outputs[i] == kNoValue && wants_output(static_cast<int>(i)))
      return refuse(
          "output " + std::to_string(i) + " '" + proto.output(static_cast<int>(i)) + "' is not supported",
          "remove the uses of this output from the model");
  }
  std::vector<std::string> unknown = unused_attributes();
  if (!unknown.empty()) {
    std::string names;
    for (const std::string& name : unknown) names += (names.empty() ? "'" : ", '") + name + "'";
    return invalid(
        "unknown attribute " + names + " at opset " + std::to_string(opset),
        "the attribute may change the result, so it is not ignored; re-export the model, or remove it");
  }
  return {};
}

}  // namespace quernel::onnx_import
