#include "firmware_tests.h"

#include <fmt/format.h>

#include <algorithm>

#include "tensor_file_compare.h"

namespace quernel::tools {
namespace {

using tensor_file::HostTensor;

HostTensor value_of(const StaticTensorReport& tensor, const bundle::TestTensor& value) {
  return {tensor.name, static_cast<qnl_dtype>(tensor.dtype), value.shape, value.value};
}

// Whether all are right; what is off is added to `results`.
bool compare_outputs(const StaticReport& program, const bundle::TestVector& test, const FirmwareRun& run,
                     Json::Array& results) {
  bool right = true;
  for (const bundle::TestTensor& value : test.tensors) {
    if (!value.output) continue;
    const StaticTensorReport& output = program.outputs[value.tensor];
    HostTensor expected = value_of(output, value);
    const HostTensor& found = run.outputs[value.tensor];
    tensor_file::Tolerance tolerance{.rtol = value.tolerance.rtol, .atol = value.tolerance.atol};
    tolerance.top1 = value.tolerance.top1;
    tolerance.max_share = value.tolerance.max_share;
    if (value.tolerance.mean_atol >= 0) tolerance.mean_atol = value.tolerance.mean_atol;
    std::string message = compare(expected, found, tolerance).value_or("");
    tensor_file::Deviation deviation = deviation_of(expected, found);
    right &= message.empty();
    results.push_back(Json::Object{{"name", output.name},
                                   {"max_abs_error", deviation.absolute},
                                   {"share_of_largest", deviation.share},
                                   {"message", std::move(message)}});
  }
  return right;
}

// Empty: no more memory is used than the compiler says.
std::string memory_error(const FirmwareRun& run) {
  for (const FirmwareMemory& memory : run.memory)
    if (memory.used > memory.bytes)
      return fmt::format("used {} bytes of {}, the header says {}", memory.used, memory.name, memory.bytes);
  return "";
}

std::vector<HostTensor> inputs_of(const StaticReport& program, const bundle::TestVector& test) {
  std::vector<HostTensor> inputs(program.inputs.size());
  for (const bundle::TestTensor& value : test.tensors)
    if (!value.output) inputs[value.tensor] = value_of(program.inputs[value.tensor], value);
  return inputs;
}

// Of kernels that a run called, the one with most instructions first.
Json::Array kernels_of(const StaticReport& program, const FirmwareRun& run) {
  std::vector<size_t> order;
  for (size_t k = 0; k < run.kernels.size(); ++k)
    if (run.kernels[k].calls > 0) order.push_back(k);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return run.kernels[a].instructions > run.kernels[b].instructions;
  });
  Json::Array kernels;
  for (size_t k : order) {
    const StaticKernelReport& kernel = program.kernels[k];
    const FirmwareKernel& counts = run.kernels[k];
    // A place in a loop calls several times, one in a branch perhaps never.
    uint64_t multiply_adds = kernel.multiply_adds * counts.calls / kernel.calls;
    kernels.push_back(Json::Object{{"name", kernel.name},
                                   {"node", kernel.nodes.empty() ? "" : kernel.nodes[0]},
                                   {"nodes", kernel.nodes.size()},
                                   {"class", kernel.kernel_class},
                                   {"choice", kernel.choice},
                                   {"calls", counts.calls},
                                   {"instructions", counts.instructions},
                                   {"multiply_adds", multiply_adds}});
  }
  return kernels;
}

// `runs`: inputs of the tests before, in a sequence, and of this one.
Json run_test(const FirmwareBoard& board, const FirmwareSubject& subject, const bundle::TestVector& test,
              const std::vector<std::vector<HostTensor>>& runs, double timeout_seconds) {
  const StaticReport& program = *subject.report.program;
  Json::Object result{{"name", test.name},
                      {"entry", ""},
                      {"target", subject.target},
                      {"board", board.name()},
                      {"board_core", board.core()}};
  Expected<FirmwareRun> run = board.run(program, subject.folder, runs, timeout_seconds);
  std::string error = run ? memory_error(*run) : run.errors()[0].message;
  Json::Array kernels;
  if (run && subject.per_kernel) {
    Expected<FirmwareRun> counted =
        board.run(program, subject.folder, runs, timeout_seconds, FirmwareProgram::kCountsKernels);
    if (counted)
      kernels = kernels_of(program, *counted);
    else if (error.empty())
      error = "where kernels are counted: " + counted.errors()[0].message;
  }
  Json::Array outputs, memory;
  bool right = run && compare_outputs(program, test, *run, outputs) && error.empty();
  if (run)
    for (const FirmwareMemory& m : run->memory)
      memory.push_back(Json::Object{{"name", m.name}, {"used_bytes", m.used}, {"bytes", m.bytes}});
  result.emplace_back("passed", right);
  result.emplace_back("error", std::move(error));
  if (run) {
    result.emplace_back("instructions", run->instructions);
    result.emplace_back("instruction_step", run->instruction_step);
    result.emplace_back("multiply_adds", subject.report.multiply_adds);
    if (subject.per_kernel) result.emplace_back("kernels", std::move(kernels));
  }
  result.emplace_back("memory", std::move(memory));
  result.emplace_back("outputs", std::move(outputs));
  return result;
}

}  // namespace

Expected<Json> run_firmware_tests(const FirmwareBoard& board, const FirmwareSubject& subject,
                                  const std::vector<bundle::TestVector>& tests, bool sequence,
                                  double timeout_seconds) {
  QUERNEL_CHECK(board.build(*subject.report.program, subject.folder));
  if (subject.per_kernel)
    QUERNEL_CHECK(board.build(*subject.report.program, subject.folder, FirmwareProgram::kCountsKernels));
  Json::Array results;
  std::vector<std::vector<HostTensor>> runs;
  for (const bundle::TestVector& test : tests) {
    if (!sequence) runs.clear();
    runs.push_back(inputs_of(*subject.report.program, test));
    results.push_back(run_test(board, subject, test, runs, timeout_seconds));
  }
  return Json(Json::Object{{"tests", std::move(results)}});
}

}  // namespace quernel::tools
