#include "test_case_file.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace quernel {

TestCaseFile read_test_cases(const std::string& path) {
  TestCaseFile result{path, std::filesystem::path(path).stem().string(), {}, {}, {}};
  std::ifstream file(path);
  std::string line, *section = nullptr;
  while (std::getline(file, line)) {
    if (line.rfind("# ", 0) != 0) {
      if (section) *section += line + "\n";
      continue;
    }
    std::string word = line.substr(2);
    if (word.rfind("case: ", 0) == 0) {
      result.cases.push_back({result.stem, word.substr(6), {}});
      section = nullptr;
    } else if (!result.cases.empty()) {
      section = &result.cases.back().sections[word];
    } else {
      result.header += line + "\n";
      size_t colon = word.find(": ");
      if (colon != std::string::npos) result.keys[word.substr(0, colon)] = word.substr(colon + 2);
    }
  }
  for (TestCase& test : result.cases)
    for (auto& [name, text] : test.sections)
      while (text == "\n" || text.ends_with("\n\n")) text.pop_back();
  return result;
}

std::vector<TestCaseFile> read_test_folder(const std::string& folder) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".test") paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  std::vector<TestCaseFile> files;
  for (const std::string& path : paths) files.push_back(read_test_cases(path));
  return files;
}

void write_test_cases(const TestCaseFile& file) {
  std::ofstream out(file.path);
  out << file.header;
  for (const TestCase& test : file.cases) {
    out << "\n# case: " << test.name << "\n";
    if (auto input = test.sections.find("input"); input != test.sections.end())
      out << "# input\n" << input->second;
    for (const auto& [name, text] : test.sections)
      if (name != "input") out << "# " << name << "\n" << text;
  }
}

bool updating_golden() { return std::getenv("QUERNEL_UPDATE_GOLDEN") != nullptr; }

}  // namespace quernel
