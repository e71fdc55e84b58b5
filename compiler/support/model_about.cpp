#include "support/model_about.h"

#include <algorithm>

namespace quernel {
namespace {

// Of what a bundle keeps.
constexpr size_t kMostProperties = 64, kMostBytes = 4096, kMostLabelBytes = 65536, kMostLabelFiles = 4;

}  // namespace

int64_t ModelAbout::Labels::count() const {
  int64_t ends = std::count(text.begin(), text.end(), '\n');
  return ends + (text.empty() || text.back() == '\n' ? 0 : 1);
}

void ModelAbout::add(std::string name, std::string value) {
  name = name.substr(0, name.find('\0'));
  value = value.substr(0, value.find('\0'));
  if (name.empty() || value.empty()) return;
  auto is_taken = [&](const std::string& text) {
    return std::any_of(properties.begin(), properties.end(), [&](const auto& p) { return p.first == text; });
  };
  std::string own = name;
  for (int k = 1; is_taken(own); ++k) own = name + "_" + std::to_string(k);
  if (properties.size() >= kMostProperties || name.size() > kMostBytes || value.size() > kMostBytes)
    ++left_out;
  else
    properties.emplace_back(std::move(own), std::move(value));
}

void ModelAbout::add_labels(std::string file, std::string text) {
  if (labels.size() >= kMostLabelFiles || file.size() > kMostBytes || text.size() > kMostLabelBytes ||
      text.find('\0') != std::string::npos)
    ++left_out;
  else
    labels.push_back({std::move(file), std::move(text)});
}

std::string note_of_left_out(const ModelAbout& about) {
  return "of what the model says of itself, " + std::to_string(about.left_out) +
         (about.left_out == 1 ? " text is left out: it is long, or one of many"
                              : " texts are left out: they are long, or some of many");
}

}  // namespace quernel
