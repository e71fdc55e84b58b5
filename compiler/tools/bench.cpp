// quernel bench: load time, latency, and each kernel's share and standing against the machine's peaks, of a
// bundle or of a model that is compiled first.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>

#include "command.h"
#include "compile_flags.h"
#include "device_runner.h"
#include "json.h"
#include "kernel_table.h"
#include "machine_peaks.h"
#include "opened_bundle.h"
#include "print.h"
#include "quernel/compiler.h"
#include "scratch_dir.h"
#include "support/progress.h"
#include "timing.h"

namespace quernel::tools {
namespace {

struct Options {
  std::string input;
  CompileFlags flags;
  std::string entry;
  std::vector<std::string> symbols;  // NAME=VALUE
  run::DeviceChoice device;
  int repeat = 0;
  double seconds = 1;
  bool per_kernel = false, json = false;
};

// What says how a model is compiled; --target chooses a bundle's variant.
constexpr const char* kModelFlags[] = {
    "--place",     "--precision",     "--device-profile",  "--tuning",
    "--dim",       "--input-shape",   "--input-value",     "--external-data",
    "--custom-op", "--keep-input",    "--duplicate-names", "--allow-large",
    "--like",      "--checked",       "--rounding",        "--io",
    "--weights",   "--float-weights", "--activations"};
constexpr int kLoads = 5, kWarmUpRuns = 3, kFewestRuns = 5, kMostRuns = 1000000;

// All dispatches of one kernel in a run.
struct KernelTime {
  std::string name, node, kernel_class, choice;
  std::vector<uint32_t> items;
  double seconds = 0;                          // median
  uint64_t flops = 0, bytes = 0, weights = 0;  // weights: those of `bytes` that are constants
  bool byte_products = false;                  // `flops` are those of int8 dot products
};

// Whether the kernel of this key (schedule/contraction/contraction_text.h) multiplies bytes.
bool multiplies_bytes(std::string_view key) {
  size_t space = key.find(' ');
  if (space == std::string_view::npos) return false;
  std::string_view types = key.substr(space + 1);
  types = types.substr(0, types.find(' '));
  size_t times = types.find('*');
  auto is_byte = [](std::string_view type) { return type.starts_with("i8") || type.starts_with("u8"); };
  return times != std::string_view::npos && is_byte(types) && is_byte(types.substr(times + 1));
}

// The least time a kernel could take, by what binds it.
struct Roof {
  double compute = 0, memory = 0;
  double seconds() const { return std::max(compute, memory); }
  const char* name = "-";  // what binds it: "compute" (of floats), "bytes" (int8 dot products), "memory"
};

struct Measured {
  double open_seconds = 0, session_seconds = 0;  // medians
  std::vector<double> runs;                      // seconds, ascending
  uint64_t flops = 0;                            // of a run
  std::vector<KernelTime> kernels;               // slowest first
  qnl_requirements memory = {};
  std::string variant, device;
  uint32_t threads = 1;
  MachinePeaks peaks;  // where kernels are measured
  uint64_t footprint = 0;
};

Roof roof_of(const KernelTime& k, const MachinePeaks& peaks) {
  if (peaks.flops <= 0) return {};
  Roof roof = {static_cast<double>(k.flops) / (k.byte_products ? peaks.byte_ops : peaks.flops),
               static_cast<double>(k.weights) / peaks.far_bytes +
                   static_cast<double>(k.bytes - std::min(k.bytes, k.weights)) / peaks.near_bytes};
  if (roof.seconds() > 0)
    roof.name = roof.compute < roof.memory ? "memory" : k.byte_products ? "bytes" : "compute";
  return roof;
}

// The kernels of the bundle's items.
std::vector<KernelTime> kernels_of(const ReadyBundle& ready) {
  std::vector<ItemText> texts = item_texts(ready);
  std::map<std::string, KernelTime> by_name;
  for (uint32_t i = 0; i < qnl_session_item_count(ready.session.get()); ++i) {
    qnl_item_info info;
    if (qnl_session_get_item(ready.session.get(), i, &info) != QNL_OK) break;
    KernelTime& kernel = by_name[info.name];
    if (kernel.items.empty()) {
      kernel.name = info.name, kernel.node = info.source_node;
      kernel.kernel_class = texts[i].kernel_class, kernel.choice = texts[i].choice;
      kernel.byte_products = multiplies_bytes(texts[i].key);
    }
    kernel.items.push_back(i);
    kernel.flops += info.flops;
    kernel.bytes += info.bytes_read + info.bytes_written;
    kernel.weights += texts[i].weight_bytes;
  }
  std::vector<KernelTime> kernels;
  for (auto& [name, kernel] : by_name) kernels.push_back(std::move(kernel));
  return kernels;
}

// Medians over several runs of what each kernel takes.
Status profile(ReadyBundle& ready, int runs, Measured& measured) {
  std::vector<KernelTime> kernels = kernels_of(ready);
  std::vector<std::vector<double>> seconds(kernels.size());
  for (int run = 0; run < runs; ++run) {
    QUERNEL_TRY(std::vector<double> items, time_items(ready.session));
    for (size_t k = 0; k < kernels.size(); ++k) {
      double sum = 0;
      for (uint32_t i : kernels[k].items) sum += items[i];
      seconds[k].push_back(sum);
    }
  }
  for (size_t k = 0; k < kernels.size(); ++k) kernels[k].seconds = median(seconds[k]);
  std::sort(kernels.begin(), kernels.end(),
            [](const KernelTime& a, const KernelTime& b) { return a.seconds > b.seconds; });
  measured.kernels = std::move(kernels);
  return {};
}

Expected<Measured> measure(const std::string& path, const Options& options, const std::string& scratch_dir) {
  Measured result;
  qnl_error error;
  run::OpenedDevice opened;
  qnl_session_options session_options = {};
  if (!options.entry.empty()) session_options.entry_point = options.entry.c_str();
  {
    Bundle once;
    if (once.open(path.c_str(), nullptr, &error) != QNL_OK) return runtime_error(error);
    QUERNEL_CHECK(find_entry(once, options.entry));
    if (opened.open(options.device, once, path, &session_options, &error) != QNL_OK)
      return runtime_error(error);
  }
  if (!opened.chosen.empty()) print_note("quernel: device: {}\n", opened.chosen);
  const Device& device = opened.device;
  qnl_device_info info;
  qnl_device_get_info(device.get(), &info);
  result.device = info.name;
  result.threads = info.threads;
  std::vector<double> opens, creates;
  for (int i = 0; i < kLoads; ++i) {
    double start = now_seconds();
    Bundle once;
    if (once.open(path.c_str(), nullptr, &error) != QNL_OK) return runtime_error(error);
    double opened = now_seconds();
    Session session;
    if (session.create(once, device, &session_options, &error) != QNL_OK) return runtime_error(error);
    opens.push_back(opened - start);
    creates.push_back(now_seconds() - opened);
  }
  result.open_seconds = median(opens);
  result.session_seconds = median(creates);

  QUERNEL_TRY(std::unique_ptr<ReadyBundle> ready, make_ready(path, device, options.entry, options.symbols));
  Session& session = ready->session;
  result.memory = ready->memory;
  qnl_variant_info variant;
  if (qnl_bundle_get_variant(ready->bundle.get(), result.memory.variant, &variant) == QNL_OK)
    result.variant = variant.target;
  for (int i = 0; i < kWarmUpRuns; ++i)
    if (session.run(&error) != QNL_OK) return runtime_error(error);
  for (uint32_t i = 0; i < qnl_session_item_count(session.get()); ++i)
    if (qnl_item_info info; qnl_session_get_item(session.get(), i, &info) == QNL_OK)
      result.flops += info.flops;

  double begin = now_seconds();
  auto wants_more = [&](int done) {
    if (options.repeat > 0) return done < options.repeat;
    return done < kFewestRuns || (done < kMostRuns && now_seconds() - begin < options.seconds);
  };
  for (int i = 0; wants_more(i); ++i) {
    double start = now_seconds();
    if (session.run(&error) != QNL_OK) return runtime_error(error);
    result.runs.push_back(now_seconds() - start);
  }
  std::sort(result.runs.begin(), result.runs.end());
  if (options.per_kernel) {
    int runs = options.repeat > 0 ? options.repeat
                                  : std::max(1, std::min<int>(static_cast<int>(result.runs.size()), 200));
    QUERNEL_CHECK(profile(*ready, runs, result));
    ready.reset();
    result.footprint = result.memory.constants_bytes + result.memory.workspace_bytes + result.memory.io_bytes;
    // A bundle of an earlier compiler may name a target that is no longer there.
    // Peaks are of the CPU.
    if (Expected<Target> target = find_target(result.variant); target && !target->is_gpu()) {
      QUERNEL_TRY(result.peaks, measure_peaks(*target, static_cast<int>(options.device.threads),
                                              result.footprint, scratch_dir));
    }
  }
  return result;
}

double giga_per_second(uint64_t amount, double seconds) {
  return seconds > 0 ? static_cast<double>(amount) / seconds / 1e9 : 0;
}

void print_text(const Options& options, const Measured& m) {
  double middle = median(m.runs);
  print("{}: variant {}, {}, {} thread{}\n", options.input, m.variant, m.device, m.threads,
        m.threads == 1 ? "" : "s");
  print("  load      {} (open {}, session {})\n", format_seconds(m.open_seconds + m.session_seconds),
        format_seconds(m.open_seconds), format_seconds(m.session_seconds));
  print("  latency   median {}, min {} of {} runs\n", format_seconds(middle), format_seconds(m.runs.front()),
        m.runs.size());
  print("  speed     {:.2f} GFLOP/s ({:.2f} MFLOP a run)\n", giga_per_second(m.flops, middle),
        static_cast<double>(m.flops) / 1e6);
  print("  memory    weights {}, workspace {}, code {}\n", format_bytes(m.memory.constants_bytes),
        format_bytes(m.memory.workspace_bytes), format_bytes(m.memory.code_bytes));
  if (!options.per_kernel) return;
  if (m.peaks.flops > 0)
    print(
        "  peaks     {:.1f} GFLOP/s, {:.1f} Gop/s of int8 dot products, {:.1f} GB/s from near caches, {:.1f} "
        "GB/s "
        "from {}\n",
        m.peaks.flops / 1e9, m.peaks.byte_ops / 1e9, m.peaks.near_bytes / 1e9, m.peaks.far_bytes / 1e9,
        format_bytes(std::min(m.footprint, kLargestFootprint)));
  KernelTable table{"time", {{"GFLOP/s", 8}, {"GB/s", 7}, {"of peak", 7}, {"", -7}}, {}};
  for (const KernelTime& k : m.kernels) {
    Roof roof = roof_of(k, m.peaks);
    std::string of_peak = roof.seconds() > 0 ? fmt::format("{:.0f}%", 100 * roof.seconds() / k.seconds) : "-";
    table.rows.push_back({k.seconds,
                          format_seconds(k.seconds),
                          k.items.size(),
                          {fmt::format("{:.2f}", giga_per_second(k.flops, k.seconds)),
                           fmt::format("{:.2f}", giga_per_second(k.bytes, k.seconds)), of_peak, roof.name},
                          k.kernel_class,
                          k.choice,
                          k.name,
                          k.node});
  }
  print("\n");
  print_kernel_table(table);
}

Json to_json(const Options& options, const Measured& m) {
  Json result = Json::Object{{"input", options.input},
                             {"variant", m.variant},
                             {"device", m.device},
                             {"threads", static_cast<int>(m.threads)},
                             {"open_seconds", m.open_seconds},
                             {"session_seconds", m.session_seconds},
                             {"runs", m.runs.size()},
                             {"median_seconds", median(m.runs)},
                             {"min_seconds", m.runs.front()},
                             {"flops", m.flops},
                             {"gflops_per_second", giga_per_second(m.flops, median(m.runs))},
                             {"constants_bytes", m.memory.constants_bytes},
                             {"workspace_bytes", m.memory.workspace_bytes},
                             {"code_bytes", m.memory.code_bytes}};
  if (!options.per_kernel) return result;
  Json::Array kernels;
  for (const KernelTime& k : m.kernels) {
    Roof roof = roof_of(k, m.peaks);
    kernels.push_back(Json::Object{{"name", k.name},
                                   {"node", k.node},
                                   {"class", k.kernel_class},
                                   {"choice", k.choice},
                                   {"dispatches", k.items.size()},
                                   {"seconds", k.seconds},
                                   {"flops", k.flops},
                                   {"bytes", k.bytes},
                                   {"weight_bytes", k.weights},
                                   {"bound", roof.name},
                                   {"share_of_peak", k.seconds > 0 ? roof.seconds() / k.seconds : 0}});
  }
  result.set("peaks", Json::Object{{"flops_per_second", m.peaks.flops},
                                   {"byte_ops_per_second", m.peaks.byte_ops},
                                   {"near_bytes_per_second", m.peaks.near_bytes},
                                   {"far_bytes_per_second", m.peaks.far_bytes},
                                   {"footprint_bytes", m.footprint}});
  result.set("kernels", std::move(kernels));
  return result;
}

int run(const Options& options, const CLI::App& app) {
  CompileFlags flags = options.flags;
  set_default_target(options.device, flags.targets);
  Expected<CompileOptions> compile_flags = compile_options(flags);
  if (!compile_flags) return fail(compile_flags.errors()), kUsage;
  ScratchDir scratch;
  std::string bundle = options.input;
  bool is_model = !is_bundle(options.input) && !options.input.ends_with(".qnl");
  const bool chooses = !is_model && !options.flags.targets.empty();
  if (!is_model)
    for (const char* name : kModelFlags)
      if (app.count(name) > 0)
        return usage_error(fmt::format(
            "{}: expected a model, which it compiles otherwise, found the bundle '{}'", name, options.input));
  if ((is_model || chooses || options.per_kernel) && scratch.path().empty())
    return fail(invalid_input("cannot create a temporary directory; set TMPDIR to a writable place"));
  if (is_model) {
    bundle = scratch.path() + "/model.qnl";
    compile_flags->signature = options.entry;
    Progress progress("compiling " + file_name(options.input));
    compile_flags->on_stage = [&](const std::string& stage) { progress.stage(stage); };
    Expected<CompileReport> report = compile(options.input, bundle, *compile_flags);
    progress.finish();
    if (!report) return fail(report.errors());
  }
  if (chooses) {
    bundle = scratch.path() + "/chosen.qnl";
    Expected<std::unique_ptr<OpenedBundle>> opened = open_bundle(options.input, true);
    if (!opened) return fail(opened.errors());
    if (auto written = write_variants(**opened, options.flags.targets, bundle); !written)
      return fail(written.errors());
  }
  Expected<Measured> measured = measure(bundle, options, scratch.path());
  if (!measured) return fail(measured.errors());
  if (options.json)
    fmt::print("{}", to_json(options, *measured).dump());
  else
    print_text(options, *measured);
  return kOk;
}

}  // namespace

Action define_bench(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("BUNDLE|MODEL", options->input, "a bundle, or a model that is compiled first")->required();
  app.add_option("--entry", options->entry,
                 "entry point of a bundle, or signature of a TensorFlow Lite model (default: the first)")
      ->type_name("NAME");
  app.add_option("--symbol", options->symbols, "the value of a free dim of a bundle (default: the smallest)")
      ->type_name("NAME=N")
      ->allow_extra_args(false);
  add_run_flags(app, options->device);
  CLI::Option* repeat = app.add_option("--repeat", options->repeat, "number of runs")
                            ->type_name("N")
                            ->check(CLI::Range(1, kMostRuns));
  app.add_option("--seconds", options->seconds, "time to spend on runs (default: 1)")
      ->type_name("S")
      ->check(CLI::NonNegativeNumber)
      ->excludes(repeat);
  app.add_flag("--per-kernel", options->per_kernel,
               "also time every kernel and compare it with the machine's peaks");
  app.add_flag("--json", options->json, "print one JSON object instead of text");
  add_target_flags(app, options->flags);
  add_tuning_flag(app, options->flags);
  add_shape_flags(app, options->flags);
  add_model_flags(app, options->flags);
  add_choice_flags(app, options->flags);
  add_developer_flags(app, options->flags);
  return [options, &app] { return run(*options, app); };
}

}  // namespace quernel::tools
