// The format of all golden and error files: "# case: NAME" starts a case, "# SECTION" lines split it into
// sections. What stands before the first case is the header: "# KEY: VALUE" lines and a sentence of intent.
#pragma once

#include <map>
#include <ostream>
#include <string>
#include <vector>

namespace quernel {

struct TestCase {
  std::string file, name;                       // file: its stem
  std::map<std::string, std::string> sections;  // name -> text, without blank lines at its end
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
// Writes the file again, with what its cases hold now; sections of a case by name, `input` first.
void write_test_cases(const TestCaseFile& file);
// Whether the environment asks for golden files to be rewritten.
bool updating_golden();

}  // namespace quernel
