#include "schedule/plans/loop_choice.h"

#include "schedule/choice_words.h"

namespace quernel::schedule {
namespace {

bool parse_axis(std::string_view text, int& axis) {
  constexpr int64_t kMostAxes = 64;
  int64_t number = 0;
  if (text != "0" && (!parse_number(text, number) || number >= kMostAxes)) return false;
  axis = static_cast<int>(number);
  return true;
}

bool parse_property(std::string_view name, std::string_view value, LoopChoice& choice) {
  if (name == "along" && value == "none") {
    choice.along = LoopChoice::kNone;
    return true;
  }
  if (name == "along") return parse_axis(value, choice.along);
  if (name == "tiles") return parse_number(value, choice.tiles);
  if (name == "across") return parse_axis(value, choice.across);
  if (name == "windows") return parse_axis(value, choice.windows);
  if (name == "rows") return parse_number(value, choice.rows);
  return name == "group" && parse_number(value, choice.group_work);
}

}  // namespace

std::string to_string(const LoopChoice& c) {
  std::string text;
  auto add = [&](const char* name, const std::string& value) {
    text += (text.empty() ? "" : " ") + std::string(name) + " " + value;
  };
  if (c.along != LoopChoice::kEstimated)
    add("along", c.along == LoopChoice::kNone ? "none" : std::to_string(c.along));
  if (c.tiles != 0) add("tiles", std::to_string(c.tiles));
  if (c.across >= 0) add("across", std::to_string(c.across));
  if (c.windows >= 0) add("windows", std::to_string(c.windows));
  if (c.rows != 0) add("rows", std::to_string(c.rows));
  if (c.group_work != 0) add("group", std::to_string(c.group_work));
  return text;
}

std::optional<LoopChoice> parse_loop_choice(const std::vector<std::string_view>& words) {
  LoopChoice choice;
  Properties said;
  auto set = [&](std::string_view name, std::string_view value) {
    return parse_property(name, value, choice);
  };
  if (words.empty() || !parse_properties(words, set, said)) return std::nullopt;
  const bool vectors = choice.along >= 0;
  if (said.has("tiles") != said.has("across") || (said.has("tiles") && !vectors)) return std::nullopt;
  if (said.has("windows") && (!vectors || said.has("tiles"))) return std::nullopt;
  if (said.has("rows") && !said.has("windows")) return std::nullopt;
  return choice;
}

}  // namespace quernel::schedule
