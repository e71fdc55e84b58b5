#include "verify_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "case_compiler.h"
#include "command.h"
#include "data_set.h"
#include "pipeline/import_models.h"
#include "run_bundle.h"
#include "test_vectors.h"

namespace quernel::tools {
namespace {

using tensor_file::Deviation;
using tensor_file::HostTensor;
using tensor_file::typed_as;

CaseResult failed(std::string reason) { return {Verdict::kFail, std::move(reason)}; }

// Unsupported only when that is all that the compiler says.
CaseResult from_diagnostics(const Diagnostics& diagnostics) {
  bool unsupported;
  const Diagnostic& first = telling(diagnostics, &unsupported);
  std::string count =
      fmt::format("{} diagnostic{}, first: ", diagnostics.size(), diagnostics.size() == 1 ? "" : "s");
  return {unsupported ? Verdict::kUnsupported : Verdict::kFail, count + one_line(first)};
}

// A file of data that cannot be read: strings and the like are beyond Quernel, anything else is a failure.
CaseResult unreadable(const DataFile& file) {
  bool unsupported = file.error->find("is not supported") != std::string::npos;
  return {unsupported ? Verdict::kUnsupported : Verdict::kFail, file.name + ": " + *file.error};
}

using InputSets = std::vector<std::vector<HostTensor>>;

// Nothing when the set passes. `worst`: the largest deviation of an output so far. `earlier`: inputs of the sets
// before in a sequence, to which this one's are added; null where each set is a run of its own.
std::optional<CaseResult> run_data_set(const CompiledCase& compiled, const DataSet& set,
                                       const Expectations& expectations, const CaseOptions& options,
                                       InputSets* earlier, Deviation* worst) {
  RunRequest request;
  request.bundle = compiled.bundle;
  request.device = options.device;
  request.runner = options.runner;
  request.folder = options.folder;
  request.scratch_dir = options.scratch_dir;
  request.timeout_seconds = options.timeout_seconds;
  if (earlier) request.earlier = *earlier;
  std::vector<BundleInput> inputs = inputs_of(compiled.bundle);
  std::vector<std::string> names;
  for (const BundleInput& input : inputs) names.push_back(input.name);
  std::vector<int> match = match_files(names, set.inputs);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (match[i] < 0) return failed(fmt::format("{}: no file for input '{}'", set.name, inputs[i].name));
    const DataFile& file = set.inputs[match[i]];
    if (file.error) return unreadable(file);
    request.inputs.push_back(typed_as(file.tensor, inputs[i].dtype));
    request.inputs.back().name = inputs[i].name;
  }
  if (earlier) earlier->push_back(request.inputs);
  auto result = run_bundle(request);
  if (auto* failure = std::get_if<RunFailure>(&result))
    return CaseResult{failure->unsupported ? Verdict::kUnsupported : Verdict::kFail,
                      set.name + ": " + failure->reason};
  const std::vector<HostTensor>& outputs = std::get<std::vector<HostTensor>>(result);

  if (set.outputs.size() != outputs.size())
    return failed(fmt::format("{}: expected a file for each of {} outputs, found {} files", set.name,
                              outputs.size(), set.outputs.size()));
  names.clear();
  for (const HostTensor& output : outputs) names.push_back(output.name);
  match = match_files(names, set.outputs);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const DataFile& file = set.outputs[match[i]];
    if (file.error) return unreadable(file);
    const HostTensor& found = outputs[i];
    // Of random numbers only the type is defined, as no two libraries draw the same.
    if (expectations.random.count(found.name) && file.tensor.shape == found.shape &&
        typed_as(file.tensor, found.dtype).dtype == found.dtype)
      continue;
    HostTensor expected = typed_as(file.tensor, found.dtype);
    Deviation deviation = deviation_of(expected, found);
    if (deviation.share >= worst->share) *worst = deviation;
    if (auto message = compare(expected, found, expectations.of(found.name, expected)))
      return CaseResult{Verdict::kFail, fmt::format("{}: output '{}': {}", set.name, found.name, *message),
                        true};
  }
  return std::nullopt;
}

}  // namespace

namespace {

CaseResult verify_as_compiled(const std::string& dir, const std::string& model, const CaseOptions& options) {
  Expected<std::optional<Json>> tolerances = read_tolerances(dir);
  if (!tolerances) return failed(one_line(tolerances.errors()[0]));
  std::vector<DataSet> sets = read_data_sets(dir);
  if (sets.empty()) {
    // Nothing to compare with: a model that must be refused, or a folder that lacks its data.
    Expected<CheckReport> checked = check(model, options.compile);
    if (!checked) return from_diagnostics(checked.errors());
    return failed("expected a folder test_data_set_0 beside the model");
  }
  if (Status named = set_signatures(sets, *tolerances, options.compile.signature); !named)
    return from_diagnostics(named.errors());
  const Precision precision = precision_of(options.compile, options.precision_limit);
  CaseCompiler compiler(model, options.compile, options.scratch_dir);
  std::set<std::string> fixed, kept;
  bool any_shape = true, all_fixed = true;
  std::set<std::string> random, fourier;
  Deviation worst;
  InputSets earlier;
  const bool sequence = is_sequence(*tolerances);
  for (DataSet& set : sets) {
    if (Status named = compiler.name_inputs(set); !named) return from_diagnostics(named.errors());
    Expected<const CompiledCase*> compiled = compiler.compile_for(set);
    if (!compiled) return from_diagnostics(compiled.errors());
    any_shape = any_shape && (*compiled)->any_shape;
    random.insert((*compiled)->random.begin(), (*compiled)->random.end());
    fourier.insert((*compiled)->fourier.begin(), (*compiled)->fourier.end());
    for (const auto& [name, value] : (*compiled)->fixed) fixed.insert(name);
    kept.insert((*compiled)->kept.begin(), (*compiled)->kept.end());
    std::erase_if(set.inputs,
                  [&](const DataFile& file) { return (*compiled)->fixed.count(file.tensor.name) > 0; });
    all_fixed = all_fixed && set.inputs.empty();
    Expectations expectations{*tolerances, (*compiled)->random, (*compiled)->fourier, precision};
    if (auto result =
            run_data_set(**compiled, set, expectations, options, sequence ? &earlier : nullptr, &worst))
      return *result;
  }
  std::string reason = fmt::format("{} data set{}", sets.size(), sets.size() == 1 ? "" : "s");
  if (any_shape) reason += ", any shape";
  if (precision.rounds())
    reason += fmt::format(", {}: off by {:.2g} at most, {:.2g} % of the largest element, {:.3g} % is allowed",
                          to_string(precision), worst.absolute, worst.share * 100, precision.share * 100);
  if (!fourier.empty() && !*tolerances)
    reason += fmt::format(", {} also to 1e-6 of the largest element", fmt::join(fourier, ", "));
  if (!random.empty())
    reason += fmt::format(", of the random {} type and shape only", fmt::join(random, ", "));
  if (!kept.empty()) reason += fmt::format(", the data's values for initializer {}", fmt::join(kept, ", "));
  if (!fixed.empty() && all_fixed)
    reason += fmt::format(", compiled with the values of all inputs ({}): nothing was computed from an input",
                          fmt::join(fixed, ", "));
  else if (!fixed.empty())
    reason += fmt::format(", compiled with the values of {}", fmt::join(fixed, ", "));
  return {Verdict::kPass, reason};
}

// The rounding with which a quantized TensorFlow Lite model gives the data that it does not give as compiled.
std::optional<IntegerRounding> rounding_of_data(const std::string& dir, const std::string& model,
                                                const CaseOptions& options) {
  Expected<Imported> imported = import_model(model, options.compile);
  if (!imported || !imported->rounding) return std::nullopt;
  for (IntegerRounding rounding : kIntegerRoundings) {
    if (rounding == *imported->rounding) continue;
    CaseOptions other = options;
    other.compile.rounding = rounding;
    if (verify_as_compiled(dir, model, other).verdict == Verdict::kPass) return rounding;
  }
  return std::nullopt;
}

}  // namespace

CaseResult verify_case(const std::string& dir, const CaseOptions& options) {
  const std::string model = model_in(dir).value_or(dir + "/model.onnx");
  CaseResult result = verify_as_compiled(dir, model, options);
  if (!result.differs) return result;
  if (std::optional<IntegerRounding> rounding = rounding_of_data(dir, model, options))
    result.reason +=
        fmt::format("; the data have rounding {0}: compile with --rounding {0}", to_string(*rounding));
  return result;
}

}  // namespace quernel::tools
