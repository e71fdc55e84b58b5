#include "frontends/onnx/legacy.h"

#include <algorithm>
#include <set>

namespace quernel::onnx_import {
namespace {

void rename(onnx::NodeProto& node, const char* from, const char* to) {
  for (onnx::AttributeProto& a : *node.mutable_attribute())
    if (a.name() == from) a.set_name(to);
}

std::optional<onnx::AttributeProto> take(onnx::NodeProto& node, const char* name) {
  for (int i = 0; i < node.attribute_size(); ++i) {
    if (node.attribute(i).name() != name) continue;
    onnx::AttributeProto found = node.attribute(i);
    node.mutable_attribute()->DeleteSubrange(i, 1);
    return found;
  }
  return std::nullopt;
}

bool broadcasts_by_attribute(const std::string& op) {
  static const std::set<std::string> kOps{"Add", "Sub", "Mul",   "Div",     "Pow", "And",
                                          "Or",  "Xor", "Equal", "Greater", "Less"};
  return kOps.count(op) > 0;
}

}  // namespace

Expected<std::optional<onnx::NodeProto>> modern_attributes(const onnx::NodeProto& node, int64_t opset,
                                                           const Location& place) {
  // What is copied here owns no tensors: values keep pointing into the model.
  static const std::set<std::string> kChanged{"Cast", "Pad",    "Upsample",     "BatchNormalization",
                                              "Gemm", "LpPool", "GlobalLpPool", "Dropout"};
  const std::string& op = node.op_type();
  bool reuses = std::any_of(node.attribute().begin(), node.attribute().end(),
                            [](const auto& a) { return a.name() == "consumed_inputs"; });
  if (opset >= 7 || (!reuses && !kChanged.count(op))) return std::optional<onnx::NodeProto>();
  onnx::NodeProto modern = node;
  take(modern, "consumed_inputs");  // a permission to reuse memory
  if (op == "Cast" && opset < 6) {
    onnx::AttributeProto* to = nullptr;
    for (onnx::AttributeProto& a : *modern.mutable_attribute())
      if (a.name() == "to") to = &a;
    onnx::TensorProto::DataType type;
    if (!to || !onnx::TensorProto::DataType_Parse(to->s(), &type))
      return invalid_input("attribute 'to': expected the name of an element type", place);
    to->clear_s();
    to->set_type(onnx::AttributeProto::INT);
    to->set_i(type);
  }
  if (op == "Pad" && opset < 2) rename(modern, "paddings", "pads");
  if (op == "Upsample") {
    std::optional<onnx::AttributeProto> height = take(modern, "height_scale"),
                                        width = take(modern, "width_scale");
    if (height && width) {
      onnx::AttributeProto& scales = *modern.add_attribute();
      scales.set_name("scales");
      scales.set_type(onnx::AttributeProto::FLOATS);
      for (float scale : {1.0f, 1.0f, height->f(), width->f()}) scales.add_floats(scale);
    }
  }
  if (op == "BatchNormalization" || op == "Dropout") {
    std::optional<onnx::AttributeProto> is_test = take(modern, "is_test");
    if (!is_test || is_test->i() == 0)
      return unsupported("training mode is not supported", place, "export the model for inference");
  }
  if (op == "Gemm") take(modern, "broadcast");  // the addend broadcasts where its shape needs it
  if ((op == "LpPool" || op == "GlobalLpPool") && opset < 2)
    if (std::optional<onnx::AttributeProto> p = take(modern, "p")) {
      p->set_type(onnx::AttributeProto::INT);
      p->set_i(static_cast<int64_t>(p->f()));
      if (static_cast<float>(p->i()) != p->f())
        return unsupported("attribute 'p': expected a whole number", place);
      *modern.add_attribute() = *p;
    }
  return std::optional<onnx::NodeProto>(std::move(modern));
}

Status align_legacy_operands(NodeImport& n) {
  const std::string& op = n.proto.op_type();
  if (n.opset >= 7) return {};
  if (op == "PRelu" && n.rank(n.in(1)) == 1 && n.rank(n.in(0)) > 1) {
    // One slope for all, or one per channel.
    Shape slope(static_cast<size_t>(n.rank(n.in(0))) - 1, Dim(1));
    slope[0] = n.shape(n.in(1))[0];
    n.inputs[1] = n.build.reshape(n.in(1), slope);
  }
  if (op == "Reshape" && n.opset < 5 && !n.has(1)) {
    std::optional<std::vector<int64_t>> shape = n.attr_ints("shape");
    if (!shape) return n.invalid("attribute 'shape' is missing");
    n.inputs.resize(2);
    n.inputs[1] = n.build.constant(i64_tensor({static_cast<int64_t>(shape->size())}, *shape));
  }
  if (op == "Tile" && n.opset < 6) {
    QUERNEL_TRY(int64_t tiles, n.int_in(1, "tiles"));
    QUERNEL_TRY(int64_t axis, n.int_in(2, "axis"));
    std::vector<int64_t> repeats(static_cast<size_t>(n.rank(n.in(0))), 1);
    QUERNEL_TRY(axis, n.axis(axis, n.rank(n.in(0))));
    repeats[static_cast<size_t>(axis)] = tiles;
    n.inputs.resize(2);
    n.inputs[1] = n.build.constant(i64_tensor({static_cast<int64_t>(repeats.size())}, repeats));
  }
  if (broadcasts_by_attribute(op)) {
    bool broadcast = n.attr_int("broadcast", 0) != 0;
    const onnx::AttributeProto* axis = n.attribute("axis");
    int rank = n.rank(n.in(0)), own = n.rank(n.in(1));
    if (!broadcast && n.shape(n.in(0)) != n.shape(n.in(1)))
      return n.invalid("expected operands of one shape without attribute 'broadcast', found " +
                       to_string(n.shape(n.in(0))) + " and " + to_string(n.shape(n.in(1))));
    if (broadcast && axis) {
      // The second operand's first dim stands at this dim of the first.
      QUERNEL_TRY(int64_t first, n.axis(n.attr_int("axis", 0), std::max(rank, 1)));
      if (first + own > rank)
        return n.invalid("attribute 'axis': expected room for " + to_string(n.shape(n.in(1))) + " in " +
                         to_string(n.shape(n.in(0))) + " from dim " + std::to_string(first));
      Shape shape = n.shape(n.in(1));
      shape.insert(shape.end(), static_cast<size_t>(rank - first - own), Dim(1));
      n.inputs[1] = n.build.reshape(n.in(1), shape);
    }
  }
  return n.build.status();
}

}  // namespace quernel::onnx_import
