#include "graph/states.h"

#include <optional>

namespace quernel {
namespace {

// What the '*' of `pattern` stands for in `name`; "" where there is none; nothing where they do not match.
std::optional<std::string> match(const std::string& pattern, const std::string& name) {
  size_t star = pattern.find('*');
  if (star == std::string::npos) return pattern == name ? std::optional<std::string>("") : std::nullopt;
  std::string before = pattern.substr(0, star), after = pattern.substr(star + 1);
  if (name.size() < before.size() + after.size() || !name.starts_with(before) || !name.ends_with(after))
    return std::nullopt;
  return name.substr(star, name.size() - before.size() - after.size());
}

std::string substitute(const std::string& pattern, const std::string& text) {
  size_t star = pattern.find('*');
  return star == std::string::npos ? pattern : pattern.substr(0, star) + text + pattern.substr(star + 1);
}

std::string quoted_list(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "'" : ", '") + name + "'";
  return text.empty() ? "there is none" : text;
}

class Maker {
 public:
  Maker(Graph& graph, const std::map<std::string, Tensor>& initial) : g_(graph), initial_(initial) {
    for (ValueId v : g_.inputs) inputs_.push_back(g_.values[v].name);
    for (const Graph::Output& output : g_.outputs) outputs_.push_back(output.name);
  }

  Status add(const StatePair& pair) {
    bool any = false;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      std::optional<std::string> part = match(pair.input, inputs_[i]);
      if (!part) continue;
      any = true;
      QUERNEL_CHECK(add(i, substitute(pair.output, *part)));
    }
    if (any) return {};
    return invalid_input("state: expected the name of an input (" + quoted_list(inputs_) + "), found '" +
                         pair.input + "'");
  }

 private:
  Status add(size_t input, const std::string& output_name) {
    const std::string& name = inputs_[input];
    size_t output = 0;
    while (output < outputs_.size() && outputs_[output] != output_name) ++output;
    if (output == outputs_.size())
      return invalid_input("state '" + name + "': expected the name of an output (" + quoted_list(outputs_) +
                           "), found '" + output_name + "'");
    if (g_.state_of_input(input)) return invalid_input("state '" + name + "' is given two outputs");
    if (g_.state_of_output(output))
      return invalid_input("state '" + name + "': output '" + output_name +
                           "' is already the next value of '" + inputs_[g_.state_of_output(output)->input] +
                           "'");
    const TensorType &now = g_.type(g_.inputs[input]), &next = g_.type(g_.outputs[output].value);
    if (!(now == next))
      return invalid_input("state '" + name + "': expected output '" + output_name + "' to be " +
                               to_string(now) + " like it, found " + to_string(next),
                           {},
                           "a state keeps its size: fix free dims (--dim), and let the model write into a "
                           "buffer of the largest size rather than append");
    if (!is_static(now.shape))
      return invalid_input(
          "state '" + name + "': expected a shape without free dims, found " + to_string(now), {},
          "fix them with --dim or --input-shape");
    Graph::State state;
    state.input = input;
    state.output = output;
    if (auto it = initial_.find(name); it != initial_.end()) {
      TensorType found{it->second.dtype, make_shape(it->second.dims)};
      if (!(found == now))
        return invalid_input("state '" + name + "': expected an initial value of " + to_string(now) +
                             ", found " + to_string(found));
      state.initial = it->second;
    }
    g_.states.push_back(std::move(state));
    return {};
  }

  Graph& g_;
  const std::map<std::string, Tensor>& initial_;
  std::vector<std::string> inputs_, outputs_;
};

}  // namespace

Status make_states(Graph& graph, const std::vector<StatePair>& pairs,
                   const std::map<std::string, Tensor>& initial) {
  Maker maker(graph, initial);
  for (const StatePair& pair : pairs) QUERNEL_CHECK(maker.add(pair));
  return {};
}

}  // namespace quernel
