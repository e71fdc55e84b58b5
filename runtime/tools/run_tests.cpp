#include "run_tests.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include <algorithm>
#include <vector>

#include "list_bundle.h"
#include "open_device.h"
#include "runtime/choose/compare_tensors.h"
#include "runtime/choose/test_vectors.h"
#include "tensor_file_compare.h"

namespace quernel::run {
namespace {

using tensor_file::HostTensor;

struct OutputResult {
  std::string name, message;  // empty: it passes
  tensor_file::Deviation deviation;
};

struct ItemTime {
  std::string name, node;
  uint64_t nanoseconds = 0;
  uint64_t runs = 0;
  uint64_t flops = 0, bytes = 0;  // of each of its runs
};

struct TestResult {
  const char* name = "";
  const char* entry = "";
  std::string error;  // it could not be run
  qnl_status status = QNL_OK;
  std::string target;
  qnl_requirements memory = {};
  double load_milliseconds = 0, median = 0, min = 0;
  uint64_t runs = 0, item_nanoseconds = 0;  // of all items together, in the run that `items` is of
  std::vector<OutputResult> outputs;
  std::vector<ItemTime> items;
  bool passed() const {
    return error.empty() && std::all_of(outputs.begin(), outputs.end(),
                                        [](const OutputResult& o) { return o.message.empty(); });
  }
};

// Memory is made for the sizes of this test.
qnl_status create_session(const Bundle& bundle, const Device& device, uint32_t test, Session* session,
                          TestResult* result, qnl_error* error) {
  std::vector<qnl_symbol_value> symbols(bundle.info().symbol_count);
  qnl_session_options options = {};
  options.entry_point = result->entry;
  options.symbols = symbols.data();
  options.symbol_count = runtime::test_symbols(bundle.get(), test, symbols.data());
  double begin = now_milliseconds();
  qnl_status status = session->create(bundle, device, &options, error);
  result->load_milliseconds = now_milliseconds() - begin;
  if (status == QNL_OK)
    status = qnl_session_query(bundle.get(), device.get(), &options, &result->memory, error);
  qnl_variant_info variant;
  if (status == QNL_OK && qnl_bundle_get_variant(bundle.get(), result->memory.variant, &variant) == QNL_OK)
    result->target = variant.target;
  return status;
}

constexpr uint32_t kMostProfiles = 15;  // runs whose items are timed

uint64_t sum_of(const std::vector<ItemTime>& items) {
  uint64_t sum = 0;
  for (const ItemTime& item : items) sum += item.nanoseconds;
  return sum;
}

// Whether the time for the runs of a test vector, which began then, is over.
bool is_over(const TestOptions& options, double begin) {
  return options.seconds > 0 && now_milliseconds() - begin > options.seconds * 1e3;
}

// Times the items of as many runs as asked for, at most kMostProfiles. Those of the run whose sum is the median count.
qnl_status time_items(Session* session, const TestOptions& options, TestResult* result, qnl_error* error) {
  uint32_t count = qnl_session_item_count(session->get());
  std::vector<std::vector<ItemTime>> runs;
  qnl_status status = QNL_OK;
  double begin = now_milliseconds();
  for (uint32_t r = 0; r < std::min(options.repeat, kMostProfiles); ++r) {
    if (status != QNL_OK || (r > 0 && is_over(options, begin))) break;
    runs.emplace_back(count);
    qnl_session_set_profile(
        session->get(),
        [](void* user, uint32_t item, uint64_t nanoseconds) {
          ItemTime& time = (*static_cast<std::vector<ItemTime>*>(user))[item];
          time.nanoseconds += nanoseconds;
          ++time.runs;
        },
        &runs.back());
    status = qnl_session_reset_state(session->get(), error);
    if (status == QNL_OK) status = session->run(error);
  }
  qnl_session_set_profile(session->get(), nullptr, nullptr);
  auto median = runs.begin() + static_cast<std::ptrdiff_t>(runs.size() / 2);
  std::nth_element(runs.begin(), median, runs.end(),
                   [](const auto& a, const auto& b) { return sum_of(a) < sum_of(b); });
  result->items = std::move(*median);
  result->item_nanoseconds = sum_of(result->items);
  for (uint32_t i = 0; i < count; ++i) {
    qnl_item_info info;
    if (qnl_session_get_item(session->get(), i, &info) != QNL_OK) continue;
    result->items[i].name = info.name;
    result->items[i].node = info.source_node;
    result->items[i].flops = info.flops;
    result->items[i].bytes = info.bytes_read + info.bytes_written;
  }
  return status;
}

// Of a device that fails when it is read, the rest is not asked for.
qnl_status compare_outputs(const Bundle& bundle, uint32_t test, Session* session, TestResult* result,
                           qnl_error* error) {
  qnl_test_tensor t;
  for (uint32_t i = 0; qnl_bundle_get_test_tensor(bundle.get(), test, i, &t) == QNL_OK; ++i) {
    if (t.role != QNL_OUTPUT) continue;
    OutputResult& output = result->outputs.emplace_back();
    output.name = t.tensor.name;
    qnl_tensor found;
    qnl_status status = session->tensor(QNL_OUTPUT, t.tensor.name, &found, error);
    if (status == QNL_DEVICE_FAULT) return status;
    if (status != QNL_OK) {
      output.message = error_text(*error);
      continue;
    }
    char text[512];
    if (!runtime::compare_tensors(t, found, text, sizeof text)) output.message = text;
    HostTensor expected = tensor_file::to_host(t.tensor), computed = tensor_file::to_host(found);
    output.deviation = deviation_of(expected, computed);
  }
  return QNL_OK;
}

TestResult run_test(const Bundle& bundle, const Device& device, const TestOptions& options, uint32_t test,
                    const qnl_test_info& info, qnl_error* error) {
  TestResult result;
  result.name = info.name;
  qnl_entry_info entry = {};
  if (qnl_bundle_get_entry(bundle.get(), info.entry_point, &entry) == QNL_OK) result.entry = entry.name;
  Session session;
  qnl_status status = create_session(bundle, device, test, &session, &result, error);
  if (status == QNL_OK) status = runtime::set_test_inputs(bundle.get(), test, session.get(), error);
  std::vector<double> times;
  double first = now_milliseconds();
  for (uint32_t r = 0; status == QNL_OK && r < options.repeat; ++r) {
    if (r > 0 && is_over(options, first)) break;
    status = qnl_session_reset_state(session.get(), error);
    double begin = now_milliseconds();
    if (status == QNL_OK) status = session.run(error);
    times.push_back(now_milliseconds() - begin);
  }
  if (status == QNL_OK) {
    std::sort(times.begin(), times.end());
    result.min = times[0];
    result.median = times[times.size() / 2];
    result.runs = times.size();
    status = compare_outputs(bundle, test, &session, &result, error);
  }
  if (status == QNL_OK && options.json) status = time_items(&session, options, &result, error);
  if (status != QNL_OK) {
    result.error = error_text(*error);
    result.status = status;
  }
  return result;
}

void print_text(const TestResult& result) {
  printf("%s %s: ", result.passed() ? "PASS" : "FAIL", shown(result.name).c_str());
  if (!result.error.empty()) {
    printf("%s\n", shown(result.error.c_str()).c_str());
    return;
  }
  printf("%s, %.4f ms", shown(result.target.c_str()).c_str(), result.median);
  for (const OutputResult& output : result.outputs)
    printf("; '%s' %s%s", shown(output.name.c_str()).c_str(), output.message.empty() ? "max abs error " : "",
           output.message.empty() ? json_number(output.deviation.absolute).c_str()
                                  : shown(output.message.c_str()).c_str());
  printf("\n");
}

std::string to_json(const TestResult& result) {
  std::string outputs, items;
  for (const OutputResult& output : result.outputs)
    outputs += (outputs.empty() ? "" : ", ") + ("{\"name\": " + json_string(output.name.c_str())) +
               ", \"max_abs_error\": " + json_number(output.deviation.absolute) +
               ", \"share_of_largest\": " + json_number(output.deviation.share) +
               ", \"message\": " + json_string(output.message.c_str()) + "}";
  for (const ItemTime& item : result.items)
    items += (items.empty() ? "" : ", ") + ("{\"name\": " + json_string(item.name.c_str())) +
             ", \"node\": " + json_string(item.node.c_str()) +
             ", \"ms\": " + json_number(static_cast<double>(item.nanoseconds) * 1e-6) +
             ", \"runs\": " + std::to_string(item.runs) + ", \"flops\": " + std::to_string(item.flops) +
             ", \"bytes\": " + std::to_string(item.bytes) + "}";
  return "{\"name\": " + json_string(result.name) + ", \"entry\": " + json_string(result.entry) +
         ", \"target\": " + json_string(result.target.c_str()) +
         ", \"passed\": " + (result.passed() ? "true" : "false") +
         ", \"status\": " + std::to_string(result.status) +
         ", \"error\": " + json_string(result.error.c_str()) +
         ", \"load_ms\": " + json_number(result.load_milliseconds) +
         ", \"median_ms\": " + json_number(result.median) + ", \"min_ms\": " + json_number(result.min) +
         ", \"runs\": " + std::to_string(result.runs) +
         ", \"items_ms\": " + json_number(static_cast<double>(result.item_nanoseconds) * 1e-6) +
         ", \"memory\": " + json_memory(result.memory) + ", \"outputs\": [" + outputs + "], \"items\": [" +
         items + "]}";
}

}  // namespace

double now_milliseconds() {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

uint64_t peak_rss_bytes() {
  FILE* status = fopen("/proc/self/status", "r");
  if (status == nullptr) return 0;
  char line[256];
  uint64_t kibibytes = 0;
  while (fgets(line, sizeof line, status) != nullptr)
    if (sscanf(line, "VmHWM: %" SCNu64 " kB", &kibibytes) == 1) break;
  fclose(status);
  return kibibytes * 1024;
}

std::string json_memory(const qnl_requirements& memory) {
  return "{\"constants_bytes\": " + std::to_string(memory.constants_bytes) +
         ", \"workspace_bytes\": " + std::to_string(memory.workspace_bytes) +
         ", \"state_bytes\": " + std::to_string(memory.state_bytes) +
         ", \"io_bytes\": " + std::to_string(memory.io_bytes) +
         ", \"session_bytes\": " + std::to_string(memory.session_bytes) +
         ", \"code_bytes\": " + std::to_string(memory.code_bytes) + "}";
}

int run_tests(const Bundle& bundle, const Device& device, const TestOptions& options, qnl_error* error) {
  uint32_t passed = 0, count = 0;
  qnl_test_info info;
  std::string tests;
  for (; qnl_bundle_get_test(bundle.get(), count, &info) == QNL_OK; ++count) {
    qnl_error failure = {};
    TestResult result = run_test(bundle, device, options, count, info, &failure);
    if (options.stops_at_fault && result.status == QNL_DEVICE_FAULT) {
      *error = failure;
      return 1;
    }
    passed += result.passed() ? 1 : 0;
    if (options.json)
      tests += (count == 0 ? "" : ", ") + to_json(result);
    else
      print_text(result);
  }
  bool is_valid = options.messages == nullptr || options.messages->empty();
  if (options.json)
    printf("{%s, \"threads\": %u, \"peak_rss_bytes\": %" PRIu64 ", \"tests\": [%s]%s}\n",
           options.device.c_str(), options.threads, peak_rss_bytes(), tests.c_str(),
           is_valid ? "" : (", \"validation\": " + json_string(options.messages->c_str())).c_str());
  else
    printf("%u passed, %u failed\n", passed, count - passed);
  if (count == 0) {
    fprintf(stderr, "quernel-run: '%s': holds no test vectors; quernel compile --embed-tests stores some\n",
            options.bundle.c_str());
    return 1;
  }
  return passed == count && is_valid ? 0 : 1;
}

}  // namespace quernel::run
