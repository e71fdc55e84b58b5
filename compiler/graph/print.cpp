#include <algorithm>
#include <cstring>
#include <limits>
#include <set>

#include "graph/interpret_parts.h"
#include "graph/print_parts.h"
#include "graph/text.h"
#include "support/text_reader.h"

namespace quernel {
namespace {

constexpr int64_t kMaxListed = 64;  // larger data is printed as bytes

bool is_identifier(std::string_view name) {
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  if (name.empty() || !letter(name[0])) return false;
  return std::all_of(name.begin(), name.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

template <class Item>
std::string joined(size_t count, Item item) {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += (i ? ", " : "") + item(i);
  return text;
}

bool is_dim_word(std::string_view word) {
  return word == "floordiv" || word == "mod" || word == "min" || word == "max";
}

std::string list(const std::vector<int64_t>& values) {
  return "{" + joined(values.size(), [&](size_t i) { return std::to_string(values[i]); }) + "}";
}

std::string exprs(const std::vector<IndexExpr>& list, const std::vector<std::string>* names) {
  return "[" + joined(list.size(), [&](size_t i) { return to_string(list[i], names); }) + "]";
}

std::string hex(const uint8_t* data, size_t size) {
  const char* digits = "0123456789abcdef";
  std::string text(size * 2, '0');
  for (size_t i = 0; i < size; ++i)
    text[2 * i] = digits[data[i] / 16], text[2 * i + 1] = digits[data[i] % 16];
  return text;
}

// One element so that it reads back with the same bits.
std::string element_text(const Tensor& tensor, int64_t i) {
  if (tensor.dtype == DType::kBool) return element_as_i64(tensor, i) ? "true" : "false";
  if (tensor.dtype == DType::kU64) return std::to_string(static_cast<uint64_t>(element_as_i64(tensor, i)));
  if (!is_float(tensor.dtype)) return std::to_string(element_as_i64(tensor, i));
  double value = element_as_f64(tensor, i);
  size_t size = static_cast<size_t>(element_size(tensor.dtype));
  const uint8_t* bits = tensor.bytes.data() + static_cast<size_t>(i) * size;
  std::string text =
      tensor.dtype == DType::kF64 ? shortest_decimal(value) : shortest_decimal(static_cast<float>(value));
  uint8_t read_back[8] = {};
  if (value != value) value = std::numeric_limits<double>::quiet_NaN();
  interpreter::store(tensor.dtype, read_back, 0, 1, &value);
  if (std::equal(bits, bits + size, read_back)) return text;
  std::string digits;  // an unusual NaN, or an infinity of a format whose conversions saturate
  for (size_t byte = size; byte-- > 0;) digits += hex(bits + byte, 1);
  return "bits(0x" + digits + ")";
}

bool is_splat(const Tensor& tensor) {
  if (is_packed(tensor.dtype)) {
    for (int64_t i = 1; i < tensor.count(); ++i)
      if (element_as_i64(tensor, i) != element_as_i64(tensor, 0)) return false;
    return true;
  }
  // Each byte equals the one an element earlier.
  size_t size = static_cast<size_t>(element_size(tensor.dtype)), total = tensor.bytes.size();
  const uint8_t* data = tensor.bytes.data();
  return total <= size || std::memcmp(data, data + size, total - size) == 0;
}

std::string slice_text(const Attributes& a) {
  return "[" +
         joined(a.starts.size(),
                [&](size_t i) {
                  std::string range = to_string(a.starts[i]) + ":" + to_string(a.stops[i]);
                  return a.steps[i] == 1 ? range : range + ":" + std::to_string(a.steps[i]);
                }) +
         "]";
}

std::string pad_text(const Attributes& a) {
  std::string text = "[" +
                     joined(a.starts.size(),
                            [&](size_t i) { return to_string(a.starts[i]) + ":" + to_string(a.stops[i]); }) +
                     "]";
  switch (a.mode) {
    case PadMode::kConstant:
      return text + " fill " + shortest_decimal(a.fill);
    case PadMode::kEdge:
      return text + " edge";
    case PadMode::kReflect:
      return text + " reflect";
    case PadMode::kWrap:
      return text + " wrap";
  }
  return text;
}

std::string view_text(const Attributes& a) {
  std::string text = exprs(a.map.indices, nullptr);
  if (a.map.guards.empty()) return text;
  text += " if " + joined(a.map.guards.size(), [&](size_t i) {
            const IndexGuard& g = a.map.guards[i];
            return to_string(g.lo) + " <= " + to_string(g.expr) + " < " + to_string(g.hi);
          });
  return text + " fill " + shortest_decimal(a.fill);
}

std::string contract_text(const Contraction& c) {
  std::vector<std::string> names = axis_names(c);
  auto axes = [&](bool reduction) {
    std::string text;
    for (size_t i = 0; i < c.axes.size(); ++i)
      if (c.axes[i].reduction == reduction)
        text += (text.empty() ? "" : ", ") + names[i] + ": " + to_string(c.axes[i].extent);
    return text;
  };
  std::string output = axes(false), reduction = axes(true);
  return "axes(" + output + (output.empty() ? "| " : " | ") + reduction + ") a" + exprs(c.a, &names) + " b" +
         exprs(c.b, &names) + " out" + exprs(c.out, &names) + " acc " +
         std::string(to_string(c.accumulator)) + (c.unrounded ? " unrounded" : "") +
         (c.winograd == 0 ? "" : " winograd " + std::to_string(c.winograd));
}

std::string reduce_text(OpKind op, const Attributes& a) {
  std::string text = list(a.ints);
  if (a.keepdims) text += " keepdims";
  if (op == OpKind::k_reduce_argmax || op == OpKind::k_reduce_argmin)
    return a.select_last ? text + " last" : text;
  bool accumulates = op == OpKind::k_reduce_sum || op == OpKind::k_reduce_prod;
  return accumulates ? text + " acc " + std::string(to_string(a.accumulator)) : text;
}

std::string scan_text(OpKind op, const Attributes& a) {
  std::string text = list(a.ints);
  if (a.exclusive) text += " exclusive";
  if (a.reverse) text += " reverse";
  bool accumulates = op == OpKind::k_scan_sum || op == OpKind::k_scan_prod;
  return accumulates ? text + " acc " + std::string(to_string(a.accumulator)) : text;
}

std::string scatter_text(const Attributes& a) {
  const char* modes[] = {"set", "add", "mul", "max", "min"};
  return list(a.ints) + " " + modes[static_cast<int>(a.scatter)] + (a.unique ? " unique" : "");
}

std::string custom_text(const CustomOp& op) {
  return quoted_text(op.name) + " " + quoted_text(op.attributes) + " gives " +
         joined(op.results.size(), [&](size_t i) { return type_text(op.results[i]); });
}

}  // namespace

std::string type_text(const TensorType& type) {
  std::string text = std::string(to_string(type.dtype)) + "[";
  for (size_t i = 0; i < type.shape.size(); ++i) text += (i ? "," : "") + to_string(type.shape[i]);
  return text + "]";
}

std::string data_text(const Tensor& tensor, int64_t elide_constants) {
  int64_t count = tensor.count();
  if (count > 1 && is_splat(tensor)) return "{" + element_text(tensor, 0) + " ...}";
  if (elide_constants > 0 && count > elide_constants)
    return "<" + std::to_string(tensor.bytes.size()) + " bytes>";
  if (count > kMaxListed) return "<" + hex(tensor.bytes.data(), tensor.bytes.size()) + ">";
  return "{" +
         joined(static_cast<size_t>(count),
                [&](size_t i) { return element_text(tensor, static_cast<int64_t>(i)); }) +
         "}";
}

std::vector<std::string> axis_names(const Contraction& contraction) {
  std::vector<std::string> names;
  std::set<std::string> seen;
  for (const Contraction::Axis& axis : contraction.axes) {
    if (!is_identifier(axis.name) || is_dim_word(axis.name) || !seen.insert(axis.name).second) {
      names.clear();
      for (size_t i = 0; i < contraction.axes.size(); ++i) names.push_back("d" + std::to_string(i));
      return names;
    }
    names.push_back(axis.name);
  }
  return names;
}

std::string attributes_text(const Node& node, int64_t elide_constants) {
  const Attributes& a = node.attributes;
  switch (node.op) {
    case OpKind::k_constant:
      return data_text(a.tensor, elide_constants);
    case OpKind::k_dims:
      return to_string(a.shape);
    case OpKind::k_permute:
    case OpKind::k_flip:
    case OpKind::k_cat:
    case OpKind::k_take:
    case OpKind::k_gather_elements:
    case OpKind::k_gather_nd:
    case OpKind::k_winograd_input:
    case OpKind::k_winograd_output:
    case OpKind::k_dequantize:
    case OpKind::k_dequantize_rows:
    case OpKind::k_result:
      return list(a.ints);
    case OpKind::k_slice:
      return slice_text(a);
    case OpKind::k_pad:
      return pad_text(a);
    case OpKind::k_view:
      return view_text(a);
    case OpKind::k_contract:
      return contract_text(a.contraction);
    case OpKind::k_argsort:
      return list(a.ints) + (a.descending ? " descending" : "");
    case OpKind::k_custom:
      return custom_text(*a.custom);
    default:
      return is_reduce(node.op)    ? reduce_text(node.op, a)
             : is_scan(node.op)    ? scan_text(node.op, a)
             : is_scatter(node.op) ? scatter_text(a)
                                   : std::string();
  }
}

namespace {

// "(%x: f32[4]) { … }" with nodes indented by `indent` and two more blanks.
std::string body_text(const Graph& graph, const std::string& indent, int64_t elide_constants);

// What stands between the operands of a node with bodies and its type.
std::string control_text(const Node& node, const std::string& indent, int64_t elide_constants) {
  const Control& control = *node.attributes.control;
  auto body = [&](size_t i) { return body_text(control.bodies[i], indent, elide_constants); };
  if (node.op == OpKind::k_branch)
    return "if " + to_string(*control.condition) + " then " + body(0) + " else " + body(1);
  if (node.op == OpKind::k_on_companion) return "do " + body(0);
  const Symbol* symbol = control.bodies[0].find_symbol(control.symbol);
  std::string text = "carry " + std::to_string(control.carried) + " for " + to_string(Dim::symbol(*symbol));
  if (control.count) text += " below " + to_string(*control.count);
  if (control.condition) text += " while " + to_string(*control.condition);
  return text + " do " + body(0);
}

std::string body_text(const Graph& graph, const std::string& indent, int64_t elide_constants) {
  std::string inner = indent + "  ";
  auto value = [&](ValueId v) { return "%" + quote_name(graph.values[v].name); };
  std::string text =
      "(" +
      joined(graph.inputs.size(),
             [&](size_t i) {
               const Graph::State* state = graph.state_of_input(i);
               std::string input = value(graph.inputs[i]) + ": " + type_text(graph.type(graph.inputs[i]));
               if (!state) return input;
               bool given = state->initial.bytes.size() != 0;
               return "state " + input +
                      (given ? " = " + data_text(state->initial, elide_constants) : std::string());
             }) +
      ") {\n";
  auto bind_symbols = [&](int node) {
    for (const Graph::SymbolSource& s : graph.symbol_sources)
      if (graph.values[s.value].node == node)
        text += inner + "bind " + to_string(Dim::symbol(s.symbol)) + " = " + value(s.value) + "\n";
  };
  bind_symbols(-1);
  for (const Node& node : graph.nodes) {
    if (&node != &graph.nodes.front()) bind_symbols(graph.values[node.output].node - 1);
    text += inner + value(node.output) + " = " + std::string(to_string(node.op));
    std::string type = type_text(graph.type(node.output));
    if (node.op == OpKind::k_constant) {
      text += " " + type + " " + attributes_text(node, elide_constants) + "\n";
      continue;
    }
    text += " " + joined(node.inputs.size(), [&](size_t i) { return value(node.inputs[i]); });
    std::string attributes = is_control(node.op) ? control_text(node, inner, elide_constants)
                                                 : attributes_text(node, elide_constants);
    if (!attributes.empty()) text += (node.inputs.empty() && gives_token(node.op) ? "" : " ") + attributes;
    text += gives_token(node.op) ? "\n" : " : " + type + "\n";
  }
  if (!graph.nodes.empty()) bind_symbols(static_cast<int>(graph.nodes.size()) - 1);
  text += inner + "return";
  if (!graph.outputs.empty()) text += " ";
  text += joined(graph.outputs.size(), [&](size_t i) {
    const Graph::State* state = graph.state_of_output(i);
    std::string name =
        state ? "state " + value(graph.inputs[state->input]) : quote_name(graph.outputs[i].name);
    return name + " = " + value(graph.outputs[i].value);
  });
  return text + "\n" + indent + "}";
}

}  // namespace

std::string print(const Graph& graph, int64_t elide_constants) {
  std::string text;
  for (const Symbol& s : graph.symbols) {
    text += "symbol " + to_string(Dim::symbol(s.name)) + " min=" + std::to_string(s.min);
    if (s.max != INT64_MAX) text += " max=" + std::to_string(s.max);
    if (s.multiple_of != 1) text += " multiple_of=" + std::to_string(s.multiple_of);
    if (s.runtime) text += " runtime";
    if (!s.bound.empty()) text += " bound=" + to_string(s.bound[0]);
    text += "\n";
  }
  return text + "graph @" + quote_name(graph.name) + body_text(graph, "", elide_constants) + "\n";
}

}  // namespace quernel
