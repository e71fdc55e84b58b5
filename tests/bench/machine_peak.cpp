// What one core of this machine can do, or several at once, measured: prints one JSON object with the rate of fused
// multiply-adds and, for each number of bytes given, the rate at which a buffer of that size is read over and over,
// a part by each thread.
//
//   machine_peak [--threads N] [BYTES…]
//
// To be compiled with -O2 -march=native -pthread.
#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif
constexpr int kLanes = kVectorBytes / 4;
// Enough independent sums to hide the latency of two units, few enough to stay in registers.
constexpr int kSums = 12;
constexpr int kBursts = 40;
constexpr double kBurstSeconds = 0.02;

typedef float Floats __attribute__((vector_size(kVectorBytes)));
typedef uint32_t Words __attribute__((vector_size(kVectorBytes)));

double now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// The best burst's work per second; work(n) does n units. Others on the machine only make bursts slower.
template <class Work>
double best_rate(Work work) {
  uint64_t units = 1;
  double seconds = 0;
  for (;; units *= 2) {
    const double begin = now();
    work(units);
    seconds = now() - begin;
    if (seconds > kBurstSeconds / 2) break;
  }
  double best = static_cast<double>(units) / seconds;
  for (int i = 0; i < kBursts; i++) {
    const double begin = now();
    work(units);
    best = std::max(best, static_cast<double>(units) / (now() - begin));
  }
  return best;
}

void keep(Floats value) { __asm__ volatile("" : : "x"(value)); }
void keep(Words value) { __asm__ volatile("" : : "x"(value)); }

// Runs work(thread) in all threads at once.
template <class Work>
void on_all(int threads, Work work) {
  std::vector<std::thread> others;
  for (int t = 1; t < threads; t++) others.emplace_back(work, t);
  work(0);
  for (std::thread& other : others) other.join();
}

double multiply_adds_per_second(int threads) {
  volatile float seed = 1.0f;
  const Floats factor = Floats{} + seed * 0.999f, addend = Floats{} + seed * 0.001f;
  const auto work = [&](uint64_t n) {
    Floats sums[kSums];
    for (int i = 0; i < kSums; i++) sums[i] = Floats{} + seed * static_cast<float>(i);
    for (uint64_t k = 0; k < n; k++) {
#pragma GCC unroll 12
      for (int i = 0; i < kSums; i++) sums[i] = sums[i] * factor + addend;
    }
    for (int i = 0; i < kSums; i++) keep(sums[i]);
  };
  return best_rate([&](uint64_t n) { on_all(threads, [&](int) { work(n); }); }) * threads * kSums * kLanes;
}

double bytes_read_per_second(uint64_t bytes, int threads) {
  constexpr uint64_t kStep = 8;
  const uint64_t part = std::max<uint64_t>(bytes / kVectorBytes / kStep / threads, 1) * kStep;
  const uint64_t vectors = part * threads;
  const uint64_t size = (vectors * kVectorBytes + (2u << 20) - 1) >> 21 << 21;
  void* memory = aligned_alloc(2u << 20, size);
  if (memory == nullptr) return 0;
  madvise(memory, size, MADV_HUGEPAGE);
  Words* data = static_cast<Words*>(memory);
  for (uint64_t i = 0; i < vectors; i++) data[i] = Words{} + static_cast<uint32_t>(i);
  const auto read = [](const Words* from, uint64_t count, uint64_t n) {
    Words sums[kStep] = {};
    for (uint64_t k = 0; k < n; k++) {
      for (uint64_t i = 0; i < count; i += kStep) {
#pragma GCC unroll 8
        for (uint64_t j = 0; j < kStep; j++) sums[j] += from[i + j];
      }
      __asm__ volatile("" : : : "memory");
    }
    for (Words sum : sums) keep(sum);
  };
  const double rate =
      best_rate([&](uint64_t n) { on_all(threads, [&](int t) { read(data + t * part, part, n); }); });
  free(memory);
  return rate * static_cast<double>(vectors * kVectorBytes);
}

}  // namespace

int main(int argc, char** argv) {
  const bool several = argc > 2 && strcmp(argv[1], "--threads") == 0;
  const int threads = several ? std::max(1, atoi(argv[2])) : 1, first = several ? 3 : 1;
  printf("{\"gflops\": %.1f, \"read_gb_per_s\": {", 2e-9 * multiply_adds_per_second(threads));
  for (int i = first; i < argc; i++) {
    const uint64_t bytes = strtoull(argv[i], nullptr, 10);
    printf("%s\"%llu\": %.1f", i == first ? "" : ", ", static_cast<unsigned long long>(bytes),
           1e-9 * bytes_read_per_second(bytes, threads));
  }
  printf("}}\n");
  return 0;
}
