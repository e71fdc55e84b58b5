#include "pipeline/import_models.h"

#include <fnmatch.h>

#include <algorithm>
#include <unordered_map>

#include "frontends/import_file.h"
#include "graph/quantize_weights.h"
#include "graph/random_weights.h"
#include "support/edit_distance.h"

namespace quernel {
namespace {

// Every value that was given is an input's; notes those that nobody needed.
Status check_input_values(const CompileOptions& options, Imported& imported) {
  std::string legal;
  std::vector<std::string> names = imported.fixed_inputs;
  for (ValueId v : imported.graph.inputs) names.push_back(imported.graph.values[v].name);
  for (const std::string& name : names) legal += (legal.empty() ? "'" : ", '") + name + "'";
  for (const auto& [name, value] : options.input_values) {
    if (std::find(names.begin(), names.end(), name) == names.end())
      return invalid_input(
          "input value: expected the name of an input (" + legal + "), found '" + name + "'", {},
          "an initializer that the model lists as an input becomes one with --keep-input " + name);
    bool is_initial = std::any_of(
        imported.graph.states.begin(), imported.graph.states.end(), [&](const Graph::State& state) {
          return imported.graph.values[imported.graph.inputs[state.input]].name == name;
        });
    if (std::find(imported.fixed_inputs.begin(), imported.fixed_inputs.end(), name) ==
            imported.fixed_inputs.end() &&
        !is_initial)
      imported.notes.push_back("the value of input '" + name +
                               "' is not used: no operator needs it at compile time");
  }
  return {};
}

// Programs give and get names as C strings.
Status check_names(const Graph& graph) {
  auto check = [](const char* what, const std::string& name) -> Status {
    if (name.find('\0') == std::string::npos) return {};
    return unsupported(std::string(what) + " '" + name + "': expected a name without zero bytes, found one",
                       {}, "rename it in the model");
  };
  QUERNEL_CHECK(check("graph", graph.name));
  for (ValueId input : graph.inputs) QUERNEL_CHECK(check("input", graph.values[input].name));
  for (const Graph::Output& output : graph.outputs) QUERNEL_CHECK(check("output", output.name));
  for (const Symbol& symbol : graph.symbols) QUERNEL_CHECK(check("dim", symbol.name));
  return {};
}

Status finish_import(const std::string& path, const CompileOptions& options, Imported& imported) {
  QUERNEL_CHECK(check_names(imported.graph));
  QUERNEL_CHECK(make_states(imported.graph, options.states, options.input_values));
  if (options.state_dtype != DType::kF32) {
    QUERNEL_TRY(imported.graph, narrow_states(imported.graph, options.state_dtype));
  }
  if (options.io != IoTypes::kModel) {
    QUERNEL_TRY(imported.graph,
                set_io_types(imported.graph, options.io, imported.scales, path, imported.notes));
  }
  if (options.random_weights) randomize_weights(imported.graph, *options.random_weights);
  if (options.weights.bits != 0) {
    QUERNEL_TRY(imported.quantized, quantize_weights(imported.graph, options.weights, options.float_weights));
    for (std::string& note : about_layers(imported.quantized)) imported.notes.push_back(std::move(note));
  }
  return check_input_values(options, imported);
}

// Options of one entry point, and its model.
CompileOptions entry_options(const CompileOptions& options, const EntryPointOptions& entry) {
  CompileOptions own = options;
  for (const auto& [name, value] : entry.dims) own.dims[name] = value, own.dim_ranges.erase(name);
  for (const auto& [name, range] : entry.dim_ranges) own.dim_ranges[name] = range, own.dims.erase(name);
  own.signature = entry.name;
  own.entry_points.clear();
  return own;
}

bool matches(const std::string& pattern, const std::string& name) {
  return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

// True for entry points that are to be built: without patterns all of them.
bool is_built(const CompileOptions& options, const std::string& name) {
  const std::vector<std::string>& patterns = options.only_entry_points;
  return patterns.empty() ||
         std::any_of(patterns.begin(), patterns.end(), [&](auto& pattern) { return matches(pattern, name); });
}

// Every pattern of only_entry_points matches one of the names; if not, the nearest name comes first.
Status check_patterns(const CompileOptions& options, std::vector<std::string> names) {
  for (const std::string& pattern : options.only_entry_points) {
    if (std::any_of(names.begin(), names.end(), [&](auto& name) { return matches(pattern, name); })) continue;
    std::stable_sort(names.begin(), names.end(), [&](const std::string& a, const std::string& b) {
      return edit_distance(pattern, a) < edit_distance(pattern, b);
    });
    std::string legal;
    for (const std::string& name : names) legal += (legal.empty() ? "'" : ", '") + name + "'";
    return invalid_input("entry points to build: expected a pattern that matches one of " + legal +
                         ", found '" + pattern + "'");
  }
  return {};
}

Status check_entry_names(const CompileOptions& options) {
  std::vector<std::string> names;
  for (const EntryPointOptions& entry : options.entry_points) {
    if (std::find(names.begin(), names.end(), entry.name) != names.end())
      return invalid_input("expected entry points of different names, found '" + entry.name + "' twice");
    names.push_back(entry.name);
  }
  return check_patterns(options, std::move(names));
}

}  // namespace

Expected<Imported> import_model(const std::string& path, const CompileOptions& options) {
  ImportOptions import_options;
  import_options.dims = options.dims;
  import_options.dim_ranges = options.dim_ranges;
  import_options.input_shapes = options.input_shapes;
  import_options.declared_shapes_yield = options.declared_shapes_yield;
  import_options.input_values = options.input_values;
  import_options.custom_ops = options.custom_ops;
  import_options.keep_inputs = options.keep_inputs;
  import_options.duplicate_names = options.duplicate_names;
  import_options.allow_large = options.allow_large;
  import_options.choices = options.choices;
  import_options.activations = options.activations;
  import_options.rounding = options.rounding;
  import_options.signature = options.signature;
  import_options.external_dirs = options.external_dirs;
  QUERNEL_TRY(ImportedModel model, import_file(path, import_options));
  Imported imported{std::move(model.graph),
                    std::move(model.notes),
                    std::move(model.fixed_inputs),
                    std::move(model.fourier_outputs),
                    {},
                    model.rounding,
                    std::move(model.scales),
                    std::move(model.about),
                    path};
  QUERNEL_CHECK(finish_import(path, options, imported));
  return imported;
}

Expected<std::vector<Imported>> import_entry_points(const std::string& model, const CompileOptions& options) {
  std::vector<Imported> entries;
  if (options.entry_points.empty()) {
    QUERNEL_TRY(Imported imported, import_model(model, options));
    QUERNEL_CHECK(check_patterns(options, {imported.graph.name}));
    entries.push_back(std::move(imported));
    return entries;
  }
  QUERNEL_CHECK(check_entry_names(options));
  for (const EntryPointOptions& entry : options.entry_points) {
    if (!is_built(options, entry.name)) continue;
    Expected<Imported> imported =
        import_model(entry.model.empty() ? model : entry.model, entry_options(options, entry));
    if (!imported) {
      Diagnostics errors = imported.errors();
      for (Diagnostic& error : errors) error.message = "entry point '" + entry.name + "': " + error.message;
      return errors;
    }
    imported->graph.name = entry.name;
    for (std::string& note : imported->notes) note = entry.name + ": " + note;
    entries.push_back(std::move(*imported));
  }
  return entries;
}

Status check_shared_states(const std::vector<Graph>& graphs) {
  struct Known {
    const Graph* graph;
    const Graph::State* state;
  };
  std::unordered_map<std::string, Known> known;
  for (const Graph& graph : graphs)
    for (const Graph::State& state : graph.states) {
      const Value& value = graph.values[graph.inputs[state.input]];
      auto [it, fresh] = known.try_emplace(value.name, Known{&graph, &state});
      if (fresh) continue;
      const auto& [other, same] = it->second;
      const TensorType& type = other->type(other->inputs[same->input]);
      if (!(type == value.type))
        return invalid_input("state '" + value.name + "': expected " + to_string(type) +
                             " as in entry point '" + other->name + "', found " + to_string(value.type) +
                             " in '" + graph.name + "'");
      const Bytes &a = state.initial.bytes, &b = same->initial.bytes;
      if (a.size() != b.size() || !std::equal(a.data(), a.data() + a.size(), b.data()))
        return invalid_input("state '" + value.name + "': expected the same initial value in entry points '" +
                             other->name + "' and '" + graph.name + "'");
    }
  return {};
}

}  // namespace quernel
