// Chooses between a Vulkan device and the CPU: can the device run the bundle, is it right, is it faster.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "choose/choice_file.h"
#include "choose/compare_devices.h"
#include "choose/test_vectors.h"
#include "core/bundle.h"
#include "core/device.h"
#include "platform/library.h"
#include "platform/platform.h"
#include "schemas/bundle_hash.h"

namespace quernel::runtime {
namespace {

// The session options that count, without memory, which is made for each trial.
qnl_session_options trial_options(const qnl_session_options& options) {
  qnl_session_options trial = {};
  trial.entry_point = options.entry_point;
  trial.symbols = options.symbols;
  trial.symbol_count = options.symbol_count;
  trial.custom_ops = options.custom_ops;
  trial.custom_op_count = options.custom_op_count;
  return trial;
}

bool is_for_vulkan(qnl_choice_reason reason) { return reason < QNL_CHOICE_NO_DEVICE; }

#ifdef QUERNEL_WITH_VULKAN

constexpr uint32_t kTimedRuns = 7;                   // of a test vector, after one that warms up
constexpr uint64_t kTimedNanoseconds = 500'000'000;  // no further run after these

const char* name_of(const qnl_device* device) {
  DeviceProperties properties;
  device->table->properties(device, &properties);
  return properties.name;
}

// What came of all test vectors on a device.
struct Outcome {
  qnl_status status = QNL_OK;  // of making and running sessions
  bool right = true;
  uint64_t nanoseconds = 0;  // medians added up
  char reason[400] = "";     // why it failed or is wrong
};

uint64_t median(uint64_t* values, uint32_t count) {
  for (uint32_t i = 1; i < count; ++i)
    for (uint32_t k = i; k > 0 && values[k] < values[k - 1]; --k) {
      uint64_t smaller = values[k];
      values[k] = values[k - 1];
      values[k - 1] = smaller;
    }
  return values[count / 2];
}

qnl_status time_runs(qnl_session* session, uint64_t* nanoseconds, qnl_error* error) {
  uint64_t times[kTimedRuns], begin = platform::now_nanoseconds();
  uint32_t count = 0;
  while (count < kTimedRuns && (count == 0 || platform::now_nanoseconds() - begin < kTimedNanoseconds)) {
    qnl_status status = qnl_session_reset_state(session, error);
    uint64_t start = platform::now_nanoseconds();
    if (status == QNL_OK) status = qnl_session_run(session, error);
    if (status != QNL_OK) return status;
    times[count++] = platform::now_nanoseconds() - start;
  }
  *nanoseconds += median(times, count);
  return QNL_OK;
}

uint32_t test_count(const qnl_bundle* bundle) {
  uint32_t count = 0;
  qnl_test_info info;
  while (qnl_bundle_get_test(bundle, count, &info) == QNL_OK) ++count;
  return count;
}

void run_test(const qnl_bundle* bundle, qnl_device* device, const qnl_session_options& options, uint32_t test,
              Outcome* outcome) {
  qnl_symbol_value symbols[kMaxSymbols];
  qnl_session_options trial = trial_options(options);
  qnl_test_info info = {};
  qnl_entry_info entry = {};
  qnl_session* session = nullptr;
  qnl_error error = {};
  qnl_status status = qnl_bundle_get_test(bundle, test, &info);
  if (status == QNL_OK) status = qnl_bundle_get_entry(bundle, info.entry_point, &entry);
  trial.entry_point = entry.name;
  trial.symbols = symbols;
  trial.symbol_count = test_symbols(bundle, test, symbols);
  if (status == QNL_OK) status = qnl_session_create(bundle, device, &trial, &session, &error);
  if (status == QNL_OK) status = set_test_inputs(bundle, test, session, &error);
  if (status == QNL_OK) status = qnl_session_run(session, &error);
  char wrong[300];
  if (status == QNL_OK) outcome->right = compare_test_outputs(bundle, test, session, wrong, sizeof wrong);
  if (status == QNL_OK && outcome->right) status = time_runs(session, &outcome->nanoseconds, &error);
  qnl_session_destroy(session);
  outcome->status = status;
  if (status != QNL_OK || !outcome->right)
    snprintf(outcome->reason, sizeof outcome->reason, "test vector '%s': %.300s", info.name,
             status != QNL_OK ? error.text : wrong);
}

Outcome run_tests(const qnl_bundle* bundle, qnl_device* device, const qnl_session_options& options) {
  Outcome outcome;
  uint32_t count = test_count(bundle);
  for (uint32_t test = 0; test < count && outcome.status == QNL_OK && outcome.right; ++test)
    run_test(bundle, device, options, test, &outcome);
  return outcome;
}

void hash_text(qnl_hash_state* state, const char* text) {
  if (text != nullptr) qnl_hash_add(state, text, strlen(text));
  qnl_hash_add(state, "", 1);
}

// What a decision depends on and no Vulkan device has to be opened for.
uint64_t hash_known(const qnl_bundle* bundle, const qnl_choice_options& options) {
  qnl_cpu_options one = {};
  if (options.cpu != nullptr) one.feature_mask = options.cpu->feature_mask;
  one.threads = 1;
  qnl_device* cpu = nullptr;
  qnl_device_info info = {};
  if (qnl_device_open_cpu(&one, &cpu, nullptr) == QNL_OK) qnl_device_get_info(cpu, &info);
  qnl_device_close(cpu);
  const qnl_vulkan_options* vulkan = options.vulkan;
  const uint64_t numbers[] = {bundle->reader.hash(),
                              info.features,
                              static_cast<uint64_t>(info.arch),
                              QNL_RUNTIME_VERSION,
                              options.cpu == nullptr || options.cpu->threads == 0 ? 1 : options.cpu->threads,
                              vulkan != nullptr && vulkan->validation != 0,
                              vulkan != nullptr && vulkan->copy_always != 0,
                              vulkan != nullptr && vulkan->companion != nullptr};
  qnl_hash_state state;
  qnl_hash_begin(&state);
  qnl_hash_add(&state, numbers, sizeof numbers);
  // Not the symbols' values: what fits is looked at each time, and shapes vary.
  hash_text(&state, options.session == nullptr ? nullptr : options.session->entry_point);
  return qnl_hash_end(&state);
}

uint64_t end_key(qnl_hash_state* state) {
  uint64_t key = qnl_hash_end(state);
  return key == 0 ? 1 : key;
}

// Everything that a decision depends on.
uint64_t make_key(uint64_t known, const qnl_device* device) {
  DeviceProperties gpu;
  device->table->properties(device, &gpu);
  const uint64_t numbers[] = {known, gpu.identity, gpu.features};
  qnl_hash_state state;
  qnl_hash_begin(&state);
  qnl_hash_add(&state, numbers, sizeof numbers);
  hash_text(&state, gpu.name);
  return end_key(&state);
}

// In its place before a device is opened: how one is chosen, and among which.
uint64_t make_system_key(uint64_t known, const qnl_vulkan_options* vulkan) {
  const uint64_t numbers[] = {known, vulkan == nullptr ? 0 : vulkan->feature_mask};
  qnl_hash_state state;
  qnl_hash_begin(&state);
  qnl_hash_add(&state, numbers, sizeof numbers);
  hash_text(&state, vulkan == nullptr ? nullptr : vulkan->device);
  platform::describe_drivers(
      [](void* user, const void* data, uint64_t bytes) {
        qnl_hash_add(static_cast<qnl_hash_state*>(user), data, bytes);
      },
      &state);
  return end_key(&state);
}

bool has_code_for_vulkan(const qnl_bundle* bundle) {
  qnl_variant_info info;
  for (uint32_t i = 0; qnl_bundle_get_variant(bundle, i, &info) == QNL_OK; ++i)
    if (info.arch == QNL_ARCH_SPIRV) return true;
  return false;
}

#endif  // QUERNEL_WITH_VULKAN

// One choice on its way. Devices that are open when it goes are closed.
struct Chooser {
  const qnl_bundle* bundle;
  const qnl_choice_options& options;
  qnl_choice* choice;
  qnl_session_options session = {};
  qnl_device *vulkan = nullptr, *cpu = nullptr;
  qnl_status cpu_status = QNL_OK;  // whether the CPU can run the bundle
  qnl_error cpu_error = {};

  Chooser(const qnl_bundle* bundle, const qnl_choice_options& options, qnl_choice* choice)
      : bundle(bundle), options(options), choice(choice) {}
  ~Chooser() {
    qnl_device_close(vulkan);
    qnl_device_close(cpu);
  }

  __attribute__((format(printf, 3, 4))) void decide(qnl_choice_reason reason, const char* format, ...) {
    choice->reason = reason;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(choice->text, sizeof choice->text, format, arguments);
    va_end(arguments);
  }

  void open_cpu() {
    if (cpu != nullptr) return;
    qnl_requirements needs;
    cpu_status = qnl_device_open_cpu(options.cpu, &cpu, &cpu_error);
    if (cpu_status == QNL_OK) cpu_status = qnl_session_query(bundle, cpu, &session, &needs, &cpu_error);
  }

#ifdef QUERNEL_WITH_VULKAN

  // Whether the device can make a session at all, before anything is made.
  bool fits() {
    qnl_requirements needs;
    qnl_error error = {};
    qnl_status status = qnl_session_query(bundle, vulkan, &session, &needs, &error);
    if (status != QNL_OK) {
      decide(status == QNL_NO_MATCHING_VARIANT ? QNL_CHOICE_NO_VARIANT : QNL_CHOICE_FAILED, "%s", error.text);
      return false;
    }
    DeviceProperties has;
    vulkan->table->properties(vulkan, &has);
    uint64_t largest = needs.workspace_bytes;
    if (needs.state_bytes > largest) largest = needs.state_bytes;
    if (needs.io_bytes > largest) largest = needs.io_bytes;
    uint64_t all = needs.workspace_bytes + needs.state_bytes + needs.io_bytes + needs.constants_bytes;
    if (largest <= has.max_arena_bytes && all <= has.memory_bytes) return true;
    bool whole = largest <= has.max_arena_bytes;
    decide(QNL_CHOICE_NO_MEMORY, "device '%.200s': the bundle needs %s of %llu bytes, expected at most %llu",
           has.name, whole ? "memory" : "a block of memory",
           static_cast<unsigned long long>(whole ? all : largest),
           static_cast<unsigned long long>(whole ? has.memory_bytes : has.max_arena_bytes));
    return false;
  }

  // Without test vectors: what it computes of random input, where the CPU can be asked for the same.
  void decide_by_comparison() {
    open_cpu();
    DeviceComparison comparison(bundle, session);
    if (cpu_status != QNL_OK || !comparison.run_trusted(cpu)) {
      decide_unchecked();
      return;
    }
    const char* name = name_of(vulkan);
    bool same = false;
    char reason[400] = "";
    qnl_status status = comparison.run(vulkan, &same, reason, sizeof reason);
    qnl_error error = {};
    uint64_t there = 0, here = 0;
    if (status == QNL_OK && same) status = time_runs(comparison.session(), &there, &error);
    if (status != QNL_OK) {
      decide(status == QNL_OUT_OF_MEMORY ? QNL_CHOICE_NO_MEMORY : QNL_CHOICE_FAILED,
             "device '%.200s' failed: %s: %s", name, qnl_status_text(status),
             reason[0] != '\0' ? reason : error.text);
    } else if (!same) {
      decide(QNL_CHOICE_WRONG,
             "device '%.200s' is wrong: of random input it computes something else than the CPU: %s", name,
             reason);
    } else if (time_runs(comparison.trusted(), &here, &error) == QNL_OK) {
      decide_by_times(there, here, "computes what the CPU does of random input");
    } else {
      decide_unchecked();
    }
  }

  // What neither test vectors nor the CPU can check: the session that the caller is going to make, made once.
  void decide_unchecked() {
    DeviceProperties has;
    vulkan->table->properties(vulkan, &has);
    qnl_session* trial = nullptr;
    qnl_error error = {};
    qnl_status status = qnl_session_create(bundle, vulkan, &session, &trial, &error);
    qnl_session_destroy(trial);
    if (status != QNL_OK)
      decide(status == QNL_OUT_OF_MEMORY ? QNL_CHOICE_NO_MEMORY : QNL_CHOICE_FAILED, "device '%.200s': %s",
             has.name, error.text);
    else if (open_cpu(); has.is_software && cpu_status == QNL_OK)
      decide(QNL_CHOICE_SOFTWARE,
             "device '%.200s' computes on the CPU, and there is nothing to time it by (quernel compile "
             "--embed-tests "
             "stores test vectors)",
             has.name);
    else
      decide(QNL_CHOICE_UNCHECKED,
             "device '%.200s' is not checked: the bundle holds no test vectors (quernel compile "
             "--embed-tests stores some)",
             has.name);
  }

  void decide_by_tests() {
    const char* name = name_of(vulkan);
    Outcome there = run_tests(bundle, vulkan, session);
    choice->vulkan_nanoseconds = there.nanoseconds;
    if (there.status != QNL_OK) {
      decide(there.status == QNL_OUT_OF_MEMORY ? QNL_CHOICE_NO_MEMORY : QNL_CHOICE_FAILED,
             "device '%.200s' failed: %s: %s", name, qnl_status_text(there.status), there.reason);
      return;
    }
    if (!there.right) {
      decide(QNL_CHOICE_WRONG, "device '%.200s' is wrong: %s", name, there.reason);
      return;
    }
    open_cpu();
    Outcome here;
    if (cpu_status == QNL_OK) here = run_tests(bundle, cpu, session);
    if (cpu_status != QNL_OK || here.status != QNL_OK || !here.right) {
      decide(QNL_CHOICE_ONLY, "device '%.200s' is right; the CPU cannot be used: %s", name,
             cpu_status != QNL_OK ? cpu_error.text : here.reason);
      return;
    }
    char right[80];
    snprintf(right, sizeof right, "right on %u test vector%s", choice->test_count,
             choice->test_count == 1 ? "" : "s");
    decide_by_times(there.nanoseconds, here.nanoseconds, right);
  }

  // `right`: how it is known to be.
  void decide_by_times(uint64_t there, uint64_t here, const char* right) {
    choice->vulkan_nanoseconds = there;
    choice->cpu_nanoseconds = here;
    qnl_device_info info;
    qnl_device_get_info(cpu, &info);
    bool faster = there < here;
    double vulkan_ms = static_cast<double>(there) * 1e-6, cpu_ms = static_cast<double>(here) * 1e-6;
    decide(faster ? QNL_CHOICE_FASTER : QNL_CHOICE_SLOWER,
           "device '%.200s' is %s: %s, in %.4f ms; the CPU (%u thread%s) takes %.4f ms", name_of(vulkan),
           faster ? "faster" : "slower", right, vulkan_ms, info.threads, info.threads == 1 ? "" : "s",
           cpu_ms);
  }

  void decide_all() {
    if (!has_code_for_vulkan(bundle)) {
      decide(QNL_CHOICE_NO_VARIANT,
             "Vulkan: the bundle has no code for it; compile for this device with --target vulkan");
      return;
    }
    const char* path = options.cache_path;
    uint64_t known = path == nullptr ? 0 : hash_known(bundle, options);
    uint64_t system_key = path == nullptr ? 0 : make_system_key(known, options.vulkan);
    qnl_choice kept = {};
    bool has = path != nullptr && options.check_anew == 0 && read_choice(path, &kept);
    // Opening Vulkan loads every driver, which may take longer than the run.
    if (has && kept.system_key == system_key && options.force == 0 && !is_for_vulkan(kept.reason)) {
      use(kept);
      return;
    }
    qnl_error error = {};
    if (qnl_device_open_vulkan(options.vulkan, &vulkan, &error) != QNL_OK) {
      decide(QNL_CHOICE_NO_DEVICE, "%s", error.text);
      return;
    }
    if (!fits()) return;
    choice->key = path == nullptr ? 0 : make_key(known, vulkan);
    choice->system_key = system_key;
    // What has failed once may be forced to try again.
    if (has && kept.key == choice->key && (options.force == 0 || kept.reason != QNL_CHOICE_FAILED)) {
      bool is_moved = kept.system_key != system_key;
      kept.system_key = system_key;
      use(kept);
      if (is_moved) write_choice(path, kept);
      return;
    }
    choice->test_count = test_count(bundle);
    choice->test_count > 0 ? decide_by_tests() : decide_by_comparison();
    // Memory that others hold now may be free the next time.
    if (path != nullptr && choice->reason != QNL_CHOICE_NO_MEMORY) write_choice(path, *choice);
  }

  void use(const qnl_choice& kept) {
    *choice = kept;
    choice->is_cached = 1;
  }

#else

  void decide_all() { decide(QNL_CHOICE_NO_DEVICE, "this runtime was built without Vulkan"); }

#endif

  qnl_status choose(qnl_device** device, qnl_error* error) {
    if (options.session != nullptr) session = trial_options(*options.session);
    decide_all();
    bool can =
        is_for_vulkan(choice->reason) ||
        (options.force != 0 && (choice->reason == QNL_CHOICE_WRONG || choice->reason == QNL_CHOICE_SLOWER ||
                                choice->reason == QNL_CHOICE_SOFTWARE));
    if (can) return take(&vulkan, 1, device);
    if (options.force != 0)
      return fail(error, QNL_NO_MATCHING_VARIANT, "{}", static_cast<const char*>(choice->text));
    open_cpu();
    if (cpu_status == QNL_OK) return take(&cpu, 0, device);
    return fail(error, cpu_status, "no device can run the bundle: {}; CPU: {}",
                static_cast<const char*>(choice->text), static_cast<const char*>(cpu_error.text));
  }

  qnl_status take(qnl_device** from, int is_vulkan, qnl_device** device) {
    choice->is_vulkan = is_vulkan;
    *device = *from;
    *from = nullptr;
    return QNL_OK;
  }
};

}  // namespace
}  // namespace quernel::runtime

extern "C" {

qnl_status qnl_device_choose(const qnl_bundle* bundle, const qnl_choice_options* options, qnl_device** device,
                             qnl_choice* choice, qnl_error* error) {
  using namespace quernel::runtime;
  if (bundle == nullptr || device == nullptr || choice == nullptr)
    return fail(error, QNL_INVALID_ARGUMENT,
                "device: expected a bundle, and places for the device and the choice");
  *device = nullptr;
  *choice = {};
  qnl_choice_options defaults = {};
  return Chooser(bundle, options == nullptr ? defaults : *options, choice).choose(device, error);
}

void qnl_choice_give_up(const char* cache_path, qnl_choice* choice, const char* reason) {
  choice->reason = QNL_CHOICE_FAILED;
  choice->is_vulkan = choice->is_cached = 0;
  snprintf(choice->text, sizeof choice->text, "the Vulkan device failed in use: %s", reason);
#ifdef QUERNEL_WITH_VULKAN
  if (cache_path != nullptr && choice->key != 0) quernel::runtime::write_choice(cache_path, *choice);
#else
  (void)cache_path;
#endif
}

}  // extern "C"
