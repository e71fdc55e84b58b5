// Every case of tests/error/onnx: a model in ONNX's text form that must be refused, and a part of what is
// said.
#include <gtest/gtest.h>
#include <onnx/defs/parser.h>

#include <cctype>

#include "../graph/test_case_file.h"
#include "frontends/onnx/import_model.h"

namespace quernel::onnx_test {
namespace {

std::vector<TestCase> all_cases() {
  std::vector<TestCase> cases;
  for (const TestCaseFile& file : read_test_folder(QUERNEL_ERROR_FOLDER))
    cases.insert(cases.end(), file.cases.begin(), file.cases.end());
  return cases;
}

std::string case_name(const testing::TestParamInfo<TestCase>& info) {
  return info.param.file + "_" + info.param.name;
}

class ImportErrorText : public testing::TestWithParam<TestCase> {};

TEST_P(ImportErrorText, says_what_is_wrong) {
  std::string text = GetParam().sections.at("input");
  if (text.rfind('<', 0) != 0) text.insert(0, "<ir_version: 8, opset_import: [\"\" : 17]>\n");
  onnx::ModelProto model;
  auto parsed = onnx::OnnxParser::Parse(model, text.c_str());
  ASSERT_TRUE(parsed.IsOK()) << parsed.ErrorMessage();
  std::string bytes = model.SerializeAsString();
  Expected<ImportedModel> imported =
      import_onnx_bytes({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, "test.onnx");
  ASSERT_FALSE(imported) << "the model was accepted";
  ASSERT_EQ(imported.errors().size(), 1u) << to_string(imported.errors());
  EXPECT_NE(imported.errors()[0].kind, DiagnosticKind::kInternal);
  std::string said = to_string(imported.errors()[0]), expected = GetParam().sections.at("error");
  while (!expected.empty() && expected.back() == '\n') expected.pop_back();
  EXPECT_NE(said.find(expected), std::string::npos) << said;
}

INSTANTIATE_TEST_SUITE_P(cases, ImportErrorText, testing::ValuesIn(all_cases()), case_name);

}  // namespace
}  // namespace quernel::onnx_test
