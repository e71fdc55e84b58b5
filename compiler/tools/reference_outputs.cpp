#include "reference_outputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "run_bundle.h"
#include "tolerance.h"

namespace quernel::tools {
namespace {

using tensor_file::HostTensor;

constexpr double kOfElement = 1e-3, kOfLargest = 1e-4;

std::string folder_in(const std::string& scratch_dir) {
  std::error_code error;
  std::filesystem::create_directory(scratch_dir + "/reference", error);
  return scratch_dir + "/reference";
}

CompileOptions for_this_machine(CompileOptions options) {
  options.targets = {"native"};
  options.tuning_file.clear();
  options.device_profile.clear();
  options.place.clear();
  return options;
}

Expected<std::vector<HostTensor>> run(const CompiledCase& compiled, const DataSet& set) {
  RunRequest request;
  request.bundle = compiled.bundle;
  std::vector<BundleInput> inputs = inputs_of(compiled.bundle);
  std::vector<std::string> names;
  for (const BundleInput& input : inputs) names.push_back(input.name);
  std::vector<int> match = match_files(names, set.inputs);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (match[i] < 0)
      return invalid_input(fmt::format("{}: no file for input '{}'", set.name, inputs[i].name));
    const DataFile& file = set.inputs[static_cast<size_t>(match[i])];
    if (file.error) return invalid_input(fmt::format("{}: {}", file.name, *file.error));
    request.inputs.push_back(tensor_file::typed_as(file.tensor, inputs[i].dtype));
    request.inputs.back().name = inputs[i].name;
  }
  auto result = run_bundle(request);
  if (auto* failure = std::get_if<RunFailure>(&result))
    return invalid_input(
        fmt::format("{}, with random weights on this machine: {}", set.name, failure->reason));
  return std::get<std::vector<HostTensor>>(std::move(result));
}

}  // namespace

ReferenceOutputs::ReferenceOutputs(const std::string& model, CompileOptions options,
                                   const std::string& scratch_dir)
    : scratch_dir_(folder_in(scratch_dir)),
      compiler_(model, for_this_machine(std::move(options)), scratch_dir_) {}

Expected<ReferenceOutputs::Names> ReferenceOutputs::replace(DataSet& set) {
  QUERNEL_TRY(const CompiledCase* compiled, compiler_.compile_for(set));
  QUERNEL_TRY(std::vector<HostTensor> outputs, run(*compiled, set));
  Names names;
  Json::Object tolerances;
  set.outputs.clear();
  for (HostTensor& output : outputs) {
    double of_element = std::max(kOfElement, tolerance_of(nullptr, output.name, output.dtype).rtol);
    if (!tensor_file::is_float(output.dtype) || compiled->random.count(output.name))
      names.not_compared.insert(output.name);
    else
      tolerances.emplace_back(
          output.name,
          Json::Object{{"rtol", of_element}, {"atol", tensor_file::largest_of(output) * kOfLargest}});
    set.outputs.push_back({output.name, "", std::move(output), std::nullopt});
  }
  if (tolerances.empty())
    return unsupported(
        fmt::format("{}: with random weights expected an output of floats, found none", set.name));
  names.tolerances = Json::Object{{"outputs", std::move(tolerances)}};
  return names;
}

}  // namespace quernel::tools
