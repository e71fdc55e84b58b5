#include "frontends/shared/custom_node.h"

#include <memory>
#include <type_traits>
#include <utility>

#include "graph/control.h"
#include "support/text_reader.h"

namespace quernel {
namespace {

std::string value_text(int64_t value) { return std::to_string(value); }
std::string value_text(float value) {
  std::string text = shortest_decimal(value);
  return text.find_first_not_of("-0123456789") == std::string::npos ? text + ".0" : text;
}
std::string value_text(const std::string& value) { return quoted_text(value); }

template <class T>
std::string value_text(const std::vector<T>& values) {
  std::string list;
  for (const T& value : values) list += (list.empty() ? "" : ",") + value_text(value);
  return "[" + list + "]";
}

}  // namespace

std::string custom_attributes_text(const AttributeValues& values) {
  std::string text;
  for (const auto& [name, value] : values)
    text += (text.empty() ? "" : ";") + name + "=" +
            std::visit([](const auto& given) { return value_text(given); }, value);
  return text;
}

Expected<std::vector<ValueId>> add_custom_op(ImportedNode& n, const CustomOpDescription& op,
                                             std::string attributes, int count) {
  if (count > static_cast<int>(op.outputs.size()))
    return n.invalid("custom op '" + op.name + "': expected at most " + std::to_string(op.outputs.size()) +
                     " outputs, found " + std::to_string(count));
  auto custom = std::make_shared<CustomOp>();
  custom->name = op.name;
  custom->attributes = std::move(attributes);
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
  Attributes of_op;
  of_op.custom = std::move(custom);
  ValueId token = n.build.add(OpKind::k_custom, n.inputs, std::move(of_op));
  std::vector<ValueId> values;
  for (int i = 0; i < count; ++i) values.push_back(add_result(n.build, token, i));
  return values;
}

}  // namespace quernel
