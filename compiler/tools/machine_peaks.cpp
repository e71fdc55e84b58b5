#include "machine_peaks.h"

#include <algorithm>
#include <vector>

#include "command.h"
#include "peak_kernels.h"
#include "quernel/runtime.hpp"

namespace quernel::tools {
namespace {

constexpr int kGroupsPerThread = 4;  // workgroups
constexpr int kSteps = 20000;        // of a chain of multiply-adds
constexpr int kSweeps = 8;           // over what lies near, in a run
constexpr int kFewestRuns = 3;
constexpr double kRunSeconds = 0.05;  // for each roof

// Work per second of the best run.
Expected<double> run_probe(const Bundle& bundle, const Device& device, const char* entry,
                           const PeakKernel& probe) {
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
  const std::vector<PeakKernel> probes = {multiply_adds(target, groups, kSteps),
                                          byte_products(target, groups, kSteps),
                                          reads("near_reads", target, threads, near, kSweeps),
                                          reads("far_reads", target, groups, std::max(near, far), 1)};
  std::string path = scratch_dir + "/peaks.qnl";
  QUERNEL_CHECK(write_peak_kernels(probes, target, path));
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
