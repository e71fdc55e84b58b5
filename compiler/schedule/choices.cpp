#include "schedule/choices.h"

#include <algorithm>

#include "schedule/choice_words.h"
#include "support/file.h"

namespace quernel::schedule {
namespace {

constexpr std::string_view kGrammar =
    "'direct', 'tile ROWSxCOLUMNS [order rows|columns] [group N]' or 'winograd 2|4 [tile ROWSxCOLUMNS block "
    "N]'; for loops '[along AXIS|none] [tiles SIDE across AXIS] [windows AXIS [rows N]] [group N]'";

constexpr size_t kMostErrors = 8;  // of a file, which may be something else altogether

}  // namespace

std::string to_string(const Choice& choice) {
  return std::visit([](const auto& known) { return to_string(known); }, choice);
}

Expected<Choice> parse_choice(std::string_view text) {
  std::vector<std::string_view> words = words_of(text);
  if (std::optional<Tiling> tiling = parse_tiling(words)) return Choice(*tiling);
  if (std::optional<LoopChoice> loops = parse_loop_choice(words)) return Choice(*loops);
  return invalid_input("expected " + std::string(kGrammar) + ", found '" + joined(words) + "'");
}

Expected<Choices> Choices::parse(std::string_view text, const std::string& file) {
  Choices result;
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
      errors.push_back(invalid_input("expected TARGET KEY = CHOICE, found '" + joined(words) + "'", place,
                                     "`quernel inspect BUNDLE --tuning` prints such lines"));
      continue;
    }
    Expected<Choice> choice = parse_choice(joined({equals + 1, words.end()}));
    if (!choice) {
      errors.push_back(invalid_input(choice.errors()[0].message, place));
      continue;
    }
    auto key = std::make_pair(std::string(words[0]), joined({words.begin() + 1, equals}));
    auto [it, fresh] = result.lines_.try_emplace(std::move(key), Line{*choice, line});
    if (!fresh)
      errors.push_back(invalid_input(
          "expected one choice for each kernel, found another of line " + std::to_string(it->second.number),
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

Expected<Choices> Choices::read(const std::string& path) {
  std::string reason;
  std::optional<std::string> text = read_file(path, &reason);
  if (!text)
    return invalid_input("cannot be read: expected a file of choices: " + reason, {.file = path},
                         "`quernel tune` writes one");
  return parse(*text, path);
}

const Choice* Choices::find(const std::string& target, const std::string& key) {
  auto it = lines_.find({target, key});
  if (it == lines_.end()) return nullptr;
  it->second.used = true;
  return &it->second.choice;
}

Diagnostic Choices::refuse(const std::string& target, const std::string& key,
                           const std::string& expected) const {
  const Line& line = lines_.at({target, key});
  return invalid_input("expected " + expected + " for '" + key + "', found '" + to_string(line.choice) + "'",
                       {.file = file_, .line = line.number}, "without the line the estimated choice holds");
}

std::optional<std::string> Choices::unused(const std::vector<std::string>& targets) const {
  size_t count = 0, unused = 0;
  const std::pair<const std::pair<std::string, std::string>, Line>* first = nullptr;  // by its number
  for (const auto& entry : lines_) {
    if (std::find(targets.begin(), targets.end(), entry.first.first) == targets.end()) continue;
    ++count;
    if (entry.second.used) continue;
    ++unused;
    if (first == nullptr || entry.second.number < first->second.number) first = &entry;
  }
  if (first == nullptr) return std::nullopt;
  std::string note = file_ + ":" + std::to_string(first->second.number) + ": no kernel is '" +
                     first->first.second + "' for " + first->first.first;
  if (unused == count && count > 1) return note + ", nor what any other line names: it is of another model";
  if (unused > 1)
    note += ", nor what " + std::to_string(unused - 1) + " more of " + std::to_string(count) + " lines name";
  return note;
}

}  // namespace quernel::schedule
