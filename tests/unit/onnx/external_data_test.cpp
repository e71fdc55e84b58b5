// External data: where they may lie, and files that do not hold what the model says.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "model_builder.h"

namespace quernel::onnx_test {
namespace {

void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

class ExternalData : public testing::Test {
 protected:
  void SetUp() override {
    // Of this test alone: others run beside it, in processes of their own.
    std::string test = testing::UnitTest::GetInstance()->current_test_info()->name();
    folder = std::filesystem::path(testing::TempDir()) / ("quernel_external_data_" + test);
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "weights.bin", std::ios::binary) << std::string(16, '\0');
  }
  static constexpr const char* kLeftOut = "left out";
  std::string import_with(const std::string& location, const std::string& offset, const std::string& length) {
    ModelBuilder m;
    m.input("x", {2}).output("y");
    onnx::TensorProto& w = m.floats("w", {2}, {});
    w.set_data_location(onnx::TensorProto::EXTERNAL);
    for (auto [key, value] :
         {std::pair{"location", location}, std::pair{"offset", offset}, std::pair{"length", length}}) {
      if (value == kLeftOut) continue;
      auto* entry = w.add_external_data();
      entry->set_key(key);
      entry->set_value(value);
    }
    m.node("Add", {"x", "w"}, {"y"});
    Expected<ImportedModel> imported = m.import({}, (folder / "model.onnx").string());
    return imported ? "no error" : to_string(imported.errors());
  }
  std::filesystem::path folder;
};

TEST_F(ExternalData, is_read_beside_the_model) {
  EXPECT_EQ(import_with("weights.bin", "8", "8"), "no error");
}
TEST_F(ExternalData, missing_file) {
  expect_contains(import_with("absent.bin", "0", "8"), "cannot open the external data");
}
TEST_F(ExternalData, path_that_leaves_the_folder) {
  expect_contains(import_with("../weights.bin", "0", "8"), "leaves the model's folder");
  expect_contains(import_with((folder / "weights.bin").string(), "0", "8"), "leaves the model's folder");
}
TEST_F(ExternalData, no_location) {
  expect_contains(import_with("", "0", "8"), "tensor 'w': external data without a location");
}
TEST_F(ExternalData, range_outside_of_the_file) {
  expect_contains(import_with("weights.bin", "12", "8"), "lies outside of 'weights.bin'");
  expect_contains(import_with("weights.bin", "0", "4"),
                  "expected 8 bytes of external data for its dims, found 4");
  expect_contains(import_with("weights.bin", "-1", "8"), "expected external data offset to be a number");
  expect_contains(import_with("weights.bin", "9223372036854775808", "8"),
                  "expected external data offset to be a number");
  expect_contains(import_with("weights.bin", "9223372036854775807", "8"), "lies outside of 'weights.bin'");
}
TEST_F(ExternalData, file_that_ends_early) {
  std::filesystem::resize_file(folder / "weights.bin", 12);
  expect_contains(import_with("weights.bin", "8", "8"),
                  "external data 8+8 lies outside of 'weights.bin' of 12 bytes");
  expect_contains(import_with("weights.bin", "8", kLeftOut),
                  "expected 8 bytes of external data for its dims, found 4");
  expect_contains(import_with("weights.bin", "13", kLeftOut), "lies outside of 'weights.bin'");
  std::filesystem::resize_file(folder / "weights.bin", 0);
  expect_contains(import_with("weights.bin", "0", "8"), "lies outside of 'weights.bin' of 0 bytes");
}
TEST_F(ExternalData, offsets_of_more_than_32_bits) {
  const uint64_t offset = (uint64_t{5} << 30) + 4;
  std::filesystem::resize_file(folder / "weights.bin", offset + 8);  // sparse
  EXPECT_EQ(import_with("weights.bin", std::to_string(offset), "8"), "no error");
  expect_contains(import_with("weights.bin", std::to_string(offset + 4), "8"),
                  "lies outside of 'weights.bin'");
}

}  // namespace
}  // namespace quernel::onnx_test
