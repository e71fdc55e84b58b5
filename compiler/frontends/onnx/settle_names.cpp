// Names that a graph gives twice: which definition counts, or what is said of them. Part of GraphImport.
#include "frontends/onnx/import_graph.h"
#include "frontends/onnx/operators.h"

namespace quernel::onnx_import {
namespace {

std::string described(const onnx::NodeProto& node) {
  return "node '" + node_name(node) + "' (" + operator_name(node) + ")";
}

bool is_constant(const onnx::NodeProto& node) {
  return node.op_type() == "Constant" && normal_domain(node.domain()).empty();
}

bool equal(const Tensor& a, const Tensor& b) {
  return a.dtype == b.dtype && a.dims == b.dims && a.bytes.size() == b.bytes.size() &&
         std::equal(a.bytes.data(), a.bytes.data() + a.bytes.size(), b.bytes.data());
}

const char* const kRename = "give each of them a name of its own";
const char* const kRenameOr =
    "give each of them a name of its own, or take the last with --duplicate-names last";

}  // namespace

std::string GraphImport::described(const Entry& entry) {
  if (entry.node) return onnx_import::described(*entry.node);
  return entry.tensor ? "an initializer" : "an input";
}

std::optional<Tensor> GraphImport::constant_of(const onnx::NodeProto* node, const onnx::TensorProto* tensor) {
  int64_t bytes_left = source_.bytes_left;  // reading to compare uses nothing up
  Expected<Tensor> value = node ? read_constant(*node, source_, place_of(*node))
                                : read_tensor(*tensor, source_, Location{source_.file_name, tensor->name()});
  source_.bytes_left = bytes_left;
  return value ? std::optional(std::move(*value)) : std::nullopt;
}

bool GraphImport::same_constant(const onnx::NodeProto* a_node, const onnx::TensorProto* a,
                                const onnx::NodeProto* b_node, const onnx::TensorProto* b) {
  if ((a_node && !is_constant(*a_node)) || (b_node && !is_constant(*b_node))) return false;
  if ((!a_node && !a) || (!b_node && !b)) return false;
  std::optional<Tensor> first = constant_of(a_node, a), second = constant_of(b_node, b);
  return first && second && equal(*first, *second);
}

bool GraphImport::last_counts(const std::string& name, bool constants, const std::string& first,
                              const std::string& second, const Location& place) {
  if (names_rule_ == DuplicateNames::kLast || (constants && names_rule_ == DuplicateNames::kConstants)) {
    (constants ? repeated_constants_ : repeated_names_).insert(name);
    return true;
  }
  errors_.report(invalid_input("expected one definition of '" + name + "', found " + first + " and " + second,
                               place, kRenameOr));
  return false;
}

bool GraphImport::replaces(const onnx::NodeProto& node, int output, const Entry& entry, bool same_graph) {
  const std::string& name = node.output(output);
  std::string found = onnx_import::described(node);
  if (is_constant(node) && same_constant(&node, nullptr, entry.node, entry.tensor)) {
    dropped_.insert({&node, output});
  } else if (!same_graph && names_rule_ == DuplicateNames::kLast) {
    hidden_names_.insert(name);
  } else if (!same_graph) {
    errors_.report(invalid_input("expected a name that the graphs around this one do not use, found '" +
                                     name + "', which is " + described(entry) + " there",
                                 place_of(node), kRename));
  } else if (!entry.tensor) {
    errors_.report(invalid_input(
        "expected one definition of '" + name + "', found " + described(entry) + " and " + found,
        place_of(node), kRename));
  } else {
    return last_counts(name, is_constant(node), described(entry), found, place_of(node));
  }
  return false;
}

std::vector<const onnx::NodeProto*> GraphImport::settle_names(const NodeList& nodes, Scope& scope) {
  struct Definition {
    const onnx::NodeProto* node;
    int output;
  };
  if (!dropped_.empty())  // the memory of an earlier function's nodes may be used again
    for (const onnx::NodeProto& node : nodes)
      for (int i = 0; i < node.output_size(); ++i) dropped_.erase({&node, i});
  std::unordered_map<std::string, Definition> last;
  for (const onnx::NodeProto& node : nodes)
    for (int i = 0; i < node.output_size(); ++i) {
      const std::string& name = node.output(i);
      if (name.empty()) continue;
      auto [it, first] = last.try_emplace(name, Definition{&node, i});
      if (first) {
        auto [owner, same_graph] = owner_of(scope, name);
        if (owner && replaces(node, i, owner->entries.at(name), same_graph)) owner->entries.erase(name);
        continue;
      }
      const Definition earlier = it->second;
      bool constants = is_constant(*earlier.node) && is_constant(node);
      if (constants && same_constant(earlier.node, nullptr, &node, nullptr)) {
        dropped_.insert({&node, i});
      } else if (last_counts(name, constants, onnx_import::described(*earlier.node),
                             onnx_import::described(node), place_of(node))) {
        dropped_.insert({earlier.node, earlier.output});
        it->second = {&node, i};
      }
    }
  std::vector<const onnx::NodeProto*> kept;
  for (const onnx::NodeProto& node : nodes) {
    bool counts = node.output_size() == 0;
    for (int i = 0; i < node.output_size(); ++i)
      counts = counts || (!node.output(i).empty() && !is_dropped(node, i));
    if (counts || dropped_.empty()) kept.push_back(&node);
  }
  return kept;
}

Diagnostic GraphImport::initializer_of_an_input(const std::string& name) const {
  return invalid_input("initializer '" + name + "' is an input of the body, too",
                       Location{source_.file_name, name, "initializer"}, kRename);
}

void GraphImport::add_initializer(const onnx::TensorProto& tensor, Scope& scope) {
  Location place{source_.file_name, tensor.name(), "initializer"};
  if (tensor.name().empty()) {
    errors_.report(invalid_input("initializer without a name", place));
    return;
  }
  auto [it, first] = scope.entries.try_emplace(tensor.name(), Entry{kNoValue, &tensor, nullptr, &tensor, {}});
  Entry& entry = it->second;
  if (first) {
    const Entry* around = scope.outer ? find(*const_cast<Scope*>(scope.outer), tensor.name()) : nullptr;
    if (around && !same_constant(around->node, around->tensor, nullptr, &tensor))
      hidden_names_.insert(tensor.name());
    return;
  }
  if (!entry.tensor && scope.outer) errors_.report(initializer_of_an_input(tensor.name()));
  if (!entry.tensor) return;  // an input that is kept as one
  if (same_constant(nullptr, entry.tensor, nullptr, &tensor)) return;
  if (last_counts(tensor.name(), true, "an initializer", "another", place))
    entry = {kNoValue, &tensor, nullptr, &tensor, {}};
}

std::vector<std::string> GraphImport::name_notes() const {
  auto list = [](const std::set<std::string>& names) {
    constexpr size_t kShown = 6;
    std::string text;
    size_t shown = 0;
    for (const std::string& name : names)
      if (shown++ < kShown) text += (text.empty() ? "'" : ", '") + name + "'";
    if (names.size() > kShown) text += ", … (" + std::to_string(names.size()) + " in all)";
    return text;
  };
  std::vector<std::string> notes;
  if (!repeated_constants_.empty())
    notes.push_back("several constants of different values are called " + list(repeated_constants_) +
                    ": the last of them counts (--duplicate-names refuse refuses such models)");
  if (!repeated_names_.empty())
    notes.push_back(list(repeated_names_) + " defined several times: the last definition counts");
  if (!hidden_names_.empty())
    notes.push_back("bodies or branches define " + list(hidden_names_) +
                    ", as a graph around them does: inside, the inner definition counts");
  return notes;
}

}  // namespace quernel::onnx_import
