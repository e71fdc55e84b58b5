// Mapped files whose pages are given back.
#include "support/mapped_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace quernel {
namespace {

constexpr size_t kBytes = (size_t{5} << 20) + 123;

class MappedFiles : public testing::Test {
 protected:
  void SetUp() override {
    path = std::filesystem::path(testing::TempDir()) /
           ("quernel_mapped_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    text.resize(kBytes);
    for (size_t i = 0; i < kBytes; ++i) text[i] = static_cast<char>(i * 7 / 5);
    std::ofstream(path, std::ios::binary) << text;
  }
  void TearDown() override { std::filesystem::remove(path); }
  MappedFile map() const {
    int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    MappedFile file = map_whole_file(fd);
    ::close(fd);
    return file;
  }
  bool is_text(const MappedFile& file) const {
    return file.size == kBytes && std::memcmp(file.data, text.data(), kBytes) == 0;
  }

  std::filesystem::path path;
  std::string text;
};

// Pages of the mapping of `file` that the process holds, in KiB.
long resident_kib(const MappedFile& file) {
  std::ifstream maps("/proc/self/smaps");
  char begin[32];
  std::snprintf(begin, sizeof begin, "%lx-", reinterpret_cast<unsigned long>(file.data));
  bool here = false;
  for (std::string line; std::getline(maps, line);) {
    if (line.starts_with(begin)) here = true;
    if (here && line.starts_with("Rss:")) return std::stol(line.substr(4));
  }
  return -1;
}

TEST_F(MappedFiles, read_the_same_after_their_pages_were_given_back) {
  MappedFile file = map();
  ASSERT_TRUE(file.owner);
  EXPECT_TRUE(is_text(file));
  EXPECT_GE(resident_kib(file), static_cast<long>(kBytes >> 10));
  release_pages(file.data + 100, kBytes - 100);
  EXPECT_EQ(resident_kib(file), 0);
  EXPECT_TRUE(is_text(file));
  release_all_pages();
  EXPECT_EQ(resident_kib(file), 0);
  EXPECT_TRUE(is_text(file));
}

TEST_F(MappedFiles, other_memory_keeps_its_contents) {
  MappedFile file = map();
  std::vector<char> own(kBytes, 'x');
  release_pages(own.data(), own.size());
  release_pages(file.data + 1, kBytes);  // ends beyond the file
  release_pages(file.data + kBytes, 1);
  EXPECT_EQ(own, std::vector<char>(kBytes, 'x'));
  EXPECT_TRUE(is_text(file));
}

TEST_F(MappedFiles, of_one_file_are_one_until_it_changes) {
  MappedFile file = map(), again = map();
  EXPECT_EQ(file.data, again.data);
  std::filesystem::remove(path);
  std::ofstream(path, std::ios::binary) << "another";
  MappedFile other = map();
  EXPECT_NE(other.data, file.data);
  EXPECT_EQ(other.size, 7u);
  EXPECT_TRUE(is_text(again));
}

}  // namespace
}  // namespace quernel
