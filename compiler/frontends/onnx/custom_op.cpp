#include "frontends/onnx/custom_op.h"

#include <optional>
#include <utility>

#include "frontends/shared/custom_node.h"

namespace quernel::onnx_import {
namespace {

using onnx::AttributeProto;

template <class T, class Values>
std::vector<T> list(const Values& values) {
  return {values.begin(), values.end()};
}

std::optional<AttributeValue> value_of(const AttributeProto& a) {
  switch (a.type()) {
    case AttributeProto::INT:
      return int64_t{a.i()};
    case AttributeProto::FLOAT:
      return a.f();
    case AttributeProto::STRING:
      return a.s();
    case AttributeProto::INTS:
      return list<int64_t>(a.ints());
    case AttributeProto::FLOATS:
      return list<float>(a.floats());
    case AttributeProto::STRINGS:
      return list<std::string>(a.strings());
    default:
      return std::nullopt;
  }
}

}  // namespace

std::string custom_op_name(std::string_view domain, std::string_view op_type) {
  return (domain.empty() ? "" : std::string(domain) + "::") + std::string(op_type);
}

Expected<std::string> custom_attributes(NodeImport& n) {
  AttributeValues values;
  for (const AttributeProto& a : n.proto.attribute()) {
    n.attribute(a.name().c_str());
    std::optional<AttributeValue> value = value_of(a);
    if (!value)
      return n.refuse("attribute '" + a.name() +
                          "' of a custom op: expected integers, floats or strings, found another type",
                      "give it to the op as an input");
    values[a.name()] = std::move(*value);
  }
  return custom_attributes_text(values);
}

Status import_custom_op(NodeImport& n, const CustomOpDescription& op) {
  QUERNEL_TRY(std::string attributes, custom_attributes(n));
  QUERNEL_TRY(std::vector<ValueId> outputs,
              add_custom_op(n, op, std::move(attributes), n.proto.output_size()));
  return n.set_outputs(std::move(outputs));
}

}  // namespace quernel::onnx_import
