#include "frontends/shared/input_shapes.h"

#include <algorithm>
#include <cctype>

#include "frontends/shared/check_node.h"

namespace quernel {

std::string symbol_name(const std::string& name) {
  std::string result;
  for (char c : name) result += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  if (result.empty() || std::isdigit(static_cast<unsigned char>(result[0]))) result.insert(0, "d");
  return result;
}

namespace {

// What a free dim may be at most, so that products of dims do not overflow.
constexpr int64_t kMaxFreeDim = int64_t{1} << 31;

}  // namespace

const std::vector<int64_t>* InputShapes::shape_option(const std::string& input) const {
  auto it = options_.input_shapes.find(input);
  return it == options_.input_shapes.end() ? nullptr : &it->second;
}

void InputShapes::bind(const DeclaredInput& input) {
  input_names_.insert(input.name);
  const std::vector<int64_t>* shape = shape_option(input.name);
  if (!shape || shape->size() != input.dims.size()) return;
  for (size_t i = 0; i < input.dims.size(); ++i)
    if (!input.dims[i].size) bound_.emplace(input.dims[i].name, (*shape)[i]);
}

namespace {

bool contradicts(const DeclaredInput& declared, const std::vector<int64_t>& shape) {
  bool differs = shape.size() != declared.dims.size();
  for (size_t i = 0; !differs && i < declared.dims.size(); ++i)
    differs = declared.dims[i].size && *declared.dims[i].size != shape[i];
  return differs;
}

}  // namespace

Expected<Shape> InputShapes::shape_of(const DeclaredInput& input) {
  Location place{file_name_, input.name, "input"};
  const std::vector<int64_t>* fixed = shape_option(input.name);
  Shape result;
  if (!input.has_shape) {
    if (!fixed)
      return unsupported("input '" + input.name + "' has no shape, not even a rank", place,
                         "fix it with --input-shape " + input.name + "=D0,D1,...");
    result = make_shape(*fixed);
  } else if (fixed && options_.declared_shapes_yield && contradicts(input, *fixed)) {
    if (!is_sane_shape(*fixed))
      return invalid_input(
          "input '" + input.name + "': shape " + to_string(make_shape(*fixed)) + " is negative or too large",
          place);
    return make_shape(*fixed);
  } else if (fixed && fixed->size() != input.dims.size()) {
    return invalid_input("input '" + input.name + "': expected a shape of rank " +
                             std::to_string(input.dims.size()) + ", found one of rank " +
                             std::to_string(fixed->size()),
                         place);
  }
  for (size_t i = 0; i < input.dims.size(); ++i) {
    if (std::optional<int64_t> size = input.dims[i].size) {
      if (fixed && (*fixed)[i] != *size)
        return invalid_input("input '" + input.name + "': dim " + std::to_string(i) + " is " +
                                 std::to_string(*size) + " in the model, and was asked to be " +
                                 std::to_string((*fixed)[i]),
                             place);
      result.push_back(*size);
      continue;
    }
    const std::string& name = input.dims[i].name;
    free_names_.insert(name);
    std::optional<int64_t> value;
    if (auto it = bound_.find(name); it != bound_.end()) value = it->second;
    if (auto it = options_.dims.find(name); it != options_.dims.end()) value = it->second;
    if (fixed && *value != (*fixed)[i])
      return invalid_input("input '" + input.name + "': free dim '" + name + "' cannot be both " +
                               std::to_string(*value) + " and " + std::to_string((*fixed)[i]),
                           place);
    if (value) {
      result.push_back(*value);
      continue;
    }
    auto [symbol, inserted] = symbols_.try_emplace(name);
    if (inserted) {
      symbol->second = symbol_name(name);
      while (!used_symbols_.insert(symbol->second).second) symbol->second += "_";
      Symbol facts{symbol->second, 0, kMaxFreeDim, 1, false, {}};
      if (auto it = options_.dim_ranges.find(name); it != options_.dim_ranges.end()) {
        facts = it->second;
        facts.name = symbol->second;
      } else {
        unranged_.insert(facts.name);
        if (auto least = assumptions_.min.find(facts.name); least != assumptions_.min.end())
          facts.min = least->second;
      }
      if (auto it = assumptions_.least.find(facts.name); it != assumptions_.least.end())
        facts.min = std::max(facts.min, it->second);
      if (auto it = assumptions_.max.find(facts.name); it != assumptions_.max.end())
        facts.max = std::min(facts.max, it->second);
      if (auto it = assumptions_.multiple_of.find(facts.name); it != assumptions_.multiple_of.end())
        facts = with_multiple(facts, it->second);
      facts_.push_back(facts);
    }
    result.push_back(Dim::symbol(*std::find_if(facts_.begin(), facts_.end(),
                                               [&](const Symbol& s) { return s.name == symbol->second; })));
  }
  std::vector<int64_t> known;
  for (const Dim& d : result)
    if (d.is_const()) known.push_back(d.value());
  if (!is_sane_shape(known))
    return invalid_input(
        "input '" + input.name + "': shape " + to_string(result) + " is negative or too large", place);
  return result;
}

void InputShapes::replace_symbols(TensorType& type) const {
  std::map<std::string, Dim> now;
  for (const Symbol& facts : facts_) now.emplace(facts.name, Dim::symbol(facts));
  for (Dim& dim : type.shape)
    if (dim.kind() == Dim::Kind::kSymbol)
      if (auto it = assumptions_.same_as.find(dim.name()); it != assumptions_.same_as.end())
        dim = it->second.substitute(now);
}

std::vector<Symbol> InputShapes::symbols() const {
  std::vector<Symbol> symbols;
  for (const Symbol& facts : facts_)
    if (!assumptions_.same_as.count(facts.name)) symbols.push_back(facts);
  return symbols;
}

Status InputShapes::check_unused() const {
  Diagnostics errors;
  auto list = [](const std::set<std::string>& names) {
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "'" : ", '") + name + "'";
    return text.empty() ? std::string("none") : text;
  };
  Location place{.file = file_name_};
  for (const auto& [name, value] : options_.dims) {
    if (!free_names_.count(name))
      errors.push_back(invalid_input("the model has no free dim '" + name + "'", place,
                                     "its free dims: " + list(free_names_)));
  }
  for (const auto& [name, range] : options_.dim_ranges)
    if (!free_names_.count(name))
      errors.push_back(invalid_input("the model has no free dim '" + name + "'", place,
                                     "its free dims: " + list(free_names_)));
  for (const auto& [name, shape] : options_.input_shapes)
    if (constants_.count(name))
      errors.push_back(invalid_input("input '" + name + "' is an initializer, too, and taken as a constant",
                                     place, "--keep-input " + name + " makes it an input"));
    else if (!input_names_.count(name))
      errors.push_back(
          invalid_input("the model has no input '" + name + "'", place, "its inputs: " + list(input_names_)));
  return errors;
}

}  // namespace quernel
