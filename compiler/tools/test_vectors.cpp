#include "test_vectors.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "bundle/write_bundle.h"
#include "frontends/import_file.h"
#include "opened_bundle.h"
#include "quernel/runtime.h"

namespace quernel::tools {
namespace {

using tensor_file::HostTensor;
using tensor_file::typed_as;

std::string type_text(DType dtype, const std::vector<int64_t>& shape) {
  std::string dims;
  for (int64_t dim : shape) dims += (dims.empty() ? "" : ",") + (dim < 0 ? "?" : std::to_string(dim));
  return fmt::format("{}[{}]", to_string(dtype), dims);
}

bool fits(const HostTensor& value, const bundle::Tensor& tensor) {
  if (value.dtype != static_cast<qnl_dtype>(tensor.dtype) || value.shape.size() != tensor.shape.size())
    return false;
  for (size_t d = 0; d < value.shape.size(); ++d)
    if (tensor.shape[d] >= 0 && value.shape[d] != tensor.shape[d]) return false;
  return true;
}

std::map<std::string, std::vector<std::byte>> initial_states(const bundle::BundleContents& contents,
                                                             const bundle::EntryPoint& entry) {
  std::map<std::string, std::vector<std::byte>> values;
  for (uint32_t index : entry.states) {
    const bundle::Tensor& state = contents.states[index];
    std::vector<std::byte>& value = values[state.name];
    value.resize(state.bytes);
    int32_t constants = contents.arenas[state.arena].constants;
    if (constants < 0) continue;
    for (const bundle::ConstantPiece& piece : contents.constants[static_cast<size_t>(constants)].pieces)
      std::copy(piece.view.begin(), piece.view.end(), value.begin() + static_cast<ptrdiff_t>(piece.offset));
  }
  return values;
}

// Takes the inputs of these names out; they must have these values.
Status take_known(DataSet& set, const std::map<std::string, std::vector<std::byte>>& known) {
  for (const DataFile& file : set.inputs) {
    auto it = known.find(file.tensor.name);
    if (it != known.end() && !file.error && file.tensor.bytes != it->second)
      return invalid_input(
          fmt::format("{}: expected the value that the bundle is compiled with or begins "
                      "with for input '{}', found another",
                      file.name, file.tensor.name));
  }
  std::erase_if(set.inputs, [&](const DataFile& file) { return known.count(file.tensor.name) > 0; });
  return {};
}

// The tensors of one role; `names_only`: files do not stand for tensors by their order.
Status add_tensors(const DataSet& set, const std::vector<DataFile>& files, bool output, bool names_only,
                   const std::vector<bundle::Tensor>& signature, const Expectations& expectations,
                   bundle::TestVector* vector) {
  std::vector<std::string> names;
  for (const bundle::Tensor& tensor : signature) names.push_back(tensor.name);
  std::vector<int> match = match_files(names, files);
  const char* role = output ? "output" : "input";
  for (size_t i = 0; i < signature.size(); ++i) {
    if (match[i] < 0 || (names_only && files[static_cast<size_t>(match[i])].tensor.name != names[i]))
      return invalid_input(fmt::format("{}: no file for {} '{}'", set.name, role, names[i]));
    const DataFile& file = files[static_cast<size_t>(match[i])];
    if (file.error) return invalid_input(fmt::format("{}: {}", file.name, *file.error));
    HostTensor value = typed_as(file.tensor, static_cast<qnl_dtype>(signature[i].dtype));
    if (!fits(value, signature[i]))
      return invalid_input(fmt::format("{}: {} '{}': expected {}, found {}", set.name, role, names[i],
                                       type_text(signature[i].dtype, signature[i].shape),
                                       type_text(static_cast<DType>(value.dtype), value.shape)));
    if (output && expectations.random.count(names[i])) continue;
    bundle::TestTensor& tensor = vector->tensors.emplace_back();
    tensor.tensor = static_cast<uint32_t>(i);
    tensor.output = output;
    if (output) {
      Tolerance tolerance = expectations.of(names[i], value);
      tensor.tolerance = {tolerance.rtol, tolerance.atol, tolerance.mean_atol.value_or(-1), tolerance.top1,
                          tolerance.max_share};
    }
    tensor.value = std::move(value.bytes);
    tensor.shape = std::move(value.shape);
  }
  return {};
}

Status write(const bundle::BundleContents& contents, const std::string& path) {
  Expected<bundle::BundleSizes> sizes = bundle::write_bundle(contents, path);
  return sizes ? Status() : Status(sizes.take_errors());
}

}  // namespace

Tolerance Expectations::of(const std::string& output, const HostTensor& expected) const {
  const Json* file = tolerances ? &*tolerances : nullptr;
  Tolerance tolerance = fourier.count(output) ? fourier_tolerance_of(file, output, expected)
                                              : tolerance_of(file, output, expected.dtype);
  return precision_tolerance_of(tolerance, precision, expected);
}

Expected<std::optional<Json>> read_tolerances(const std::string& dir) {
  std::error_code code;
  std::string path = dir + "/tolerance.json";
  if (!std::filesystem::exists(path, code)) return std::optional<Json>();
  std::vector<std::byte> bytes;
  if (tensor_file::Error error = tensor_file::read_file(path, &bytes))
    return invalid_input("tolerance.json: " + *error);
  QUERNEL_TRY(Json json, parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path));
  if (!json.is_object()) return invalid_input("expected an object", {.file = path});
  return std::optional<Json>(std::move(json));
}

bool is_sequence(const std::optional<Json>& tolerances) {
  return tolerances && tolerances->at("sequence").is_true();
}

Status set_signatures(std::vector<DataSet>& sets, const std::optional<Json>& tolerances,
                      const std::string& only) {
  const Json* list = tolerances ? tolerances->find("signatures") : nullptr;
  if (list == nullptr) {
    for (DataSet& set : sets) set.signature = only;
    return {};
  }
  bool right = list->array().size() == sets.size();
  for (size_t i = 0; right && i < sets.size(); ++i) {
    sets[i].signature = list->array()[i].text();
    right = !sets[i].signature.empty();
  }
  if (!right)
    return invalid_input(fmt::format(
        "tolerance.json: signatures: expected the name of one for each of {} data sets", sets.size()));
  if (!only.empty()) std::erase_if(sets, [&](const DataSet& set) { return set.signature != only; });
  if (sets.empty())
    return invalid_input("expected a data set that calls signature '" + only + "', found none");
  return {};
}

void name_inputs(DataSet& set, const std::vector<std::string>& names) {
  std::vector<int> match = match_files(names, set.inputs);
  for (size_t i = 0; i < names.size(); ++i)
    if (match[i] >= 0) set.inputs[static_cast<size_t>(match[i])].tensor.name = names[i];
}

Signature signature_of(const bundle::BundleContents& contents, size_t entry_point) {
  const bundle::EntryPoint& entry = contents.entry_points[entry_point];
  return {entry.inputs, entry.outputs, initial_states(contents, entry)};
}

Signature signature_of(const StaticReport& program) {
  auto tensors = [](const std::vector<StaticTensorReport>& from) {
    std::vector<bundle::Tensor> to;
    for (const StaticTensorReport& t : from) {
      bundle::Tensor& tensor = to.emplace_back();
      tensor.name = t.name;
      tensor.dtype = t.dtype;
      tensor.shape = t.shape;
      tensor.bytes = t.bytes;
    }
    return to;
  };
  return {tensors(program.inputs), tensors(program.outputs), {}};
}

Expected<bundle::TestVector> make_test_vector(const DataSet& data, const Signature& signature,
                                              const std::map<std::string, std::vector<std::byte>>& fixed,
                                              const Expectations& expectations) {
  bundle::TestVector vector;
  vector.name = data.name;
  DataSet set = data;
  QUERNEL_CHECK(take_known(set, fixed));
  QUERNEL_CHECK(take_known(set, signature.states));
  bool has_states = !signature.states.empty();
  QUERNEL_CHECK(add_tensors(set, set.inputs, false, has_states, signature.inputs, expectations, &vector));
  if (!has_states && set.outputs.size() != signature.outputs.size())
    return invalid_input(fmt::format("{}: expected a file for each of {} outputs, found {} files", set.name,
                                     signature.outputs.size(), set.outputs.size()));
  QUERNEL_CHECK(add_tensors(set, set.outputs, true, has_states, signature.outputs, expectations, &vector));
  return vector;
}

Status write_with_tests(const std::string& from, std::vector<bundle::TestVector> tests,
                        const std::string& to) {
  QUERNEL_TRY(std::unique_ptr<OpenedBundle> open, open_bundle(from, false));
  open->contents.test_vectors = std::move(tests);
  return write(open->contents, to);
}

namespace {

// The values of initializers that the set has as inputs and the bundle as constants.
Status add_initializers(const std::string& model, const DataSet& set, const ModelInputs& inputs,
                        const Signature& signature, std::map<std::string, std::vector<std::byte>>& fixed) {
  std::vector<std::string> names;
  for (const DataFile& file : set.inputs) {
    const std::string& name = file.tensor.name;
    bool listed = std::find(inputs.with_all.begin(), inputs.with_all.end(), name) != inputs.with_all.end() &&
                  std::find(inputs.names.begin(), inputs.names.end(), name) == inputs.names.end();
    bool kept = std::any_of(signature.inputs.begin(), signature.inputs.end(),
                            [&](const bundle::Tensor& tensor) { return tensor.name == name; });
    if (listed && !kept && !signature.states.count(name)) names.push_back(name);
  }
  if (names.empty()) return {};
  QUERNEL_TRY(auto values, read_listed_initializers(model, names));
  for (const auto& [name, value] : values) {
    const auto* data = reinterpret_cast<const std::byte*>(value.bytes.data());
    fixed.emplace(name, std::vector<std::byte>(data, data + value.bytes.size()));
  }
  return {};
}

// An entry point of a bundle, and the names that its model's inputs have.
struct TestedEntry {
  uint32_t number = 0;
  std::string model;
  ModelInputs inputs;
  Signature signature;
};

Expected<TestedEntry> tested_entry(const bundle::BundleContents& contents, uint32_t number,
                                   const std::string& model, const CompileOptions& options) {
  TestedEntry entry{number, model, {}, signature_of(contents, number)};
  std::string signature = options.signature;
  for (const EntryPointOptions& point : options.entry_points) {
    if (point.name != contents.entry_points[number].name) continue;
    signature = point.name;
    if (!point.model.empty()) entry.model = point.model;
  }
  if (!entry.model.ends_with(".qg")) {
    QUERNEL_TRY(entry.inputs, read_model_inputs(entry.model, signature));
  }
  return entry;
}

// Returns the number of the entry point that a data set calls; nothing where the bundle has none of its name.
std::optional<uint32_t> entry_called_by(const DataSet& set, const bundle::BundleContents& contents) {
  if (set.signature.empty()) return 0;
  for (uint32_t i = 0; i < contents.entry_points.size(); ++i)
    if (contents.entry_points[i].name == set.signature) return i;
  return std::nullopt;
}

// Leaves out the sets of entry points that the bundle does not have.
Status take_callable(std::vector<DataSet>& sets, const bundle::BundleContents& contents,
                     std::vector<std::string>& notes) {
  const DataSet first = sets[0];
  size_t others = std::erase_if(sets, [&](const DataSet& set) { return !entry_called_by(set, contents); });
  if (sets.empty())
    return invalid_input(
        fmt::format("--embed-tests: {} calls '{}': expected an entry point of this name, found '{}'",
                    first.name, first.signature, contents.entry_points[0].name),
        {}, "make one with --entry " + first.signature);
  if (others > 0)
    notes.push_back(fmt::format("--embed-tests: left out {} data set{} of other entry points", others,
                                others == 1 ? "" : "s"));
  return {};
}

}  // namespace

Status embed_tests(const std::string& dir, const std::string& model, const CompileOptions& options,
                   CompileReport& report, const std::string& from, const std::string& to) {
  std::vector<DataSet> sets = read_data_sets(dir);
  if (sets.empty())
    return invalid_input("--embed-tests: expected folders test_data_set_0, …; found none", {.file = dir});
  Expectations expectations;
  QUERNEL_TRY(expectations.tolerances, read_tolerances(dir));
  QUERNEL_CHECK(set_signatures(sets, expectations.tolerances, {}));
  expectations.random.insert(report.random_outputs.begin(), report.random_outputs.end());
  expectations.fourier.insert(report.fourier_outputs.begin(), report.fourier_outputs.end());
  expectations.precision = precision_of(options);
  std::map<std::string, std::vector<std::byte>> fixed;
  for (const std::string& name : report.fixed_inputs) {
    const Bytes& bytes = options.input_values.at(name).bytes;
    const auto* data = reinterpret_cast<const std::byte*>(bytes.data());
    fixed.emplace(name, std::vector<std::byte>(data, data + bytes.size()));
  }
  QUERNEL_TRY(std::unique_ptr<OpenedBundle> open, open_bundle(from, false));
  bundle::BundleContents& contents = open->contents;
  QUERNEL_CHECK(take_callable(sets, contents, report.notes));
  if (is_sequence(expectations.tolerances) && sets.size() > 1 && !contents.states.empty())
    return unsupported(
        "--embed-tests: a test vector begins with initial states, data sets are one sequence of runs",
        {.file = dir}, "test them with quernel verify, or on a board");
  std::map<uint32_t, TestedEntry> entries;
  for (DataSet& set : sets) {
    uint32_t number = *entry_called_by(set, contents);
    if (!entries.count(number)) {
      QUERNEL_TRY(TestedEntry entry, tested_entry(contents, number, model, options));
      entries.emplace(number, std::move(entry));
    }
    const auto& [index, own_model, inputs, signature] = entries.at(number);
    name_inputs(set, set.inputs.size() > inputs.names.size() ? inputs.with_all : inputs.names);
    // What another entry point fixes may be an input of this one.
    std::map<std::string, std::vector<std::byte>> known = fixed;
    for (const bundle::Tensor& input : signature.inputs) known.erase(input.name);
    QUERNEL_CHECK(add_initializers(own_model, set, inputs, signature, known));
    QUERNEL_TRY(bundle::TestVector vector, make_test_vector(set, signature, known, expectations));
    vector.entry_point = index;
    contents.test_vectors.push_back(std::move(vector));
  }
  return write(contents, to);
}

}  // namespace quernel::tools
