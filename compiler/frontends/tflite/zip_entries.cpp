#include "frontends/tflite/zip_entries.h"

#include <algorithm>

namespace quernel::tflite_import {
namespace {

// APPNOTE.TXT, 4.3: little-endian, fields at these offsets.
constexpr size_t kEndBytes = 22, kMostComment = 65535, kCentralBytes = 46, kLocalBytes = 30;
constexpr uint32_t kEndMark = 0x06054B50, kCentralMark = 0x02014B50, kLocalMark = 0x04034B50;
constexpr size_t kMostEntries = 1024;
constexpr uint32_t kStored = 0;

class Reader {
 public:
  explicit Reader(std::span<const uint8_t> file) : file_(file) {}

  std::vector<ZipEntry> run() const {
    std::optional<uint64_t> end = find_end();
    if (!end) return {};
    uint64_t count = number(*end + 10, 2), bytes = number(*end + 12, 4), begin = number(*end + 16, 4);
    if (bytes > *end || begin > *end - bytes || count > kMostEntries) return {};
    // Offsets count from the archive's beginning, which may be behind the model.
    uint64_t base = *end - bytes - begin;
    std::vector<ZipEntry> entries;
    for (uint64_t at = base + begin; entries.size() < count;) {
      if (!fits(at, kCentralBytes) || number(at, 4) != kCentralMark) return {};
      uint64_t name = number(at + 28, 2), rest = number(at + 30, 2) + number(at + 32, 2);
      if (!fits(at + kCentralBytes, name)) return {};
      entries.push_back({text(at + kCentralBytes, name), data(base, at)});
      at += kCentralBytes + name + rest;
    }
    return entries;
  }

 private:
  bool fits(uint64_t at, uint64_t bytes) const { return at <= file_.size() && bytes <= file_.size() - at; }

  uint64_t number(uint64_t at, int bytes) const {
    uint64_t value = 0;
    for (int i = bytes; i-- > 0;)
      value = value << 8 | file_[static_cast<size_t>(at) + static_cast<size_t>(i)];
    return value;
  }

  std::string text(uint64_t at, uint64_t bytes) const {
    return {reinterpret_cast<const char*>(file_.data()) + at, static_cast<size_t>(bytes)};
  }

  std::optional<uint64_t> find_end() const {
    for (uint64_t back = kEndBytes; back <= std::min(file_.size(), kEndBytes + kMostComment); ++back)
      if (number(file_.size() - back, 4) == kEndMark) return file_.size() - back;
    return std::nullopt;
  }

  // `at`: of the entry in the central directory.
  std::optional<std::span<const uint8_t>> data(uint64_t base, uint64_t at) const {
    uint64_t packed = number(at + 20, 4), size = number(at + 24, 4), local = base + number(at + 42, 4);
    if (number(at + 10, 2) != kStored || packed != size) return std::nullopt;
    if (!fits(local, kLocalBytes) || number(local, 4) != kLocalMark) return std::nullopt;
    uint64_t begin = local + kLocalBytes + number(local + 26, 2) + number(local + 28, 2);
    if (!fits(begin, size)) return std::nullopt;
    return file_.subspan(static_cast<size_t>(begin), static_cast<size_t>(size));
  }

  std::span<const uint8_t> file_;
};

}  // namespace

std::vector<ZipEntry> zip_entries(std::span<const uint8_t> file) { return Reader(file).run(); }

}  // namespace quernel::tflite_import
