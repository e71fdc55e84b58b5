#include "schedule/contraction/tiling.h"

#include <algorithm>
#include <charconv>

#include "support/file.h"

namespace quernel::schedule {
namespace {

constexpr std::string_view kGrammar =
    "'direct', 'tile ROWSxCOLUMNS [order rows|columns] [group N]' or 'winograd 2|4 [tile ROWSxCOLUMNS block "
    "N]'";

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  constexpr std::string_view kBlank = " \t\r";
  for (size_t at = text.find_first_not_of(kBlank); at != std::string_view::npos;) {
    size_t end = std::min(text.find_first_of(kBlank, at), text.size());
    words.push_back(text.substr(at, end - at));
    at = text.find_first_not_of(kBlank, end);
  }
  return words;
}

constexpr size_t kMostErrors = 8;  // of a file, which may be something else altogether

bool parse_number(std::string_view text, int64_t& value) {
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  return code == std::errc() && end == text.data() + text.size() && value > 0;
}

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

std::string joined(const std::vector<std::string_view>& words) {
  std::string text;
  for (std::string_view word : words) text += (text.empty() ? "" : " ") + std::string(word);
  return text;
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

Expected<Tiling> parse_tiling(std::string_view text) {
  std::vector<std::string_view> words = words_of(text);
  Tiling tiling;
  if (words.size() == 1 && words[0] == "direct") return tiling;
  std::vector<std::string_view> names;
  bool understood = words.size() % 2 == 0;
  for (size_t i = 0; understood && i < words.size(); i += 2) {
    understood = std::find(names.begin(), names.end(), words[i]) == names.end() &&
                 parse_property(words[i], words[i + 1], tiling);
    names.push_back(words[i]);
  }
  auto said = [&](std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  bool winograd_alone = said("winograd") && words.size() == 2;
  understood = understood && (winograd_alone || (said("tile") && said("winograd") == said("block") &&
                                                 !(said("winograd") && (said("order") || said("group")))));
  if (!understood)
    return invalid_input("expected " + std::string(kGrammar) + ", found '" + joined(words) + "'");
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

Expected<Tilings> Tilings::parse(std::string_view text, const std::string& file) {
  Tilings result;
  result.file_ = file;
  Diagnostics errors;
  int line = 0;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view content = text.substr(begin, end - begin);
    content = content.substr(0, content.find('#'));
    begin = end + 1;
    ++line;
    std::vector<std::string_view> words = words_of(content);
    if (words.empty()) continue;
    Location place{.file = file, .line = line};
    auto equals = std::find(words.begin(), words.end(), "=");
    if (equals == words.end() || equals - words.begin() < 2) {
      errors.push_back(invalid_input("expected TARGET CONTRACTION = TILING, found '" + joined(words) + "'",
                                     place, "`quernel inspect BUNDLE --tuning` prints such lines"));
      continue;
    }
    Expected<Tiling> tiling = parse_tiling(joined({equals + 1, words.end()}));
    if (!tiling) {
      errors.push_back(invalid_input(tiling.errors()[0].message, place));
      continue;
    }
    auto key = std::make_pair(std::string(words[0]), joined({words.begin() + 1, equals}));
    auto [it, fresh] = result.choices_.try_emplace(std::move(key), Choice{*tiling, line});
    if (!fresh)
      errors.push_back(invalid_input("expected one choice for each contraction, found another of line " +
                                         std::to_string(it->second.line),
                                     place));
  }
  if (errors.size() > kMostErrors) {
    const size_t more = errors.size() - kMostErrors;
    errors.resize(kMostErrors);
    errors.back().message += " (and " + std::to_string(more) + " more such lines)";
  }
  if (!errors.empty()) return errors;
  return result;
}

Expected<Tilings> Tilings::read(const std::string& path) {
  std::string reason;
  std::optional<std::string> text = read_file(path, &reason);
  if (!text)
    return invalid_input("cannot be read: expected a file of tiling choices: " + reason, {.file = path},
                         "`quernel tune` writes one");
  return parse(*text, path);
}

const Tiling* Tilings::find(const std::string& target, const std::string& contraction) {
  auto it = choices_.find({target, contraction});
  if (it == choices_.end()) return nullptr;
  it->second.used = true;
  return &it->second.tiling;
}

Diagnostic Tilings::refuse(const std::string& target, const std::string& contraction,
                           const std::string& expected) const {
  const Choice& choice = choices_.at({target, contraction});
  return invalid_input(
      "expected " + expected + " for '" + contraction + "', found '" + to_string(choice.tiling) + "'",
      {.file = file_, .line = choice.line}, "without the line the estimated choice holds");
}

std::optional<std::string> Tilings::unused(const std::vector<std::string>& targets) const {
  size_t count = 0, unused = 0;
  const std::pair<const std::pair<std::string, std::string>, Choice>* first = nullptr;  // by its line
  for (const auto& entry : choices_) {
    if (std::find(targets.begin(), targets.end(), entry.first.first) == targets.end()) continue;
    ++count;
    if (entry.second.used) continue;
    ++unused;
    if (first == nullptr || entry.second.line < first->second.line) first = &entry;
  }
  if (first == nullptr) return std::nullopt;
  std::string note = file_ + ":" + std::to_string(first->second.line) + ": no contraction is '" +
                     first->first.second + "' for " + first->first.first;
  if (unused == count && count > 1) return note + ", nor what any other line names: it is of another model";
  if (unused > 1)
    note += ", nor what " + std::to_string(unused - 1) + " more of " + std::to_string(count) + " lines name";
  return note;
}

}  // namespace quernel::schedule
