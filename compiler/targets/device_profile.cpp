#include "targets/device_profile.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <sstream>
#include <variant>
#include <vector>

#include "support/file.h"

namespace quernel {
namespace {

struct Fact {
  std::string_view name, meaning;
  std::variant<int Target::*, int64_t Target::*, bool Target::*, double Target::*> place;
  double least, most;
};

const Fact kFacts[] = {
    {"registers", "of 32 bits that an invocation can use without loss", &Target::vector_registers, 16, 256},
    {"workgroup_memory", "bytes that the invocations of a workgroup share", &Target::workgroup_memory,
     16 << 10, 1 << 20},
    {"local_memory", "1: that memory is its own, beside the invocations; 0: a part of the device's",
     &Target::local_memory, 0, 1},
    {"load_multiply_adds", "that a load from a binding takes the time of", &Target::load_multiply_adds, 0.25,
     256},
    {"shared_load_multiply_adds", "the same from workgroup memory, up to four elements for all invocations",
     &Target::shared_load_multiply_adds, 0.25, 256},
    {"barrier_multiply_adds", "the same of a barrier", &Target::barrier_multiply_adds, 0, 4096},
    {"parallel_invocations", "that run at a time", &Target::parallel_invocations, 1, 1 << 24},
    {"flops_per_second", "f32, a multiply-add being two", &Target::flops_per_second, 1e6, 1e18},
    {"memory_bytes_per_second", "of the device's own memory", &Target::memory_bytes_per_second, 1e6, 1e18},
    {"dispatch_seconds", "from a kernel to the next that waits for it", &Target::dispatch_seconds, 0, 1},
    {"transfer_bytes_per_second", "between the host's memory and the device's",
     &Target::transfer_bytes_per_second, 1e6, 1e18},
    {"transfer_seconds", "of a submission and its transfer of nothing", &Target::transfer_seconds, 0, 10},
};

std::string names() {
  std::string text;
  for (const Fact& fact : kFacts) text += (text.empty() ? "" : ", ") + std::string(fact.name);
  return text;
}

std::string number(double value) {
  char text[32];
  auto [end, error] = std::to_chars(text, text + sizeof text, value, std::chars_format::general, 6);
  return error == std::errc() ? std::string(text, end) : "0";
}

bool is_whole(const Fact& fact) { return !std::holds_alternative<double Target::*>(fact.place); }

}  // namespace

std::string device_profile_text(const Target& target) {
  std::string text;
  for (const Fact& fact : kFacts) {
    std::string value = std::visit(
        [&](auto place) {
          if constexpr (std::is_same_v<decltype(place), double Target::*>)
            return number(target.*place);
          else
            return std::to_string(target.*place);
        },
        fact.place);
    std::string line = std::string(fact.name) + " " + value;
    line.resize(std::max<size_t>(line.size(), 40), ' ');
    text += line + "  # " + std::string(fact.meaning) + "\n";
  }
  return text;
}

Status apply_device_profile(Target& target, std::string_view text, const std::string& file) {
  Diagnostics errors;
  std::vector<std::string> seen;
  std::istringstream lines{std::string(text)};
  int number_of_line = 0;
  for (std::string line; std::getline(lines, line);) {
    Location place{.file = file, .line = ++number_of_line};
    std::istringstream words(line.substr(0, line.find('#')));
    std::vector<std::string> found{std::istream_iterator<std::string>(words), {}};
    if (found.empty()) continue;
    auto fact =
        std::find_if(std::begin(kFacts), std::end(kFacts), [&](const Fact& f) { return f.name == found[0]; });
    double value = 0;
    auto parses = [&](const std::string& word) {
      auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
      return error == std::errc() && end == word.data() + word.size();
    };
    if (found.size() != 2 || !parses(found[1])) {
      errors.push_back(invalid_input(
          "expected a fact and its number, found '" + line.substr(0, line.find('#')) + "'", place));
    } else if (fact == std::end(kFacts)) {
      errors.push_back(invalid_input("fact '" + found[0] + "': expected one of " + names(), place));
    } else if (!(value >= fact->least && value <= fact->most) ||
               (is_whole(*fact) && value != static_cast<double>(static_cast<int64_t>(value)))) {
      errors.push_back(invalid_input(
          found[0] + ": expected " + (is_whole(*fact) ? "a whole number" : "a number") + " from " +
              number(fact->least) + " to " + number(fact->most) + ", found " + found[1],
          place));
    } else if (std::find(seen.begin(), seen.end(), found[0]) != seen.end()) {
      errors.push_back(invalid_input(found[0] + ": expected one line for each fact, found another", place));
    } else {
      seen.push_back(found[0]);
      std::visit(
          [&](auto at) { target.*at = static_cast<std::remove_reference_t<decltype(target.*at)>>(value); },
          fact->place);
    }
  }
  if (!errors.empty()) return errors;
  return {};
}

Status read_device_profile(Target& target, const std::string& from) {
  std::string names;
  for (const DevicePreset& preset : device_presets()) {
    if (preset.name == from) return apply_device_profile(target, preset.text, from);
    names += (names.empty() ? "" : ", ") + std::string(preset.name);
  }
  std::string reason;
  std::optional<std::string> text = read_file(from, &reason);
  if (!text)
    return invalid_input(
        "cannot be read: expected a device profile, or the name of one of " + names + ": " + reason,
        {.file = from}, "`quernel probe` writes one, `quernel targets` describes the named ones");
  return apply_device_profile(target, *text, from);
}

}  // namespace quernel
