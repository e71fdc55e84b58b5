#include "data_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <tuple>

namespace quernel::tools {
namespace {

namespace fs = std::filesystem;

std::vector<DataFile> read_files(const fs::path& folder, const std::string& role) {
  std::vector<DataFile> files;
  for (int k = 0;; ++k) {
    std::string name = fmt::format("{}_{}.pb", role, k);
    std::error_code error;
    if (!fs::exists(folder / name, error)) return files;
    DataFile file;
    file.name = folder.filename().string() + "/" + name;
    file.path = (folder / name).string();
    file.error = tensor_file::read_pb(file.path, &file.tensor);
    files.push_back(std::move(file));
  }
}

constexpr std::string_view kFolder = "test_data_set_";

// Behind kFolder, without leading zeros, the longer of two numbers is the larger.
bool has_smaller_number(const fs::path& a, const fs::path& b) {
  auto number = [](const fs::path& path) {
    std::string text = path.filename().string().substr(kFolder.size());
    return text.substr(std::min(text.find_first_not_of('0'), text.size()));
  };
  std::string x = number(a), y = number(b);
  return std::tuple(x.size(), x, a) < std::tuple(y.size(), y, b);
}

}  // namespace

std::optional<std::string> model_in(const std::string& dir) {
  for (const char* name : {"model.onnx", "model.tflite"}) {
    std::error_code error;
    fs::path model = fs::path(dir) / name;
    if (fs::is_regular_file(model, error)) return model.string();
  }
  return std::nullopt;
}

Expected<std::vector<std::string>> find_cases(const std::vector<std::string>& dirs) {
  std::vector<std::string> cases;
  for (const std::string& dir : dirs) {
    std::error_code error;
    if (!fs::is_directory(dir, error))
      return invalid_input("expected a directory with a model.onnx or model.tflite, found none",
                           {.file = dir});
    if (model_in(dir)) {
      cases.push_back(dir);
      continue;
    }
    std::vector<std::string> children;
    for (const fs::directory_entry& entry : fs::directory_iterator(dir, error))
      if (model_in(entry.path().string())) children.push_back(entry.path().string());
    if (children.empty())
      return invalid_input(
          "expected a model.onnx or model.tflite in the directory or in its children, found none",
          {.file = dir});
    std::sort(children.begin(), children.end());
    cases.insert(cases.end(), children.begin(), children.end());
  }
  return cases;
}

std::vector<DataSet> read_data_sets(const std::string& dir) {
  std::vector<fs::path> folders;
  std::error_code error;
  for (fs::directory_iterator entry(dir, error), end; !error && entry != end; entry.increment(error))
    if (entry->is_directory(error) && entry->path().filename().string().starts_with(kFolder))
      folders.push_back(entry->path());
  std::sort(folders.begin(), folders.end(), has_smaller_number);
  std::vector<DataSet> sets;
  for (const fs::path& folder : folders)
    sets.push_back({folder.filename().string(), read_files(folder, "input"), read_files(folder, "output")});
  return sets;
}

std::vector<int> match_files(const std::vector<std::string>& names, const std::vector<DataFile>& files) {
  std::vector<int> match(names.size(), -1);
  std::vector<bool> used(files.size(), false);
  for (size_t i = 0; i < names.size(); ++i)
    for (size_t k = 0; k < files.size() && match[i] < 0; ++k)
      if (!used[k] && files[k].tensor.name == names[i]) match[i] = static_cast<int>(k), used[k] = true;
  size_t next = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    if (match[i] >= 0) continue;
    while (next < files.size() && used[next]) ++next;
    if (next < files.size()) match[i] = static_cast<int>(next), used[next] = true;
  }
  return match;
}

}  // namespace quernel::tools
