#include "frontends/onnx/custom_op.h"

#include <algorithm>
#include <map>

#include "graph/control.h"
#include "support/text_reader.h"

namespace quernel::onnx_import {
namespace {

using onnx::AttributeProto;

std::string float_text(float value) {
  std::string text = shortest_decimal(value);
  return text.find_first_not_of("-0123456789") == std::string::npos ? text + ".0" : text;
}

template <class Values, class Text>
std::string list_text(const Values& values, Text text) {
  std::string list;
  for (const auto& value : values) list += (list.empty() ? "" : ",") + text(value);
  return "[" + list + "]";
}

std::string integer_text(int64_t value) { return std::to_string(value); }
std::string string_text(const std::string& value) { return quoted_text(value); }

std::optional<std::string> value_text(const AttributeProto& a) {
  switch (a.type()) {
    case AttributeProto::INT:
      return integer_text(a.i());
    case AttributeProto::FLOAT:
      return float_text(a.f());
    case AttributeProto::STRING:
      return string_text(a.s());
    case AttributeProto::INTS:
      return list_text(a.ints(), integer_text);
    case AttributeProto::FLOATS:
      return list_text(a.floats(), float_text);
    case AttributeProto::STRINGS:
      return list_text(a.strings(), string_text);
    default:
      return std::nullopt;
  }
}

}  // namespace

std::string custom_op_name(std::string_view domain, std::string_view op_type) {
  return (domain.empty() ? "" : std::string(domain) + "::") + std::string(op_type);
}

Expected<std::string> custom_attributes(NodeImport& n) {
  std::map<std::string, std::string> values;
  for (const AttributeProto& a : n.proto.attribute()) {
    n.attribute(a.name().c_str());
    std::optional<std::string> value = value_text(a);
    if (!value)
      return n.refuse("attribute '" + a.name() +
                          "' of a custom op: expected integers, floats or strings, found another type",
                      "give it to the op as an input");
    values[a.name()] = std::move(*value);
  }
  std::string text;
  for (const auto& [name, value] : values) text += (text.empty() ? "" : ";") + name + "=" + value;
  return text;
}

Status import_custom_op(NodeImport& n, const CustomOpDescription& op) {
  if (n.proto.output_size() > static_cast<int>(op.outputs.size()))
    return n.invalid("custom op '" + op.name + "': expected at most " + std::to_string(op.outputs.size()) +
                     " outputs, found " + std::to_string(n.proto.output_size()));
  auto custom = std::make_shared<CustomOp>();
  custom->name = op.name;
  QUERNEL_TRY(custom->attributes, custom_attributes(n));
  std::vector<TensorType> operands;
  for (ValueId v : n.inputs) operands.push_back(n.build.graph().type(v));
  Expected<std::vector<TensorType>> results = custom_result_types(
      op, operands, [&](const Dim& a, const Dim& b) { n.build.note_unequal(a, b, true); });
  if (!results) {
    Diagnostic error = results.take_errors().front();
    error.place = n.build.location();
    return error;
  }
  custom->results = std::move(*results);
  Attributes attributes;
  attributes.custom = std::move(custom);
  ValueId token = n.build.add(OpKind::k_custom, n.inputs, std::move(attributes));
  std::vector<ValueId> outputs;
  for (int i = 0; i < n.proto.output_size(); ++i) outputs.push_back(add_result(n.build, token, i));
  return n.set_outputs(std::move(outputs));
}

}  // namespace quernel::onnx_import
