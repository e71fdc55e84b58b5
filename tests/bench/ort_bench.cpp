// Times one ONNX model with ONNX Runtime's CPU provider, in this process, and prints one JSON object.
//
//   ort_bench MODEL.onnx [--threads N] [--min-seconds S | --first-run]
//
// --first-run ends after the first run, with first_run_ms in place of latency_ms.
// Fields are named as quernel-run --json names them: load_ms is CreateSession from a file in the page cache
// (parsing, graph optimisation, weight packing), latency_ms the wall time of Run() with inputs prepared
// before, peak_rss_bytes the process's largest resident size. core_round_trip_ns (two or more threads) is the
// round trip of a cache line between the first two CPUs: where a virtual machine has moved them far apart, it
// is several times its usual value, and small models run slower with two threads; such a figure is not to be
// trusted.
//
// $ORT_LIB names libonnxruntime.so.1. No header of ONNX Runtime is needed: the few entry points used are
// called by their position in the versioned, append-only function table that OrtGetApiBase()->GetApi(1)
// returns.
#include <dirent.h>
#include <dlfcn.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

struct ApiBase {
  const void* const* (*get)(uint32_t);
  const char* (*version)();
};

// Positions in the function table of API version 1.
enum Slot {
  kErrorMessage = 2,
  kCreateEnv = 3,
  kCreateSession = 7,
  kRun = 9,
  kCreateOptions = 10,
  kOptimizationLevel = 23,
  kIntraThreads = 24,
  kInterThreads = 25,
  kInputCount = 30,
  kOutputCount = 31,
  kInputType = 33,
  kInputName = 36,
  kOutputName = 37,
  kCreateTensor = 49,
  kToTensorInfo = 55,
  kElementType = 60,
  kRank = 61,
  kDims = 62,
  kCpuMemory = 69,
  kAllocator = 78,
  kReleaseValue = 96,
};

constexpr int kAllOptimizations = 99;
constexpr int kWarmUpRuns = 3;
constexpr int kLeastRuns = 15;

const void* const* api;

template <class Result, class... Args>
Result call(int slot, Args... args) {
  return reinterpret_cast<Result (*)(Args...)>(const_cast<void*>(api[slot]))(args...);
}

// Calls an entry point that returns a status; ends the process when it is an error.
template <class... Args>
void must(const char* what, int slot, Args... args) {
  const void* status = call<const void*>(slot, args...);
  if (!status) return;
  fprintf(stderr, "ort_bench: %s: %s\n", what, call<const char*>(kErrorMessage, status));
  exit(3);
}

double now_ms() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

int64_t peak_rss_bytes() {
  FILE* file = fopen("/proc/self/status", "r");
  char line[256];
  long long kib = 0;
  while (file && fgets(line, sizeof line, file)) {
    if (sscanf(line, "VmHWM: %lld", &kib) == 1) break;
  }
  if (file) fclose(file);
  return kib * 1024;
}

std::vector<int> allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cpus;
  for (int i = 0; i < CPU_SETSIZE; i++) {
    if (CPU_ISSET(i, &set)) cpus.push_back(i);
  }
  return cpus;
}

void bind_task(int task, const std::vector<int>& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int cpu : cpus) CPU_SET(cpu, &set);
  sched_setaffinity(task, sizeof set, &set);
}

std::vector<int> tasks() {
  std::vector<int> ids;
  DIR* dir = opendir("/proc/self/task");
  while (dirent* entry = dir ? readdir(dir) : nullptr) {
    if (int id = atoi(entry->d_name)) ids.push_back(id);
  }
  if (dir) closedir(dir);
  std::sort(ids.begin(), ids.end());
  return ids;
}

// One CPU for each computing thread: the caller, then the threads that CreateSession started. Without it the
// kernel may leave the caller and a worker of ONNX Runtime on one core for seconds, at twice the latency.
void spread(const std::vector<int>& tasks_before) {
  const std::vector<int> cpus = allowed_cpus();
  std::vector<int> computing{static_cast<int>(getpid())};
  for (int id : tasks()) {
    if (!std::binary_search(tasks_before.begin(), tasks_before.end(), id)) computing.push_back(id);
  }
  for (size_t i = 0; i < computing.size() && cpus.size() > 1; i++)
    bind_task(computing[i], {cpus[i % cpus.size()]});
}

// Lower quartile over short bursts, so that other work on the machine matters little.
double core_round_trip_ns() {
  const std::vector<int> cpus = allowed_cpus();
  if (cpus.size() < 2) return 0;
  constexpr int kBursts = 200, kTrips = 100;
  alignas(128) static std::atomic<int> turn;
  turn = 0;
  std::thread partner([&] {
    bind_task(0, {cpus[1]});
    for (int i = 0; i < kBursts * kTrips; i++) {
      while (turn.load(std::memory_order_acquire) != 2 * i + 1) {
      }
      turn.store(2 * i + 2, std::memory_order_release);
    }
  });
  bind_task(0, {cpus[0]});
  std::vector<double> bursts;
  for (int burst = 0, i = 0; burst < kBursts; burst++) {
    const double start = now_ms();
    for (int k = 0; k < kTrips; k++, i++) {
      turn.store(2 * i + 1, std::memory_order_release);
      while (turn.load(std::memory_order_acquire) != 2 * i + 2) {
      }
    }
    bursts.push_back((now_ms() - start) * 1e6 / kTrips);
  }
  partner.join();
  bind_task(0, cpus);
  std::sort(bursts.begin(), bursts.end());
  return bursts[bursts.size() / 4];
}

struct Values {
  std::vector<const char*> names;
  std::vector<void*> tensors;
  std::vector<std::vector<uint8_t>> memory;
};

size_t element_bytes(int type) {
  switch (type) {
    case 1:
      return 4;  // float
    case 2:
      return 1;  // uint8
    case 6:
      return 4;  // int32
    case 7:
      return 8;  // int64
    case 9:
      return 1;  // bool
    default:
      return 0;
  }
}

// Random floats in [0, 1), ones for integers; free dimensions are 1.
Values make_inputs(void* session, void* allocator, void* cpu_memory) {
  Values inputs;
  size_t count = 0;
  must("InputCount", kInputCount, session, &count);
  inputs.memory.resize(count);
  uint64_t seed = 88172645463325252ull;
  for (size_t i = 0; i < count; i++) {
    char* name = nullptr;
    void* type_info = nullptr;
    const void* info = nullptr;
    int type = 0;
    size_t rank = 0;
    must("InputName", kInputName, session, i, allocator, &name);
    must("InputType", kInputType, session, i, &type_info);
    must("ToTensorInfo", kToTensorInfo, static_cast<const void*>(type_info), &info);
    must("ElementType", kElementType, info, &type);
    must("Rank", kRank, info, &rank);
    std::vector<int64_t> dims(rank);
    must("Dims", kDims, info, dims.data(), rank);
    size_t elements = 1;
    for (int64_t& d : dims) elements *= d = std::max<int64_t>(d, 1);
    const size_t width = element_bytes(type);
    if (width == 0) {
      fprintf(stderr, "ort_bench: input %s: expected a float or integer tensor, found ONNX element type %d\n",
              name, type);
      exit(3);
    }
    inputs.memory[i].assign(elements * width + 64, 0);
    uint8_t* data = inputs.memory[i].data();
    for (size_t k = 0; k < elements; k++) {
      seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
      if (type == 1) {
        reinterpret_cast<float*>(data)[k] =
            static_cast<float>(static_cast<double>(seed >> 11) / 9007199254740992.0);
      } else {
        data[k * width] = 1;  // little-endian
      }
    }
    void* tensor = nullptr;
    must("CreateTensor", kCreateTensor, static_cast<const void*>(cpu_memory), static_cast<void*>(data),
         elements * width, static_cast<const int64_t*>(dims.data()), rank, type, &tensor);
    inputs.names.push_back(name);
    inputs.tensors.push_back(tensor);
  }
  return inputs;
}

std::vector<const char*> output_names(void* session, void* allocator) {
  size_t count = 0;
  must("OutputCount", kOutputCount, session, &count);
  std::vector<const char*> names;
  for (size_t i = 0; i < count; i++) {
    char* name = nullptr;
    must("OutputName", kOutputName, session, i, allocator, &name);
    names.push_back(name);
  }
  return names;
}

int measure(const char* model, int threads, double min_seconds, bool first_run_only) {
  const char* path = getenv("ORT_LIB");
  void* library = dlopen(path ? path : "libonnxruntime.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    fprintf(stderr, "ort_bench: %s\n", dlerror());
    return 2;
  }
  const auto* base = reinterpret_cast<const ApiBase* (*)()>(dlsym(library, "OrtGetApiBase"))();
  api = base->get(1);

  void *environment = nullptr, *options = nullptr, *session = nullptr, *allocator = nullptr,
       *cpu_memory = nullptr;
  must("CreateEnv", kCreateEnv, 3, "ort_bench", &environment);
  must("CreateSessionOptions", kCreateOptions, &options);
  must("SetIntraOpNumThreads", kIntraThreads, options, threads);
  must("SetInterOpNumThreads", kInterThreads, options, 1);
  must("SetGraphOptimizationLevel", kOptimizationLevel, options, kAllOptimizations);

  double round_trip = threads > 1 && !first_run_only ? core_round_trip_ns() : 0;
  const std::vector<int> tasks_before = tasks();
  const double load_start = now_ms();
  must("CreateSession", kCreateSession, environment, model, static_cast<const void*>(options), &session);
  const double load_ms = now_ms() - load_start;
  if (threads > 1) spread(tasks_before);

  must("Allocator", kAllocator, &allocator);
  must("CpuMemory", kCpuMemory, 1, 0, &cpu_memory);
  Values inputs = make_inputs(session, allocator, cpu_memory);
  const std::vector<const char*> names = output_names(session, allocator);
  std::vector<void*> outputs(names.size(), nullptr);
  auto run = [&] {
    const double start = now_ms();
    must("Run", kRun, session, static_cast<const void*>(nullptr), inputs.names.data(),
         static_cast<void* const*>(inputs.tensors.data()), inputs.tensors.size(), names.data(), names.size(),
         outputs.data());
    const double elapsed = now_ms() - start;
    for (void*& value : outputs) {
      if (value) call<void>(kReleaseValue, value);
      value = nullptr;
    }
    return elapsed;
  };
  const double first_run_ms = run();
  if (first_run_only) {
    printf("{\"load_ms\": %.3f, \"first_run_ms\": %.5g, \"peak_rss_bytes\": %lld, \"version\": \"%s\"}\n",
           load_ms, first_run_ms, static_cast<long long>(peak_rss_bytes()), base->version());
    fflush(stdout);
    _exit(0);
  }
  for (int i = 1; i < kWarmUpRuns; i++) run();
  std::vector<double> times;
  const double start = now_ms();
  while (static_cast<int>(times.size()) < kLeastRuns || now_ms() - start < min_seconds * 1e3)
    times.push_back(run());
  std::sort(times.begin(), times.end());
  if (threads > 1) {
    bind_task(0, allowed_cpus());
    round_trip = std::max(round_trip, core_round_trip_ns());
  }
  printf(
      "{\"load_ms\": %.3f, \"latency_ms\": {\"median\": %.5g, \"min\": %.5g}, \"peak_rss_bytes\": %lld, "
      "\"runs\": %zu, "
      "\"core_round_trip_ns\": %.0f, \"version\": \"%s\"}\n",
      load_ms, times[times.size() / 2], times[0], static_cast<long long>(peak_rss_bytes()), times.size(),
      round_trip, base->version());
  fflush(stdout);
  _exit(0);  // the figures are out; the destructors of ONNX Runtime's threads are nobody's interest
}

}  // namespace

int main(int argc, char** argv) {
  const char* model = nullptr;
  int threads = 1;
  double min_seconds = 1;
  bool first_run_only = false;
  for (int i = 1; i < argc; i++) {
    const std::string option = argv[i];
    if (option == "--threads" && i + 1 < argc) {
      threads = atoi(argv[++i]);
    } else if (option == "--min-seconds" && i + 1 < argc) {
      min_seconds = atof(argv[++i]);
    } else if (option == "--first-run") {
      first_run_only = true;
    } else if (option[0] != '-' && !model) {
      model = argv[i];
    } else {
      model = nullptr;
      break;
    }
  }
  if (!model || threads < 1) {
    fprintf(stderr, "usage: ort_bench MODEL.onnx [--threads N] [--min-seconds S | --first-run]\n");
    return 64;
  }
  return measure(model, threads, min_seconds, first_run_only);
}
