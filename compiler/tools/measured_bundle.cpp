#include "measured_bundle.h"

#include <fmt/format.h>

#include <optional>

#include "command.h"
#include "json.h"
#include "support/file.h"

namespace quernel::tools {
namespace {

class BundleHere : public MeasuredBundle {
 public:
  static Expected<std::unique_ptr<MeasuredBundle>> open(const std::string& path, const Device& device,
                                                        const std::vector<std::string>& symbols) {
    auto result = std::make_unique<BundleHere>();
    qnl_error error;
    Bundle bundle;
    if (bundle.open(path.c_str(), nullptr, &error) != QNL_OK) return runtime_error(error);
    qnl_entry_info info;
    for (uint32_t e = 0; qnl_bundle_get_entry(bundle.get(), e, &info) == QNL_OK; ++e) {
      QUERNEL_TRY(std::unique_ptr<ReadyBundle> ready, make_ready(path, device, info.name, symbols));
      for (ItemAbout& item : items_of(ready->bundle, ready->entry)) result->items.push_back(std::move(item));
      result->entries_.push_back(std::move(ready));
    }
    return std::unique_ptr<MeasuredBundle>(std::move(result));
  }

  Expected<std::vector<std::vector<double>>> run(int count) override {
    QUERNEL_CHECK(run_once());
    std::vector<std::vector<double>> runs;
    for (int i = 0; i < count; ++i) {
      QUERNEL_TRY(std::vector<double> times, run_once());
      runs.push_back(std::move(times));
    }
    return runs;
  }

 private:
  Expected<std::vector<double>> run_once() {
    std::vector<double> times;
    for (const std::unique_ptr<ReadyBundle>& entry : entries_) {
      QUERNEL_TRY(std::vector<double> own, time_items(entry->session));
      times.insert(times.end(), own.begin(), own.end());
    }
    return times;
  }

  std::vector<std::unique_ptr<ReadyBundle>> entries_;
};

class PlaceHere : public MeasuringPlace {
 public:
  static Expected<std::unique_ptr<MeasuringPlace>> open(int threads) {
    auto place = std::make_unique<PlaceHere>();
    qnl_error error;
    if (place->device_.open_cpu(static_cast<uint32_t>(threads), &error) != QNL_OK)
      return runtime_error(error);
    return std::unique_ptr<MeasuringPlace>(std::move(place));
  }

  Expected<std::unique_ptr<MeasuredBundle>> open(const std::string& path, const std::string& /*name*/,
                                                 const std::vector<std::string>& symbols) override {
    return BundleHere::open(path, device_, symbols);
  }

 private:
  Device device_;
};

// What a command on a device may take: a run of the largest models on small processors.
constexpr double kRunSeconds = 600;

class BundleThere : public MeasuredBundle {
 public:
  BundleThere(DeviceRunner& runner, std::string place, std::string answer, std::vector<std::string> arguments)
      : runner_(runner),
        place_(std::move(place)),
        answer_(std::move(answer)),
        arguments_(std::move(arguments)) {}

  Status describe_items(const std::string& path) {
    qnl_error error;
    Bundle bundle;
    if (bundle.open(path.c_str(), nullptr, &error) != QNL_OK) return runtime_error(error);
    qnl_entry_info info;
    for (uint32_t e = 0; qnl_bundle_get_entry(bundle.get(), e, &info) == QNL_OK; ++e) {
      entries_.emplace_back(info.name);
      for (ItemAbout& item : items_of(bundle, e)) items.push_back(std::move(item));
    }
    return {};
  }

  Expected<std::vector<std::vector<double>>> run(int count) override {
    std::vector<double> times;
    for (const std::string& entry : entries_) QUERNEL_CHECK(run_entry(entry, count, times));
    if (times.size() != items.size())
      return internal_error(
          fmt::format("expected times of {} items from quernel-run, found {}", items.size(), times.size()));
    return std::vector<std::vector<double>>{std::move(times)};
  }

 private:
  Status run_entry(const std::string& entry, int count, std::vector<double>& times) {
    std::vector<std::string> words{
        place_, "--entry", entry, "--profile", "--json", "--repeat", std::to_string(count + 1)};
    words.insert(words.end(), arguments_.begin(), arguments_.end());
    const ProcessResult done =
        runner_.run(words, {.output = answer_, .errors = answer_ + ".log", .timeout_seconds = kRunSeconds});
    if (!done.succeeded()) return invalid_input("the device does not run the model: " + done.failure());
    std::string reason;
    const std::optional<std::string> text = read_file(answer_, &reason);
    if (!text) return internal_error(answer_ + ": " + reason);
    QUERNEL_TRY(Json json, parse_json(*text, answer_));
    for (const Json& item : json.at("items").array())
      times.push_back(item.at("ms").number().value_or(0) * 1e-3);
    return {};
  }

  DeviceRunner& runner_;
  std::string place_, answer_;
  std::vector<std::string> arguments_, entries_;
};

class PlaceThere : public MeasuringPlace {
 public:
  PlaceThere(std::unique_ptr<DeviceRunner> runner, int threads, std::string scratch_dir)
      : runner_(std::move(runner)), threads_(threads), scratch_(std::move(scratch_dir)) {}

  Expected<std::unique_ptr<MeasuredBundle>> open(const std::string& path, const std::string& name,
                                                 const std::vector<std::string>& symbols) override {
    std::vector<std::string> arguments{"--threads", std::to_string(threads_)};
    for (const std::string& symbol : symbols) arguments.insert(arguments.end(), {"--symbol", symbol});
    QUERNEL_TRY(std::string place, runner_->transport().put(path, name, false));
    auto bundle = std::make_unique<BundleThere>(*runner_, std::move(place), scratch_ + "/times.json",
                                                std::move(arguments));
    QUERNEL_CHECK(bundle->describe_items(path));
    return std::unique_ptr<MeasuredBundle>(std::move(bundle));
  }

 private:
  std::unique_ptr<DeviceRunner> runner_;
  int threads_;
  std::string scratch_;
};

}  // namespace

Expected<std::unique_ptr<MeasuringPlace>> measuring_place(const DeviceFlags& device, int threads,
                                                          const std::string& target,
                                                          const std::string& scratch_dir) {
  if (device.on == "local") return PlaceHere::open(threads);
  if (device.on.rfind("qemu", 0) == 0)
    return unsupported("--on " + device.on + ": an emulator's times are not the processor's", {},
                       "tune on a device: --on ssh:HOST or adb");
  QUERNEL_TRY(CodeKinds code, code_of_targets({target}));
  QUERNEL_TRY(std::unique_ptr<DeviceRunner> runner, DeviceRunner::open(device, std::move(code), scratch_dir));
  return std::unique_ptr<MeasuringPlace>(
      std::make_unique<PlaceThere>(std::move(runner), threads, scratch_dir));
}

}  // namespace quernel::tools
