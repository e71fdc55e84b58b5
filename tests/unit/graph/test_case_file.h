// Test files of cases in text: "# case: NAME" starts one, "# SECTION" lines split it into sections. What
// stands before the first case is the header: "# KEY: VALUE" lines and a sentence of intent.
#pragma once

#include <map>
#include <ostream>
#include <string>
#include <vector>

namespace quernel {

struct TestCase {
  std::string file, name;                       // file: its stem
  std::map<std::string, std::string> sections;  // section name -> text
};
inline void PrintTo(const TestCase& test, std::ostream* out) {
  *out << test.file << "/" << test.name;
}  // for gtest

struct TestCaseFile {
  std::string path, stem, header;
  std::map<std::string, std::string> keys;
  std::vector<TestCase> cases;
};

TestCaseFile read_test_cases(const std::string& path);
// Every *.test file of a folder, by name.
std::vector<TestCaseFile> read_test_folder(const std::string& folder);

}  // namespace quernel
