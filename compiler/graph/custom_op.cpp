#include "graph/custom_op.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "graph/parse_type.h"
#include "support/file.h"

namespace quernel {
namespace {

bool has_free_divisor(const Dim& d) {
  if (d.is_const() || d.kind() == Dim::Kind::kSymbol) return false;
  bool divides = d.kind() == Dim::Kind::kFloorDiv || d.kind() == Dim::Kind::kMod;
  return (divides && !d.rhs().is_const()) || has_free_divisor(d.lhs()) || has_free_divisor(d.rhs());
}

class DescriptionParser {
 public:
  DescriptionParser(std::string_view text, const std::string& file)
      : in_(text, file), types_(in_, [this](const std::string& name) { return find_symbol(name); }) {
    folder_ = std::filesystem::path(file).parent_path().string();
  }

  Expected<std::vector<CustomOpDescription>> parse() {
    std::vector<CustomOpDescription> ops;
    while (in_.ok() && !in_.at_end()) ops.push_back(parse_op(ops));
    if (!in_.ok()) return in_.take_error();
    return ops;
  }

 private:
  CustomOpDescription parse_op(const std::vector<CustomOpDescription>& before) {
    CustomOpDescription op;
    symbols_.clear();
    in_.expect_word("op");
    op.name = in_.quoted();
    if (in_.ok() && op.name.empty()) in_.fail("expected the name of an operator, found an empty one");
    for (const CustomOpDescription& other : before)
      if (in_.ok() && other.name == op.name) in_.fail("op '" + op.name + "' is described twice");
    declares_ = true;
    op.inputs = parse_arguments();
    declares_ = false;
    in_.expect("->");
    op.outputs = parse_arguments();
    if (in_.ok() && op.outputs.empty()) in_.fail("op '" + op.name + "': expected at least one output");
    while (in_.accept_word("kernel")) op.kernels.push_back(parse_kernel());
    return op;
  }

  std::vector<CustomOpDescription::Argument> parse_arguments() {
    std::vector<CustomOpDescription::Argument> arguments;
    in_.expect("(");
    while (in_.ok() && !in_.accept(")")) {
      if (!arguments.empty()) in_.expect(",");
      std::string name = in_.name("a name");
      in_.expect(":");
      arguments.push_back({std::move(name), types_.type()});
      for (const Dim& d : arguments.back().type.shape) check_dim(d);
    }
    return arguments;
  }

  void check_dim(const Dim& d) {
    if (!in_.ok()) return;
    if (declares_ && !d.is_const() && d.kind() != Dim::Kind::kSymbol)
      in_.fail("expected a number or a name as a dim of an input, found " + to_string(d));
    else if (has_free_divisor(d))
      in_.fail("expected a number as a divisor, found " + to_string(d));
  }

  CustomKernel parse_kernel() {
    CustomKernel kernel;
    kernel.target = in_.quoted();
    kernel.object = (std::filesystem::path(folder_) / in_.quoted()).string();
    in_.expect_word("symbol");
    kernel.symbol = in_.quoted();
    return kernel;
  }

  Dim find_symbol(const std::string& name) {
    auto it = symbols_.find(name);
    if (it != symbols_.end()) return it->second;
    if (!declares_) {
      in_.fail("'" + name + "' is a dim of none of the inputs");
      return 0;
    }
    return symbols_.emplace(name, Dim::symbol(Symbol{name, 0, INT64_MAX, 1, false, {}})).first->second;
  }

  TextReader in_;
  TypeParser types_;
  std::string folder_;
  bool declares_ = false;  // whether a new name is a new symbol
  std::map<std::string, Dim> symbols_;
};

Diagnostic misfit(const CustomOpDescription& op, size_t operand, const std::string& expected,
                  const TensorType& found) {
  return invalid_input("input '" + op.inputs[operand].name + "' of custom op '" + op.name + "': expected " +
                       expected + ", found " + to_string(found));
}

}  // namespace

Expected<std::vector<CustomOpDescription>> parse_custom_ops(std::string_view text, const std::string& file) {
  return DescriptionParser(text, file).parse();
}

Expected<std::vector<CustomOpDescription>> read_custom_ops(const std::string& path) {
  std::string reason;
  std::optional<std::string> text = read_file(path, &reason);
  if (!text)
    return invalid_input("cannot read the description of custom ops: " + reason, Location{.file = path});
  return parse_custom_ops(*text, path);
}

Expected<std::vector<TensorType>> custom_result_types(
    const CustomOpDescription& op, const std::vector<TensorType>& operands,
    const std::function<void(const Dim& a, const Dim& b)>& unequal) {
  if (operands.size() != op.inputs.size())
    return invalid_input("custom op '" + op.name + "': expected " + std::to_string(op.inputs.size()) +
                         " inputs, found " + std::to_string(operands.size()));
  std::map<std::string, Dim> values;
  for (size_t i = 0; i < operands.size(); ++i) {
    const TensorType &expected = op.inputs[i].type, &found = operands[i];
    if (found.dtype != expected.dtype || found.shape.size() != expected.shape.size())
      return misfit(op, i, to_string(expected), found);
    for (size_t d = 0; d < found.shape.size(); ++d) {
      Dim want = expected.shape[d];
      if (!want.is_const()) want = values.try_emplace(want.name(), found.shape[d]).first->second;
      if (want == found.shape[d]) continue;
      if (unequal) unequal(want, found.shape[d]);
      return misfit(op, i, to_string(expected) + " with dim " + std::to_string(d) + " = " + to_string(want),
                    found);
    }
  }
  std::vector<TensorType> results;
  for (const CustomOpDescription::Argument& output : op.outputs) {
    TensorType& type = results.emplace_back(output.type);
    for (Dim& d : type.shape) {
      Dim value = d.substitute(values);
      if (value.bounds().hi < 0)
        return invalid_input("output '" + output.name + "' of custom op '" + op.name +
                             "': expected a dim of at least 0, found " + to_string(d) + " = " +
                             to_string(value));
      d = value;
    }
  }
  return results;
}

}  // namespace quernel
