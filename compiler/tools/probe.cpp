// quernel probe: measures a Vulkan device and writes its profile, the facts that compile --device-profile
// takes; or writes the kernels that show its peaks, for a machine without this tool.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>

#include "command.h"
#include "device_runner.h"
#include "peak_kernels.h"
#include "quernel/compiler.h"
#include "scratch_dir.h"
#include "support/progress.h"
#include "targets/device_profile.h"
#include "timing.h"

namespace quernel::tools {
namespace {

struct Options {
  run::DeviceChoice device{.device = "vulkan"};
  std::string output, kernels;
};

constexpr int kRuns = 7, kChain = 33;
constexpr double kLongSeconds = 2;
constexpr int64_t kSide = 1024, kElements = 8 << 20;
// Of --kernels: enough to fill the largest GPUs, and to miss their caches, in tenths of a second on the smallest.
constexpr int64_t kGroups = 4096, kReadBytes = 120 << 20;
constexpr int kSteps = 2048;

// Matrix products of two inputs, each of the one before: kernels that wait for one another.
std::string products(int64_t side, int count) {
  std::string type = fmt::format("f32[{},{}]", side, side);
  std::string text = fmt::format("graph @products(%a: {}, %b: {}) {{\n", type, type), last = "%a";
  for (int i = 1; i <= count; ++i) {
    text += fmt::format(
        "  %{} = contract {}, %b axes(m: {}, n: {} | k: {}) a[m, k] b[k, n] out[m, n] acc f32 : {}\n", i,
        last, side, side, side, type);
    last = "%" + std::to_string(i);
  }
  return text + "  return y = " + last + "\n}\n";
}

std::string negation(int64_t elements) {
  return fmt::format("graph @negation(%x: f32[{}]) {{\n  %1 = neg %x : f32[{}]\n  return y = %1\n}}\n",
                     elements, elements);
}

struct Times {
  double run = 0, items = 0;  // seconds; of a whole run, of its kernels together
};

// The fastest of several runs, fewer where they take long.
Expected<Times> time(const std::string& graph, const Device& device, const std::string& folder) {
  std::string model = folder + "/probe.qg", bundle = folder + "/probe.qnl";
  if (!(std::ofstream(model) << graph)) return invalid_input("cannot write to '" + folder + "'");
  CompileOptions options;
  options.targets = {"vulkan"};
  QUERNEL_TRY(CompileReport report, compile(model, bundle, options));
  QUERNEL_TRY(std::unique_ptr<ReadyBundle> ready, make_ready(bundle, device, "", {}));
  Times best{1e9, 1e9};
  qnl_error error;
  double begin = now_seconds();
  for (int i = 0; i < kRuns && (i == 0 || now_seconds() - begin < kLongSeconds); ++i) {
    double start = now_seconds();
    if (ready->session.run(&error) != QNL_OK) return runtime_error(error);
    best.run = std::min(best.run, now_seconds() - start);
    QUERNEL_TRY(std::vector<double> items, time_items(ready->session));
    double sum = 0;
    for (double seconds : items) sum += seconds;
    best.items = std::min(best.items, sum);
  }
  return best;
}

// vulkan with all optional features among these.
std::string best_target(uint64_t features) {
  std::string name = "vulkan";
  for (std::string_view feature : optional_features(*find_target(name))) {
    std::string wider = name + "+" + std::string(feature);
    if ((find_target(wider)->required_features & ~features) == 0) name = wider;
  }
  return name;
}

Expected<Target> measure(const Device& device, const std::string& folder) {
  QUERNEL_TRY(Target target, find_target("vulkan"));
  QUERNEL_TRY(Times product, time(products(kSide, 1), device, folder));
  QUERNEL_TRY(Times large, time(negation(kElements), device, folder));
  QUERNEL_TRY(Times small, time(negation(64), device, folder));
  QUERNEL_TRY(Times chain, time(products(16, kChain), device, folder));
  QUERNEL_TRY(Times link, time(products(16, 1), device, folder));
  constexpr double kShortest = 1e-9;  // what clocks cannot tell from nothing
  target.flops_per_second = 2.0 * kSide * kSide * kSide / std::max(product.items, kShortest);
  target.memory_bytes_per_second = 2.0 * 4 * kElements / std::max(large.items, kShortest);
  target.dispatch_seconds = std::max((chain.run - link.run) / (kChain - 1), 0.0);
  target.transfer_seconds = small.run;
  target.transfer_bytes_per_second =
      2.0 * 4 * kElements / std::max(large.run - large.items - small.run, kShortest);
  return target;
}

// Writes bundles that quernel-run times: kernels in registers and those that read, for each target that has other
// instructions for them, and the graphs that `measure` runs.
Status write_kernels(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return invalid_input("--kernels: " + error.message(), {.file = folder});
  for (const char* name : {"vulkan", "vulkan+dotprod"}) {
    QUERNEL_TRY(Target target, find_target(name));
    QUERNEL_CHECK(
        write_peak_kernels({multiply_adds(target, kGroups, kSteps), byte_products(target, kGroups, kSteps),
                            reads("reads", target, kGroups, kReadBytes, 1)},
                           target, fmt::format("{}/peaks-{}.qnl", folder, name)));
  }
  constexpr int kMatrixProducts = 64;
  for (auto [name, dtype] : {std::pair{"vulkan+coopmat", DType::kF16},
                             {"vulkan+coopmat-int8", DType::kI8},
                             {"vulkan+coopmat-bf16", DType::kBF16}}) {
    QUERNEL_TRY(Target target, find_target(name));
    QUERNEL_CHECK(write_peak_kernels({matrix_products(target, dtype, kGroups, kMatrixProducts)}, target,
                                     fmt::format("{}/peaks-{}.qnl", folder, name)));
  }
  const std::pair<const char*, std::string> graphs[] = {{"copies", negation(kReadBytes / 4)},
                                                        {"transfer", negation(64)},
                                                        {"chain", products(16, kChain)},
                                                        {"link", products(16, 1)}};
  CompileOptions options;
  options.targets = {"vulkan"};
  for (const auto& [name, graph] : graphs) {
    std::string model = fmt::format("{}/{}.qg", folder, name);
    QUERNEL_CHECK(write_text_file(model, graph));
    Expected<CompileReport> report = compile(model, fmt::format("{}/{}.qnl", folder, name), options);
    std::filesystem::remove(model, error);
    if (!report) return report.take_errors();
  }
  return {};
}

int run(const Options& options) {
  if (!options.kernels.empty()) {
    if (Status status = write_kernels(options.kernels); !status) return fail(status.errors());
    return kOk;
  }
  ScratchDir scratch;
  if (scratch.path().empty())
    return fail(invalid_input("cannot create a temporary directory; set TMPDIR to a writable place"));
  // Any bundle will do to open the device.
  std::string path = scratch.path() + "/open.qnl", model = scratch.path() + "/open.qg";
  std::ofstream(model) << negation(64);
  CompileOptions compile_options;
  compile_options.targets = {"vulkan"};
  if (Expected<CompileReport> report = compile(model, path, compile_options); !report)
    return fail(report.errors());
  qnl_error error;
  Bundle bundle;
  run::OpenedDevice opened;
  if (bundle.open(path.c_str(), nullptr, &error) != QNL_OK ||
      opened.open(options.device, bundle, path, nullptr, &error) != QNL_OK)
    return fail(runtime_error(error));
  qnl_device_info info;
  qnl_device_get_info(opened.device.get(), &info);
  Progress progress(std::string("measuring ") + info.name);
  Expected<Target> target = measure(opened.device, scratch.path());
  progress.finish();
  if (!target) return fail(target.errors());
  std::string text = fmt::format(
      "# {}, measured by `quernel probe`, but for the facts that are no times or rates: they are the "
      "target's.\n# The device runs code for --target {}.\n{}",
      info.name, best_target(info.features), device_profile_text(*target));
  if (options.output.empty()) return fmt::print("{}", text), kOk;
  if (Status status = write_text_file(options.output, text); !status) return fail(status.errors());
  return kOk;
}

}  // namespace

Action define_probe(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("--device", options->device.device,
                 "which: vulkan, or vulkan:D with a number, a type or a part of a name")
      ->type_name("D")
      ->check([](const std::string& name) {
        return run::is_vulkan(name) ? "" : "expected vulkan or vulkan:D, found '" + name + "'";
      });
  app.add_option("-o,--output", options->output, "the profile to write (default: standard output)")
      ->type_name("FILE");
  app.add_option("--kernels", options->kernels,
                 "measure nothing, write bundles that do when quernel-run times them on another machine")
      ->type_name("FOLDER");
  return [options] { return run(*options); };
}

}  // namespace quernel::tools
