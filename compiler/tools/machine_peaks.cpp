#include "machine_peaks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "bundle/write_bundle.h"
#include "codegen/llvm/compile_kernels.h"
#include "command.h"
#include "feature_names.h"
#include "loop/parse.h"
#include "pipeline/pipeline.h"
#include "quernel/runtime.hpp"

namespace quernel::tools {
namespace {

constexpr int kGroupsPerThread = 4;  // workgroups
constexpr int kSteps = 20000;        // of a chain of multiply-adds
constexpr int kSweeps = 8;           // over what lies near, in a run
constexpr int kFewestRuns = 3;
constexpr double kRunSeconds = 0.05;  // for each roof

// A kernel with one input of f32 and one output; `work` counts operations, or bytes read, of a run.
struct Probe {
  std::string text;
  int64_t groups = 0, input = 0, output = 0;  // workgroups; elements
  double work = 0;
};

// What a lane of 32 bits computes in each step of a chain.
struct ChainStep {
  const char* name;
  const char* a_type;  // of the factors
  const char* b_type;
  const char* sum_type;
  const char* expression;  // of the sum {sum} and the factors %a[m] and %b[m]
  const char* next_b;      // of %b[c], for the next step
  double work;             // operations of a lane
};

constexpr ChainStep kFloatStep = {"multiply_adds", "f32", "f32", "f32", "mulacc({sum}, %a[m], %b[m])",
                                  "%b[c]",         2};
// Words of four bytes. Factors change with every step, or targets that multiply and add by two instructions
// would multiply once.
constexpr ChainStep kMixedByteStep = {"byte_products", "u32", "i32", "i32", "dot(%a[m], %b[m], {sum})",
                                      "%b[c] + 1i32",  8};
constexpr ChainStep kSignedByteStep = {"byte_products", "i32", "i32", "i32", "dot(%a[m], %b[m], {sum})",
                                       "%b[c] + 1i32",  8};

// Independent chains of multiply-adds, as many as the latency of the pipes asks for.
Probe multiply_adds(const ChainStep& step, const Target& target, int threads) {
  int lanes = target.lanes(4), chains = std::min(12, target.vector_registers - 4);
  Probe p;
  p.groups = int64_t{threads} * kGroupsPerThread;
  p.input = int64_t{lanes} * chains;
  p.output = p.groups * p.input;
  p.work = step.work * static_cast<double>(p.output) * kSteps;
  std::string sum = fmt::format("%acc[j * {} + m]", lanes);
  p.text = fmt::format(
      R"(kernel @{name} grid(wg: {groups}) {{
  buffer %x: f32[{size}] read binding 0
  buffer %y: f32[{outputs}] write binding 1
  alloc %acc: {sum_type}[{size}] register
  alloc %a: {a_type}[{lanes}] register
  alloc %b: {b_type}[{lanes}] register
  for f in vector({lanes}) {{
    %a[f] = cast({a_type}, %x[f])
    %b[f] = cast({b_type}, %x[f])
  }}
  for i in unrolled({chains}) {{
    for l in vector({lanes}) {{
      %acc[i * {lanes} + l] = cast({sum_type}, %x[i * {lanes} + l])
    }}
  }}
  for k in reduction({steps}) {{
    for j in unrolled({chains}) {{
      for m in vector({lanes}) {{
        {sum} = {next}
      }}
    }}
    for c in vector({lanes}) {{
      %b[c] = {next_b}
    }}
  }}
  for o in unrolled({chains}) {{
    for n in vector({lanes}) {{
      %y[wg * {size} + o * {lanes} + n] = cast(f32, %acc[o * {lanes} + n])
    }}
  }}
}}
)",
      fmt::arg("name", step.name), fmt::arg("groups", p.groups), fmt::arg("size", p.input),
      fmt::arg("outputs", p.output), fmt::arg("a_type", step.a_type), fmt::arg("b_type", step.b_type),
      fmt::arg("sum_type", step.sum_type), fmt::arg("lanes", lanes), fmt::arg("chains", chains),
      fmt::arg("steps", kSteps), fmt::arg("sum", sum), fmt::arg("next_b", step.next_b),
      fmt::arg("next", fmt::format(fmt::runtime(step.expression), fmt::arg("sum", sum))));
  return p;
}

// Sums of `bytes`, a share for each workgroup, `sweeps` times over. A workgroup reads the halves of its share side by
// side, since hardware prefetchers follow two streams faster than one.
Probe reads(const char* name, const Target& target, int64_t groups, int64_t bytes, int sweeps) {
  int lanes = target.lanes(4), chains = 8;
  int64_t step = int64_t{lanes} * chains, half = chains / 2,
          steps = std::max<int64_t>(1, bytes / 4 / groups / step);
  Probe p;
  p.groups = groups;
  p.input = groups * steps * step;
  p.output = groups * step;
  p.work = 4.0 * static_cast<double>(p.input) * sweeps;
  p.text = fmt::format(
      R"(kernel @{name} grid(wg: {groups}) {{
  buffer %x: f32[{inputs}] read binding 0
  buffer %y: f32[{outputs}] write binding 1
  alloc %acc: f32[{step}] register
  for i in unrolled({chains}) {{
    for l in vector({lanes}) {{
      %acc[i * {lanes} + l] = 0f32
    }}
  }}
  for s in reduction({sweeps}) {{
    for k in reduction({steps}) {{
      for h in unrolled(2) {{
        for j in unrolled({half}) {{
          for m in vector({lanes}) {{
            %acc[(h * {half} + j) * {lanes} + m] = %acc[(h * {half} + j) * {lanes} + m] + %x[((wg * 2 + h) * {steps} + k) * {half_step} + j * {lanes} + m]
          }}
        }}
      }}
    }}
  }}
  for o in unrolled({chains}) {{
    for n in vector({lanes}) {{
      %y[wg * {step} + o * {lanes} + n] = %acc[o * {lanes} + n]
    }}
  }}
}}
)",
      fmt::arg("name", name), fmt::arg("groups", groups), fmt::arg("inputs", p.input),
      fmt::arg("outputs", p.output), fmt::arg("lanes", lanes), fmt::arg("chains", chains),
      fmt::arg("half", half), fmt::arg("step", step), fmt::arg("half_step", step / 2),
      fmt::arg("steps", steps), fmt::arg("sweeps", sweeps));
  return p;
}

// One entry point for each probe.
Status write_probes(const std::vector<Probe>& probes, const Target& target, const std::string& path) {
  std::vector<loop::Kernel> kernels;
  for (const Probe& probe : probes) {
    QUERNEL_TRY(loop::Kernel kernel, loop::parse_kernel(probe.text));
    QUERNEL_CHECK(run_loop_passes({&kernel}, {}));
    kernels.push_back(std::move(kernel));
  }
  QUERNEL_TRY(codegen::Image image, codegen::compile_kernels(kernels, target, {}));
  bundle::BundleContents contents;
  contents.producer = "quernel bench";
  bundle::Variant& variant = contents.variants.emplace_back();
  variant.target = target.name;
  variant.arch = target.arch;
  variant.required_features = target.required_features;
  variant.code.resize(image.code.size());
  std::memcpy(variant.code.data(), image.code.data(), image.code.size());
  for (size_t k = 0; k < probes.size(); ++k)
    variant.kernels.push_back(
        {image.kernel_names[k], image.scratch_bytes[k], static_cast<uint32_t>(image.stack_bytes[k])});
  for (size_t k = 0; k < probes.size(); ++k) {
    bundle::EntryPoint& entry = contents.entry_points.emplace_back();
    entry.name = image.kernel_names[k];
    bundle::Item item;
    item.kernel = static_cast<uint32_t>(k);
    item.workgroups = static_cast<uint64_t>(probes[k].groups);
    for (bool write : {false, true}) {
      int64_t count = write ? probes[k].output : probes[k].input;
      bundle::Tensor tensor;
      tensor.name = write ? "y" : "x";
      tensor.shape = {count};
      tensor.bytes = static_cast<uint64_t>(count) * 4;
      tensor.arena = static_cast<uint32_t>(contents.arenas.size());
      bundle::Arena& arena = contents.arenas.emplace_back();
      arena.name = entry.name + "." + tensor.name;
      arena.kind = write ? bundle::ArenaKind::kOutput : bundle::ArenaKind::kInput;
      arena.bytes = tensor.bytes;
      item.bindings.push_back(
          {tensor.arena, write ? bundle::Access::kWrite : bundle::Access::kRead, 0, tensor.bytes});
      (write ? entry.outputs : entry.inputs).push_back(std::move(tensor));
    }
    entry.plans.push_back({0, {std::move(item)}, ""});
  }
  Expected<bundle::BundleSizes> written = bundle::write_bundle(contents, path);
  if (!written) return written.take_errors();
  return {};
}

// Work per second of the best run.
Expected<double> run_probe(const Bundle& bundle, const Device& device, const char* entry,
                           const Probe& probe) {
  qnl_error error;
  Session session;
  qnl_session_options options = {};
  options.entry_point = entry;
  qnl_tensor input;
  if (session.create(bundle, device, &options, &error) != QNL_OK ||
      session.tensor(QNL_INPUT, "x", &input, &error) != QNL_OK)
    return internal_error(error.text);
  // Every page has memory of its own; x -> x / 2 + 1 / 4 stays where it is.
  std::fill_n(static_cast<float*>(input.data), probe.input, 0.5F);
  double best = 0, begin = now_seconds();
  for (int i = 0; i < kFewestRuns || now_seconds() - begin < kRunSeconds; ++i) {
    double start = now_seconds();
    if (session.run(&error) != QNL_OK) return internal_error(error.text);
    best = std::max(best, probe.work / (now_seconds() - start));
  }
  return best;
}

}  // namespace

Expected<MachinePeaks> measure_peaks(const Target& target, int threads, uint64_t far_footprint,
                                     const std::string& scratch_dir) {
  int64_t near = target.l2_bytes / 2 * threads, groups = int64_t{threads} * kGroupsPerThread;
  int64_t far = static_cast<int64_t>(std::min(far_footprint, kLargestFootprint));
  const ChainStep& bytes = target.has_dot(false, true) ? kMixedByteStep : kSignedByteStep;
  const std::vector<Probe> probes = {multiply_adds(kFloatStep, target, threads),
                                     multiply_adds(bytes, target, threads),
                                     reads("near_reads", target, threads, near, kSweeps),
                                     reads("far_reads", target, groups, std::max(near, far), 1)};
  std::string path = scratch_dir + "/peaks.qnl";
  QUERNEL_CHECK(write_probes(probes, target, path));
  qnl_error error;
  Bundle bundle;
  Device device;
  if (bundle.open(path.c_str(), nullptr, &error) != QNL_OK ||
      device.open_cpu(static_cast<uint32_t>(threads), &error) != QNL_OK)
    return internal_error(error.text);
  MachinePeaks peaks;
  QUERNEL_TRY(peaks.flops, run_probe(bundle, device, "multiply_adds", probes[0]));
  QUERNEL_TRY(peaks.byte_ops, run_probe(bundle, device, "byte_products", probes[1]));
  QUERNEL_TRY(peaks.near_bytes, run_probe(bundle, device, "near_reads", probes[2]));
  QUERNEL_TRY(peaks.far_bytes, run_probe(bundle, device, "far_reads", probes[3]));
  return peaks;
}

}  // namespace quernel::tools
