#include "test_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "case_compiler.h"
#include "command.h"
#include "diverging_layer.h"
#include "firmware_tests.h"
#include "input_values.h"
#include "opened_bundle.h"
#include "quernel/runtime.h"
#include "reference_outputs.h"
#include "run_bundle.h"
#include "test_report.h"
#include "test_vectors.h"

namespace quernel::tools {
namespace {

using tensor_file::HostTensor;

std::string folder_of(const std::string& file) {
  std::string folder = std::filesystem::path(file).parent_path().string();
  return folder.empty() ? "." : folder;
}

// Unsupported only when that is all that the compiler says.
Json from_diagnostics(const Diagnostics& diagnostics) {
  bool unsupported;
  const Diagnostic& first = telling(diagnostics, &unsupported);
  return verdict_json(unsupported ? "UNSUPPORTED" : "FAIL", one_line(first));
}

// One bundle on the device.
Expected<Json> run_tests_of(const std::string& bundle, const TestCaseOptions& options) {
  Transport& device = options.runner->transport();
  QUERNEL_TRY(std::string there, device.put(bundle, options.folder + "/" + file_name(bundle), false));
  std::string output = options.scratch_dir + "/tests.json", errors = options.scratch_dir + "/runner.log";
  std::vector<std::string> words = {there, "--test", "--json", "--repeat", std::to_string(options.repeat)};
  for (std::string& word : run_arguments(options.device)) words.push_back(std::move(word));
  ProcessResult done = options.runner->run(
      words, {.output = output, .errors = errors, .timeout_seconds = options.timeout_seconds});
  device.remove(options.folder + "/" + file_name(bundle));
  std::ifstream file(output);
  std::stringstream text;
  text << file.rdbuf();
  bool ended = done.started && (done.exit_code == 0 || done.exit_code == 1);
  Expected<Json> json = ended && !text.str().empty() ? parse_json(text.str(), "the runner's output")
                                                     : Expected<Json>(invalid_input(done.failure()));
  if (!json && done.succeeded()) return json.take_errors();
  if (!json || json->find("tests") == nullptr || json->at("tests").array().empty()) {
    done.last_words = last_line_of(errors);
    return invalid_input(done.failure());
  }
  return json;
}

// What a model was compiled into, with the data sets that each is for.
struct Tested {
  const CompiledCase* compiled;
  Signature signature;
  std::vector<bundle::TestVector> tests;
};

Expected<Tested> tested(const CompiledCase* compiled) {
  if (compiled->report.program) return Tested{compiled, signature_of(*compiled->report.program), {}};
  QUERNEL_TRY(std::unique_ptr<OpenedBundle> open, open_bundle(compiled->bundle, false));
  return Tested{compiled, signature_of(open->contents, 0), {}};
}

bool has_states(const std::vector<Tested>& all) {
  return std::any_of(all.begin(), all.end(), [](const Tested& t) { return !t.signature.states.empty(); });
}

std::string with_tests_file(size_t index, const TestCaseOptions& options) {
  return fmt::format("{}/with-tests-{}.qnl", options.scratch_dir, index);
}

Expected<Json> run_tested(const Tested& tested, size_t index, bool sequence, const TestCaseOptions& options) {
  if (options.board != nullptr)
    return run_firmware_tests(*options.board,
                              {tested.compiled->report, folder_of(tested.compiled->bundle),
                               options.compile.targets[0], options.per_kernel},
                              tested.tests, sequence, options.timeout_seconds);
  std::string with_tests = with_tests_file(index, options);
  QUERNEL_CHECK(write_with_tests(tested.compiled->bundle, tested.tests, with_tests));
  return run_tests_of(with_tests, options);
}

Json packed(int tests, Json::Array bundles) {
  Json result = verdict_json("KIT", fmt::format("{} test vector{}", tests, tests == 1 ? "" : "s"));
  result.set("bundles", std::move(bundles));
  return result;
}

Expected<Json> pack_tested(const std::vector<Tested>& all, const TestCaseOptions& options) {
  Json::Array bundles;
  size_t tests = 0;
  for (const Tested& tested : all) {
    bundles.push_back(with_tests_file(bundles.size(), options));
    QUERNEL_CHECK(write_with_tests(tested.compiled->bundle, tested.tests, bundles.back().text()));
    tests += tested.tests.size();
  }
  return packed(static_cast<int>(tests), std::move(bundles));
}

Expected<Json> pack_bundle(const std::string& bundle, const TestCaseOptions& options) {
  QUERNEL_TRY(std::unique_ptr<OpenedBundle> open, open_bundle(bundle, true));
  size_t tests = open->contents.test_vectors.size();
  if (tests == 0)
    return invalid_input("expected test vectors, found none", {.file = bundle},
                         "quernel compile --embed-tests stores some");
  std::string copy = with_tests_file(0, options);
  QUERNEL_CHECK(write_with_tests(bundle, open->contents.test_vectors, copy));
  return packed(static_cast<int>(tests), {copy});
}

// Runs the model that gives every node's result.
Expected<std::vector<HostTensor>> run_layers(const CompileReport& report, const std::string& file,
                                             const std::vector<HostTensor>& inputs,
                                             const TestCaseOptions& options) {
  if (options.board == nullptr) {
    auto result = run_bundle({file, inputs, options.device, options.runner, options.folder,
                              options.scratch_dir, options.timeout_seconds});
    if (auto* failure = std::get_if<RunFailure>(&result)) return invalid_input(failure->reason);
    return std::get<std::vector<HostTensor>>(std::move(result));
  }
  std::vector<HostTensor> ordered;
  for (const StaticTensorReport& tensor : report.program->inputs)
    for (const HostTensor& input : inputs)
      if (input.name == tensor.name) ordered.push_back(input);
  QUERNEL_CHECK(options.board->build(*report.program, folder_of(file)));
  QUERNEL_TRY(FirmwareRun run,
              options.board->run(*report.program, folder_of(file), {ordered}, options.timeout_seconds));
  return std::move(run.outputs);
}

// `kept`: initializers that are inputs.
Json diverging_layer(const std::string& model, const DataSet& set, const std::vector<std::string>& kept,
                     const TestCaseOptions& options) {
  CompileOptions compile = options.compile;
  compile.declared_shapes_yield = true;
  compile.signature = set.signature;
  compile.keep_inputs = kept;
  std::vector<HostTensor> inputs;
  for (const DataFile& file : set.inputs) {
    if (file.error) continue;
    compile.input_shapes.emplace(file.tensor.name, file.tensor.shape);
    compile.input_values.emplace(file.tensor.name, to_tensor(file.tensor));
    inputs.push_back(file.tensor);
  }
  std::string output = options.scratch_dir + "/layers.qnl";
  if (options.board != nullptr) {
    std::error_code error;
    std::filesystem::create_directory(options.scratch_dir + "/layers", error);
    output = fmt::format("{}/layers/{}", options.scratch_dir, kFirmwareStem);
  }
  DivergingLayer layer =
      find_diverging_layer(model, compile, inputs, output,
                           [&](const CompileReport& report, const std::vector<HostTensor>& values) {
                             return run_layers(report, output, values, options);
                           });
  return Json::Object{
      {"found", layer.found}, {"node", layer.node}, {"op", layer.op}, {"message", layer.message}};
}

Expected<Json> test_model(const std::string& model, const TestCaseOptions& options) {
  std::string dir = folder_of(model);
  std::vector<DataSet> sets = read_data_sets(dir);
  if (sets.empty())
    return invalid_input("expected a folder test_data_set_0 beside the model", {.file = model});
  Expectations expectations;
  QUERNEL_TRY(expectations.tolerances, read_tolerances(dir));
  expectations.precision = precision_of(options.compile);
  QUERNEL_CHECK(set_signatures(sets, expectations.tolerances, options.compile.signature));
  CaseCompiler compiler(model, options.compile, options.scratch_dir);
  std::optional<ReferenceOutputs> reference;
  if (options.compile.random_weights) reference.emplace(model, options.compile, options.scratch_dir);
  std::vector<Tested> all;
  for (DataSet& set : sets) {
    QUERNEL_CHECK(compiler.name_inputs(set));
    QUERNEL_TRY(const CompiledCase* compiled, compiler.compile_for(set));
    std::set<std::string> random = compiled->random;
    if (reference) {
      QUERNEL_TRY(ReferenceOutputs::Names names, reference->replace(set));
      random.insert(names.not_compared.begin(), names.not_compared.end());
      expectations.tolerances = std::move(names.tolerances);
    }
    auto it = std::find_if(all.begin(), all.end(), [&](const Tested& t) { return t.compiled == compiled; });
    if (it == all.end()) {
      QUERNEL_TRY(Tested first, tested(compiled));
      all.push_back(std::move(first));
      it = all.end() - 1;
    }
    expectations.random = std::move(random);
    expectations.fourier = compiled->fourier;
    QUERNEL_TRY(bundle::TestVector test, make_test_vector(set, it->signature, compiled->fixed, expectations));
    it->tests.push_back(std::move(test));
  }
  const bool sequence = is_sequence(expectations.tolerances);
  if (sequence && (options.board == nullptr ? has_states(all) && sets.size() > 1 : all.size() > 1))
    return unsupported("data sets that are one sequence of runs are not supported here", {.file = model},
                       "test them with quernel verify, or on a board");
  if (options.packs) return pack_tested(all, options);
  Json::Array runs;
  for (const Tested& t : all) {
    QUERNEL_TRY(Json run, run_tested(t, runs.size(), sequence, options));
    runs.push_back(std::move(run));
  }
  RunsSummary summary = summarize(runs);
  Json result = result_of_runs(std::move(runs));
  for (const DataSet& set : sets)
    if (summary.failed > 0 && !summary.unsupported && set.name == summary.first_failed_test)
      result.set("diverging_layer", diverging_layer(model, set, compiler.kept_in(set), options));
  return result;
}

}  // namespace

Json run_test_case(const TestSubject& subject, const TestCaseOptions& options) {
  if (!subject.model.empty()) {
    Expected<Json> result = test_model(subject.model, options);
    return result ? std::move(*result) : from_diagnostics(result.errors());
  }
  if (options.packs) {
    Expected<Json> result = pack_bundle(subject.bundle, options);
    return result ? std::move(*result) : from_diagnostics(result.errors());
  }
  Expected<Json> run = run_tests_of(subject.bundle, options);
  return run ? result_of_runs({std::move(*run)}) : from_diagnostics(run.errors());
}

}  // namespace quernel::tools
