#include "test_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "command.h"
#include "junit.h"
#include "kernel_table.h"
#include "print.h"
#include "quernel/runtime.h"

namespace quernel::tools {
namespace {

constexpr size_t kKernelLines = 20;  // of --per-kernel

const Json::Array& runs_of(const Json& result) {
  static const Json::Array kNone;
  const Json* runs = result.find("runs");
  return runs == nullptr ? kNone : runs->array();
}

double number(const Json& object, std::string_view name) {
  const Json* value = object.find(name);
  return value == nullptr ? 0 : value->number().value_or(0);
}

// "; cortex-m4, 11211080 instructions, 1.94 a multiply-add, workspace 156160 bytes, stack 264 of 264". Where the board has
// another core, it is named: "; cortex-m23 on the cortex-m33 of mps2-an505, …".
std::string firmware_figures(const Json& test) {
  double instructions = number(test, "instructions"), multiply_adds = number(test, "multiply_adds");
  const std::string &target = test.at("target").text(), &core = test.at("board_core").text();
  std::string text = "; " + target;
  if (core != target.substr(0, target.find('+')))
    text += fmt::format(" on the {} of {}", core, test.at("board").text());
  text += fmt::format(", {:.0f} instructions", instructions);
  if (multiply_adds > 0) text += fmt::format(", {:.2f} a multiply-add", instructions / multiply_adds);
  for (const Json& memory : test.at("memory").array())
    text += fmt::format(", {} {:.0f} of {:.0f} bytes", memory.at("name").text(), number(memory, "used_bytes"),
                        number(memory, "bytes"));
  return text;
}

// "; cortex-a72, 1.25 ms, peak 3.1 MB"
std::string figures(const Json& result) {
  for (const Json& run : runs_of(result))
    for (const Json& test : run.at("tests").array())
      if (test.find("instructions") != nullptr) return firmware_figures(test);
  double milliseconds = 0, peak = 0;
  int tests = 0;
  std::string target;
  for (const Json& run : runs_of(result)) {
    peak = std::max(peak, number(run, "peak_rss_bytes"));
    for (const Json& test : run.at("tests").array()) {
      target = test.at("target").text();
      milliseconds += number(test, "median_ms");
      ++tests;
    }
  }
  if (tests == 0 || target.empty()) return "";
  return fmt::format("; {}, {} a run, peak {}", target, format_seconds(milliseconds / tests * 1e-3),
                     format_bytes(static_cast<uint64_t>(peak)));
}

void print_layer(const Json& result) {
  const Json* layer = result.find("diverging_layer");
  if (layer == nullptr) return;
  if (layer->at("found").is_true())
    print("  first diverging layer: '{}' ({}): {}\n", layer->at("node").text(), layer->at("op").text(),
          layer->at("message").text());
  else
    print("  first diverging layer: {}\n", layer->at("message").text());
}

// Instructions of kernels on a board.
void print_counts(const Json& test) {
  KernelTable table{"instructions", {{"a mult-add", 10}}, {}};
  double sum = 0;
  for (const Json& kernel : test.at("kernels").array()) {
    double instructions = number(kernel, "instructions"), multiply_adds = number(kernel, "multiply_adds");
    sum += instructions;
    std::string node = kernel.at("node").text();
    if (double nodes = number(kernel, "nodes"); nodes > 1) node += fmt::format(" and {:.0f} more", nodes - 1);
    table.rows.push_back({instructions,
                          fmt::format("{:.0f}", instructions),
                          static_cast<uint64_t>(number(kernel, "calls")),
                          {multiply_adds > 0 ? fmt::format("{:.2f}", instructions / multiply_adds) : "-"},
                          kernel.at("class").text(),
                          kernel.at("choice").text(),
                          kernel.at("name").text(),
                          std::move(node)});
  }
  print_kernel_table(table);
  double all = number(test, "instructions"), step = number(test, "instruction_step");
  print("  kernels take {:.1f}% of {:.0f} instructions{}\n", all > 0 ? std::min(100.0, 100 * sum / all) : 0,
        all,
        step > 1 ? fmt::format("; the board counts in steps of {:.0f}, at both ends of a call", step) : "");
}

// The kernels of the first test vector of each bundle, the longest first.
void print_kernels(const Json& result) {
  for (const Json& run : runs_of(result)) {
    const Json& test = run.at("tests").array()[0];
    if (test.find("kernels") != nullptr) {
      print_counts(test);
      continue;
    }
    const Json::Array& items = test.at("items").array();
    std::vector<const Json*> order;
    double total = 0;
    for (const Json& item : items) {
      order.push_back(&item);
      total += number(item, "ms");
    }
    std::stable_sort(order.begin(), order.end(),
                     [](const Json* a, const Json* b) { return number(*a, "ms") > number(*b, "ms"); });
    print("  {:>10}  {:>5}  {:<24} {}\n", "time", "share", "kernel", "first node");
    for (size_t i = 0; i < order.size() && i < kKernelLines; ++i)
      print("  {:>10}  {:>4.1f}%  {:<24} {}\n", format_seconds(number(*order[i], "ms") * 1e-3),
            total > 0 ? number(*order[i], "ms") / total * 100 : 0, order[i]->at("name").text(),
            order[i]->at("node").text());
    if (order.size() > kKernelLines) print("  … {} more\n", order.size() - kKernelLines);
  }
}

}  // namespace

Json verdict_json(const char* verdict, std::string reason) {
  return Json::Object{{"verdict", verdict}, {"reason", std::move(reason)}};
}

RunsSummary summarize(const Json::Array& runs) {
  RunsSummary summary;
  for (const Json& run : runs)
    for (const Json& test : run.at("tests").array()) {
      ++summary.tests;
      std::string message = test.at("error").text();
      if (message.find(qnl_status_text(QNL_CUSTOM_OP_MISSING)) == std::string::npos &&
          !test.at("passed").is_true())
        summary.unsupported = false;
      for (const Json& output : test.at("outputs").array()) {
        summary.max_error = std::max(summary.max_error, output.at("max_abs_error").number().value_or(0));
        if (message.empty() && !output.at("message").text().empty())
          message = fmt::format("output '{}': {}", output.at("name").text(), output.at("message").text());
      }
      if (test.at("passed").is_true()) continue;
      if (summary.failed++ > 0) continue;
      summary.first_failed_test = test.at("name").text();
      summary.first_failure = fmt::format("{}: {}", summary.first_failed_test, message);
    }
  return summary;
}

Json result_of_runs(Json::Array runs) {
  RunsSummary summary = summarize(runs);
  Json result;
  if (summary.failed == 0)
    result = verdict_json("PASS", fmt::format("{} test vector{}, max abs error {:.3g}", summary.tests,
                                              summary.tests == 1 ? "" : "s", summary.max_error));
  else
    result = verdict_json(summary.unsupported ? "UNSUPPORTED" : "FAIL", summary.first_failure);
  result.set("runs", std::move(runs));
  return result;
}

void TestReport::add(const std::string& name, Json result, const Json& seconds) {
  std::string verdict = result.at("verdict").text();
  verdicts_.add(verdict, name);
  print("{} {}: {}{}\n", verdict, name, result.at("reason").text(), figures(result));
  print_layer(result);
  if (options_.per_kernel) print_kernels(result);
  std::fflush(stdout);
  result.set("name", name);
  result.set("seconds", seconds);
  results_.push_back(std::move(result));
}

Status TestReport::finish(const std::string& on, Json::Object facts) {
  verdicts_.print();
  if (!options_.junit.empty()) QUERNEL_CHECK(write_text_file(options_.junit, junit_text(on, results_)));
  if (options_.json.empty()) return {};
  Json::Object document = {{"on", on},
                           {"passed", verdicts_.passed},
                           {"failed", verdicts_.failed},
                           {"unsupported", verdicts_.unsupported}};
  for (auto& fact : facts) document.push_back(std::move(fact));
  document.emplace_back("cases", std::move(results_));
  return write_text_file(options_.json, Json(std::move(document)).dump());
}

}  // namespace quernel::tools
