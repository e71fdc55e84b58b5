// quernel bench: load time, latency and the share of each kernel, of a bundle or of a model that is compiled
// first.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <map>

#include "command.h"
#include "compile_flags.h"
#include "json.h"
#include "quernel/compiler.h"
#include "quernel/runtime.hpp"
#include "scratch_dir.h"
#include "support/progress.h"
#include "tensor_file.h"

namespace quernel::tools {
namespace {

struct Options {
  std::string input;
  CompileFlags flags;
  std::string entry;
  std::vector<std::string> symbols;  // NAME=VALUE
  int threads = 1, repeat = 0;
  double seconds = 1;
  bool per_kernel = false, json = false;
};

constexpr int kLoads = 5, kWarmUpRuns = 3, kFewestRuns = 5, kMostRuns = 1000000;

// All dispatches of one kernel in a run.
struct KernelTime {
  std::string name, node;
  int dispatches = 0;
  double seconds = 0;
  uint64_t flops = 0, bytes = 0;
};

struct Measured {
  double open_seconds = 0, session_seconds = 0;  // medians
  std::vector<double> runs;                      // seconds, ascending
  uint64_t flops = 0;                            // of a run
  std::vector<KernelTime> kernels;               // slowest first
  qnl_requirements memory = {};
  std::string variant;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

Diagnostic runtime_error(const qnl_error& error) {
  std::string text = fmt::format("{}: {}", qnl_status_text(error.status), error.text);
  return error.status == QNL_CUSTOM_OP_MISSING
             ? unsupported(text, {},
                           "only an application has its functions; a kernel in the description needs none")
             : invalid_input(text);
}

bool is_bundle(const std::string& path) {
  char magic[4] = {};
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) return false;
  size_t got = std::fread(magic, 1, sizeof magic, file);
  std::fclose(file);
  return got == sizeof magic && std::memcmp(magic, "QNL1", sizeof magic) == 0;
}

// The entry point of that name, or the first.
Expected<uint32_t> find_entry(const Bundle& bundle, const std::string& name) {
  std::string legal;
  qnl_entry_info info;
  for (uint32_t i = 0; qnl_bundle_get_entry(bundle.get(), i, &info) == QNL_OK; ++i) {
    if (name.empty() || name == info.name) return i;
    legal += (legal.empty() ? "'" : ", '") + std::string(info.name) + "'";
  }
  return invalid_input("--entry: expected one of " + legal + ", found '" + name + "'");
}

// The bundle's symbols: as given, else the smallest.
Status set_symbols(const Bundle& bundle, Session& session, const std::vector<std::string>& given) {
  qnl_error error;
  auto set = [&](const char* name, int64_t value) {
    return qnl_session_set_symbol(session.get(), name, value, &error) == QNL_OK ? Status()
                                                                                : runtime_error(error);
  };
  qnl_symbol_info symbol;
  for (uint32_t i = 0; qnl_bundle_get_symbol(bundle.get(), i, &symbol) == QNL_OK; ++i)
    if (!symbol.runtime) QUERNEL_CHECK(set(symbol.name, symbol.min));
  for (const std::string& text : given) {
    size_t at = text.find('=');
    const char* end = text.data() + text.size();
    int64_t value = 0;
    if (at == std::string::npos || at == 0 || std::from_chars(text.data() + at + 1, end, value).ptr != end)
      return invalid_input("--symbol: expected NAME=NUMBER, found '" + text + "'");
    QUERNEL_CHECK(set(text.substr(0, at).c_str(), value));
  }
  return {};
}

// Seeded values in every input.
Status fill_inputs(const Bundle& bundle, uint32_t entry, Session& session) {
  qnl_tensor signature;
  qnl_error error;
  for (uint32_t i = 0; qnl_bundle_get_tensor(bundle.get(), entry, QNL_INPUT, i, &signature) == QNL_OK; ++i) {
    if (session.tensor(QNL_INPUT, signature.name, &signature, &error) != QNL_OK) return runtime_error(error);
    tensor_file::HostTensor host;
    host.dtype = signature.dtype;
    host.shape.assign(signature.shape, signature.shape + signature.rank);
    tensor_file::fill_random(i, &host);
    signature.bytes = host.bytes.size();
    signature.data = host.bytes.data();
    if (session.set_input(signature, &error) != QNL_OK) return runtime_error(error);
  }
  return {};
}

// Adds up item times under the hook, over several runs.
Status profile(Session& session, int runs, Measured& measured) {
  std::vector<double> seconds(qnl_session_item_count(session.get()), 0);
  auto hook = [](void* user, uint32_t item, uint64_t nanoseconds) {
    (*static_cast<std::vector<double>*>(user))[item] += static_cast<double>(nanoseconds) * 1e-9;
  };
  qnl_session_set_profile(session.get(), hook, &seconds);
  qnl_error error;
  qnl_status status = QNL_OK;
  for (int i = 0; i < runs && status == QNL_OK; ++i) status = session.run(&error);
  qnl_session_set_profile(session.get(), nullptr, nullptr);
  if (status != QNL_OK) return runtime_error(error);
  std::map<std::string, KernelTime> by_name;
  for (uint32_t i = 0; i < seconds.size(); ++i) {
    qnl_item_info info;
    if (qnl_session_get_item(session.get(), i, &info) != QNL_OK) break;
    KernelTime& kernel = by_name[info.name];
    if (kernel.dispatches++ == 0) kernel.name = info.name, kernel.node = info.source_node;
    kernel.seconds += seconds[i] / runs;
    kernel.flops += info.flops;
    kernel.bytes += info.bytes_read + info.bytes_written;
  }
  for (auto& [name, kernel] : by_name) measured.kernels.push_back(std::move(kernel));
  std::sort(measured.kernels.begin(), measured.kernels.end(),
            [](const KernelTime& a, const KernelTime& b) { return a.seconds > b.seconds; });
  return {};
}

Expected<Measured> measure(const std::string& path, const Options& options) {
  Measured result;
  qnl_error error;
  Device device;
  if (device.open_cpu(static_cast<uint32_t>(options.threads), &error) != QNL_OK) return runtime_error(error);
  std::vector<double> opens, creates;
  qnl_session_options session_options = {};
  if (!options.entry.empty()) session_options.entry_point = options.entry.c_str();
  for (int i = 0; i < kLoads; ++i) {
    double start = now_seconds();
    Bundle once;
    if (once.open(path.c_str(), nullptr, &error) != QNL_OK) return runtime_error(error);
    double opened = now_seconds();
    Session session;
    QUERNEL_CHECK(find_entry(once, options.entry));
    if (session.create(once, device, &session_options, &error) != QNL_OK) return runtime_error(error);
    opens.push_back(opened - start);
    creates.push_back(now_seconds() - opened);
  }
  result.open_seconds = median(opens);
  result.session_seconds = median(creates);

  Bundle bundle;
  Session session;
  if (bundle.open(path.c_str(), nullptr, &error) != QNL_OK ||
      qnl_session_query(bundle.get(), device.get(), &session_options, &result.memory, &error) != QNL_OK ||
      session.create(bundle, device, &session_options, &error) != QNL_OK)
    return runtime_error(error);
  QUERNEL_TRY(uint32_t entry, find_entry(bundle, options.entry));
  QUERNEL_CHECK(set_symbols(bundle, session, options.symbols));
  qnl_variant_info variant;
  if (qnl_bundle_get_variant(bundle.get(), result.memory.variant, &variant) == QNL_OK)
    result.variant = variant.target;
  QUERNEL_CHECK(fill_inputs(bundle, entry, session));
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
    QUERNEL_CHECK(profile(session, runs, result));
  }
  return result;
}

double giga_per_second(uint64_t amount, double seconds) {
  return seconds > 0 ? static_cast<double>(amount) / seconds / 1e9 : 0;
}

void print_text(const Options& options, const Measured& m) {
  double middle = median(m.runs);
  fmt::print("{}: variant {}, {} thread{}\n", options.input, m.variant, options.threads,
             options.threads == 1 ? "" : "s");
  fmt::print("  load      {} (open {}, session {})\n", format_seconds(m.open_seconds + m.session_seconds),
             format_seconds(m.open_seconds), format_seconds(m.session_seconds));
  fmt::print("  latency   median {}, min {} of {} runs\n", format_seconds(middle),
             format_seconds(m.runs.front()), m.runs.size());
  fmt::print("  speed     {:.2f} GFLOP/s ({:.2f} MFLOP a run)\n", giga_per_second(m.flops, middle),
             static_cast<double>(m.flops) / 1e6);
  fmt::print("  memory    weights {}, workspace {}, code {}\n", format_bytes(m.memory.constants_bytes),
             format_bytes(m.memory.workspace_bytes), format_bytes(m.memory.code_bytes));
  if (!options.per_kernel) return;
  double total = 0;
  for (const KernelTime& k : m.kernels) total += k.seconds;
  fmt::print("\n  {:>6} {:>10} {:>10} {:>9} {:>8}  {:<24} {}\n", "share", "time", "dispatches", "GFLOP/s",
             "GB/s", "kernel", "first node");
  for (const KernelTime& k : m.kernels)
    fmt::print("  {:>5.1f}% {:>10} {:>10} {:>9.2f} {:>8.2f}  {:<24} {}\n",
               total > 0 ? 100 * k.seconds / total : 0, format_seconds(k.seconds), k.dispatches,
               giga_per_second(k.flops, k.seconds), giga_per_second(k.bytes, k.seconds), k.name, k.node);
}

Json to_json(const Options& options, const Measured& m) {
  Json result = Json::Object{{"input", options.input},
                             {"variant", m.variant},
                             {"threads", options.threads},
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
  for (const KernelTime& k : m.kernels)
    kernels.push_back(Json::Object{{"name", k.name},
                                   {"node", k.node},
                                   {"dispatches", k.dispatches},
                                   {"seconds", k.seconds},
                                   {"flops", k.flops},
                                   {"bytes", k.bytes}});
  result.set("kernels", std::move(kernels));
  return result;
}

int run(const Options& options) {
  Expected<CompileOptions> compile_flags = compile_options(options.flags);
  if (!compile_flags) return fail(compile_flags.errors()), kUsage;
  ScratchDir scratch;
  std::string bundle = options.input;
  if (!is_bundle(options.input) && !options.input.ends_with(".qnl")) {
    if (scratch.path().empty())
      return fail(invalid_input("cannot create a temporary directory; set TMPDIR to a writable place"));
    bundle = scratch.path() + "/model.qnl";
    Progress progress("compiling " + file_name(options.input));
    compile_flags->on_stage = [&](const std::string& stage) { progress.stage(stage); };
    Expected<CompileReport> report = compile(options.input, bundle, *compile_flags);
    progress.finish();
    if (!report) return fail(report.errors());
  }
  Expected<Measured> measured = measure(bundle, options);
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
  app.add_option("--entry", options->entry, "entry point of a bundle (default: the first)")
      ->type_name("NAME");
  app.add_option("--symbol", options->symbols, "the value of a free dim of a bundle (default: the smallest)")
      ->type_name("NAME=N")
      ->allow_extra_args(false);
  app.add_option("--threads", options->threads, "threads that run kernels (default: 1)")
      ->type_name("N")
      ->check(CLI::Range(1, 256));
  CLI::Option* repeat = app.add_option("--repeat", options->repeat, "number of runs")
                            ->type_name("N")
                            ->check(CLI::Range(1, kMostRuns));
  app.add_option("--seconds", options->seconds, "time to spend on runs (default: 1)")
      ->type_name("S")
      ->check(CLI::NonNegativeNumber)
      ->excludes(repeat);
  app.add_flag("--per-kernel", options->per_kernel, "also time every kernel");
  app.add_flag("--json", options->json, "print one JSON object instead of text");
  add_target_flags(app, options->flags);
  add_shape_flags(app, options->flags);
  add_custom_op_flags(app, options->flags);
  add_developer_flags(app, options->flags);
  return [options] { return run(*options); };
}

}  // namespace quernel::tools
