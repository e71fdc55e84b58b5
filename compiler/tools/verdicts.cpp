#include "verdicts.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <optional>

#include "command.h"
#include "print.h"

namespace quernel::tools {
namespace {

constexpr size_t kNamed = 5;  // of the cases that were not tested

std::optional<int> number(const std::string& text) {
  int value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

}  // namespace

void add_allow_unsupported_flag(CLI::App& app, std::vector<std::string>& allowed) {
  app.add_option(
         "--allow-unsupported", allowed,
         "succeed though cases are UNSUPPORTED: so many at most, or those of such names; may be repeated "
         "(default: none)")
      ->type_name("N|GLOB")
      ->allow_extra_args(false);
}

Verdicts::Verdicts(std::vector<std::string> allowed) {
  for (std::string& text : allowed)
    if (std::optional<int> most = number(text))
      most_ = std::max(most_, *most);
    else
      patterns_.push_back(std::move(text));
}

void Verdicts::add(std::string_view verdict, const std::string& name) {
  (verdict == "PASS" ? passed : verdict == "FAIL" ? failed : unsupported)++;
  auto names_it = [&](const std::string& pattern) { return fnmatch(pattern.c_str(), name.c_str(), 0) == 0; };
  if (verdict == "UNSUPPORTED" && std::none_of(patterns_.begin(), patterns_.end(), names_it))
    untested_.push_back(name);
}

void Verdicts::print() const {
  tools::print("{} passed, {} failed, {} unsupported\n", passed, failed, unsupported);
}

int Verdicts::exit_code() const {
  if (untested_.size() > static_cast<size_t>(most_)) {
    std::vector<std::string> named(untested_.begin(),
                                   untested_.begin() + static_cast<long>(std::min(untested_.size(), kNamed)));
    if (untested_.size() > kNamed) named.push_back("…");
    fail(quernel::unsupported(
        fmt::format("expected every case to be tested, found {} that {} not: {}", untested_.size(),
                    untested_.size() == 1 ? "is" : "are", fmt::join(named, ", ")),
        {}, fmt::format("--allow-unsupported {}, or their names, accepts that", untested_.size())));
    return kFailure;
  }
  return failed == 0 ? kOk : kFailure;
}

}  // namespace quernel::tools
