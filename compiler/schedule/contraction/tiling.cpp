#include "schedule/contraction/tiling.h"

#include <algorithm>
#include <map>

#include "schedule/choice_words.h"

namespace quernel::schedule {
namespace {

bool parse_property(std::string_view name, std::string_view value, Tiling& tiling) {
  int64_t number = 0;
  if (name == "tile") {
    size_t x = value.find('x');
    return x != std::string_view::npos && parse_number(value.substr(0, x), tiling.rows) &&
           parse_number(value.substr(x + 1), tiling.columns);
  }
  if (name == "order") {
    tiling.order = value == "columns" ? TileOrder::kColumns : TileOrder::kRows;
    return value == "columns" || value == "rows";
  }
  if (name == "group") return parse_number(value, tiling.group_work);
  if (name == "block") return parse_number(value, tiling.block);
  if (name != "winograd" || !parse_number(value, number) || (number != 2 && number != 4)) return false;
  tiling.winograd = static_cast<int>(number);
  return true;
}

}  // namespace

std::string to_string(const Tiling& t) {
  if (t.rows == 0) return t.winograd == 0 ? "direct" : "winograd " + std::to_string(t.winograd);
  std::string tile = "tile " + std::to_string(t.rows) + "x" + std::to_string(t.columns);
  if (t.winograd != 0)
    return "winograd " + std::to_string(t.winograd) + " " + tile + " block " + std::to_string(t.block);
  if (t.order == TileOrder::kColumns) tile += " order columns";
  if (t.group_work != Tiling::kGroupWork) tile += " group " + std::to_string(t.group_work);
  return tile;
}

std::optional<Tiling> parse_tiling(const std::vector<std::string_view>& words) {
  Tiling tiling;
  if (words.size() == 1 && words[0] == "direct") return tiling;
  Properties said;
  auto set = [&](std::string_view name, std::string_view value) {
    return parse_property(name, value, tiling);
  };
  if (!parse_properties(words, set, said)) return std::nullopt;
  if (said.has("winograd") && words.size() == 2) return tiling;
  if (!said.has("tile") || said.has("winograd") != said.has("block")) return std::nullopt;
  if (said.has("winograd") && (said.has("order") || said.has("group"))) return std::nullopt;
  return tiling;
}

std::string tiles_text(const std::vector<Tiling>& tilings) {
  std::map<int64_t, std::vector<int64_t>> rows;  // by columns
  for (const Tiling& t : tilings) rows[t.columns].push_back(t.rows);
  std::string text;
  for (auto& [columns, of] : rows) {
    std::sort(of.begin(), of.end());
    of.erase(std::unique(of.begin(), of.end()), of.end());
    for (size_t i = 0; i < of.size();) {
      size_t end = i + 1;
      while (end < of.size() && of[end] == of[end - 1] + 1) ++end;
      text += (text.empty() ? "" : ", ") + std::to_string(of[i]);
      if (end > i + 1) text += ".." + std::to_string(of[end - 1]);
      text += "x" + std::to_string(columns);
      i = end;
    }
  }
  return text;
}

}  // namespace quernel::schedule
