// The digits of FIPS 180-4's examples, and of an empty file.
#include "codegen/llvm/file_hash.h"

#include <gtest/gtest.h>

#include "support/file.h"
#include "support/temporary_directory.h"

namespace quernel::codegen {
namespace {

std::string digits(const std::string& text) {
  TemporaryDirectory folder;
  const std::string path = folder.path() + "/file";
  EXPECT_TRUE(write_file(path, text));
  return sha256_of_file(path);
}

TEST(FileHash, digits_are_those_of_the_standard) {
  EXPECT_EQ(digits(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(digits("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(digits(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(FileHash, a_file_that_cannot_be_read_has_none) { EXPECT_EQ(sha256_of_file("/nonexistent/file"), ""); }

}  // namespace
}  // namespace quernel::codegen
