#include "trace_file.h"

#include <inttypes.h>
#include <stdio.h>

#include <algorithm>
#include <map>

#include "list_bundle.h"

namespace quernel::run {
namespace {

constexpr const char* kKindNames[] = {"run",      "item", "submit", "wait",        "upload",
                                      "download", "copy", "record", "descriptors", "pipeline"};
constexpr uint32_t kKinds = sizeof kKindNames / sizeof kKindNames[0];
static_assert(QNL_TRACE_PIPELINE + 1 == kKinds);

bool moves_bytes(qnl_trace_kind kind) {
  return kind == QNL_TRACE_UPLOAD || kind == QNL_TRACE_DOWNLOAD || kind == QNL_TRACE_COPY;
}

double milliseconds(uint64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-6; }

// "12.345": microseconds from the first event on.
std::string microseconds(uint64_t nanoseconds) {
  char text[40];
  snprintf(text, sizeof text, "%" PRIu64 ".%03" PRIu64, nanoseconds / 1000, nanoseconds % 1000);
  return text;
}

std::string track_name(int track, const std::string& name) {
  return "{\"name\": \"thread_name\", \"ph\": \"M\", \"pid\": 1, \"tid\": " + std::to_string(track) +
         ", \"args\": {\"name\": " + json_string(name.c_str()) + "}}";
}

}  // namespace

// An item over all its executions.
struct TraceRecorder::ItemSum {
  const qnl_session* session = nullptr;
  uint32_t item = 0;
  qnl_item_info info = {};
  uint64_t nanoseconds = 0, runs = 0, flops = 0, bytes = 0;
  uint64_t least_nanoseconds = ~uint64_t{0};  // of a run
};

// What is no item, by its kind.
struct TraceRecorder::WorkSum {
  uint64_t count = 0, nanoseconds = 0, bytes = 0;
};

void TraceRecorder::start(const Device& device) {
  device_ = device.get();
  qnl_device_info info;
  qnl_device_get_info(device_, &info);
  device_name_ = info.name;
  qnl_device_set_trace(device_, on_event, this);
}

void TraceRecorder::stop() {
  if (device_ != nullptr) qnl_device_set_trace(device_, nullptr, nullptr);
  device_ = nullptr;
}

void TraceRecorder::on_event(void* user, const qnl_trace_event* event) {
  Record record = {*event, {}};
  if (event->kind == QNL_TRACE_ITEM &&
      (event->session == nullptr ||
       qnl_session_get_item(event->session, event->item, &record.item) != QNL_OK))
    record.item.name = record.item.source_node = "";
  static_cast<TraceRecorder*>(user)->records_.push_back(record);
}

tensor_file::Error TraceRecorder::write(const std::string& path) const {
  uint64_t origin = ~uint64_t{0};
  for (const Record& record : records_) origin = std::min(origin, record.event.begin_nanoseconds);
  std::string text = "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n" + track_name(0, "host") + ",\n" +
                     track_name(1, "queue of " + device_name_);
  for (const Record& record : records_) {
    const qnl_trace_event& e = record.event;
    bool item = e.kind == QNL_TRACE_ITEM;
    text += ",\n{\"name\": " + json_string(item ? record.item.name : kKindNames[e.kind]) + ", \"cat\": \"" +
            kKindNames[e.kind] + "\", \"ph\": \"X\", \"pid\": 1, \"tid\": " + (e.on_queue != 0 ? "1" : "0") +
            ", \"ts\": " + microseconds(e.begin_nanoseconds - origin) +
            ", \"dur\": " + microseconds(e.end_nanoseconds - e.begin_nanoseconds) + ", \"args\": {";
    if (item)
      text += "\"item\": " + std::to_string(e.item) + ", \"node\": " + json_string(record.item.source_node) +
              ", \"workgroups\": " + std::to_string(record.item.workgroups) +
              ", \"flops\": " + std::to_string(record.item.flops) +
              ", \"bytes_read\": " + std::to_string(record.item.bytes_read) +
              ", \"bytes_written\": " + std::to_string(record.item.bytes_written);
    if (moves_bytes(e.kind)) text += "\"bytes\": " + std::to_string(e.bytes);
    text += "}}";
  }
  text += "\n]}\n";
  return tensor_file::write_file(path, text.data(), text.size());
}

std::vector<TraceRecorder::ItemSum> TraceRecorder::sum_items() const {
  std::vector<ItemSum> sums;
  std::map<std::pair<const qnl_session*, uint32_t>, size_t> places;
  for (size_t i = profile_begin_; i < records_.size(); ++i) {
    const Record& record = records_[i];
    if (record.event.kind != QNL_TRACE_ITEM) continue;
    auto [place, fresh] = places.try_emplace({record.event.session, record.event.item}, sums.size());
    if (fresh) sums.push_back({record.event.session, record.event.item, record.item});
    ItemSum* sum = &sums[place->second];
    const uint64_t nanoseconds = record.event.end_nanoseconds - record.event.begin_nanoseconds;
    sum->nanoseconds += nanoseconds;
    sum->least_nanoseconds = std::min(sum->least_nanoseconds, nanoseconds);
    sum->runs += 1;
    sum->flops += record.item.flops;
    sum->bytes += record.item.bytes_read + record.item.bytes_written;
  }
  return sums;
}

std::vector<TraceRecorder::WorkSum> TraceRecorder::sum_work() const {
  std::vector<WorkSum> sums(kKinds);
  for (size_t i = profile_begin_; i < records_.size(); ++i) {
    const qnl_trace_event& event = records_[i].event;
    WorkSum& sum = sums[event.kind];
    sum.count += 1;
    sum.nanoseconds += event.end_nanoseconds - event.begin_nanoseconds;
    sum.bytes += event.bytes;
  }
  return sums;
}

void TraceRecorder::print_profile() const {
  std::vector<ItemSum> items = sum_items();
  std::stable_sort(items.begin(), items.end(),
                   [](const ItemSum& a, const ItemSum& b) { return a.nanoseconds > b.nanoseconds; });
  uint64_t total = 0;
  for (const ItemSum& item : items) total += item.nanoseconds;
  printf("%12s %7s %6s %10s %10s  %s\n", "time", "share", "runs", "GFLOP/s", "GB/s", "kernel, first node");
  for (const ItemSum& item : items) {
    auto time = static_cast<double>(std::max<uint64_t>(item.nanoseconds, 1));
    printf("%9.4f ms %6.1f%% %6" PRIu64 " %10.2f %10.2f  %s%s%s\n",
           milliseconds(item.nanoseconds) / static_cast<double>(item.runs),
           100 * static_cast<double>(item.nanoseconds) / static_cast<double>(std::max<uint64_t>(total, 1)),
           item.runs, static_cast<double>(item.flops) / time, static_cast<double>(item.bytes) / time,
           shown(item.info.name).c_str(), item.info.source_node[0] == '\0' ? "" : ", ",
           shown(item.info.source_node).c_str());
  }
  std::vector<WorkSum> work = sum_work();
  for (uint32_t kind = 0; kind < kKinds; ++kind) {
    if (kind == QNL_TRACE_ITEM || work[kind].count == 0) continue;
    printf("%9.4f ms  %" PRIu64 " x %s", milliseconds(work[kind].nanoseconds), work[kind].count,
           kKindNames[kind]);
    if (moves_bytes(static_cast<qnl_trace_kind>(kind))) printf(", %" PRIu64 " bytes", work[kind].bytes);
    printf("\n");
  }
}

std::string TraceRecorder::json_profile() const {
  std::string items, other;
  for (const ItemSum& item : sum_items())
    items += (items.empty() ? "" : ", ") + ("{\"name\": " + json_string(item.info.name)) +
             ", \"node\": " + json_string(item.info.source_node) +
             ", \"ms\": " + json_number(milliseconds(item.nanoseconds) / static_cast<double>(item.runs)) +
             ", \"min_ms\": " + json_number(milliseconds(item.least_nanoseconds)) +
             ", \"runs\": " + std::to_string(item.runs) +
             ", \"flops\": " + std::to_string(item.flops / item.runs) +
             ", \"bytes\": " + std::to_string(item.bytes / item.runs) + "}";
  std::vector<WorkSum> work = sum_work();
  for (uint32_t kind = 0; kind < kKinds; ++kind) {
    if (kind == QNL_TRACE_ITEM) continue;
    other += (other.empty() ? "\"" : ", \"") + std::string(kKindNames[kind]) +
             "\": {\"count\": " + std::to_string(work[kind].count) +
             ", \"ms\": " + json_number(milliseconds(work[kind].nanoseconds)) +
             ", \"bytes\": " + std::to_string(work[kind].bytes) + "}";
  }
  return ", \"items\": [" + items + "], \"device_work\": {" + other + "}";
}

}  // namespace quernel::run
