// What the system may refuse - memory, executable pages, threads, mapping a file - gives its own status and
// text, and nothing leaks. The linker sends the runtime's calls of mmap and its like through the functions
// below (see CMakeLists.txt), which refuse the one that a test names.
#include <errno.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <set>

#include "platform/platform.h"
#include "quernel/runtime.hpp"
#include "test_bundle.h"

namespace {
// Calls that are let through before one is refused; -1: none is.
int memory_left = -1, executable_left = -1, threads_left = -1;
bool refuse_files = false;
bool counting = false;
long mapped_bytes = 0;

bool refuse(int& left) {
  if (left < 0) return false;
  return left-- == 0;
}
}  // namespace

extern "C" {
void* __real_mmap(void*, size_t, int, int, int, off_t);
int __real_munmap(void*, size_t);
int __real_mprotect(void*, size_t, int);
int __real_pthread_create(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);

void* __wrap_mmap(void* address, size_t bytes, int protection, int flags, int fd, off_t offset) {
  if (fd >= 0 ? refuse_files : refuse(memory_left)) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  void* at = __real_mmap(address, bytes, protection, flags, fd, offset);
  if (counting && at != MAP_FAILED) mapped_bytes += static_cast<long>(bytes);
  return at;
}
int __wrap_munmap(void* at, size_t bytes) {
  if (counting) mapped_bytes -= static_cast<long>(bytes);
  return __real_munmap(at, bytes);
}
int __wrap_mprotect(void* at, size_t bytes, int protection) {
  if ((protection & PROT_EXEC) != 0 && refuse(executable_left)) {
    errno = EACCES;
    return -1;
  }
  return __real_mprotect(at, bytes, protection);
}
int __wrap_pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                          void* argument) {
  if (refuse(threads_left)) return EAGAIN;
  return __real_pthread_create(thread, attributes, run, argument);
}
}

namespace quernel::test {
namespace {

class SystemFailure : public testing::Test {
 protected:
  SystemFailure() : bytes_(bundle_bytes(test_contents())) {
    counting = true;
    mapped_bytes = 0;
  }
  ~SystemFailure() override {
    memory_left = executable_left = threads_left = -1;
    refuse_files = counting = false;
  }

  // Bundle, device and session of "accumulate", which has state; none are left after.
  qnl_status create(bool null_device, qnl_error* error) {
    Bundle bundle;
    if (qnl_status status = bundle.open(bytes_.data(), bytes_.size(), nullptr, error); status != QNL_OK)
      return status;
    Device device;
    qnl_status status = null_device ? device.open_null(error) : device.open_cpu(1, error);
    if (status != QNL_OK) return status;
    Session session;
    qnl_session_options options = {};
    options.entry_point = "accumulate";
    status = session.create(bundle, device, &options, error);
    if (status != QNL_OK) {
      EXPECT_EQ(session.get(), nullptr);
      qnl_device_info info;
      qnl_device_get_info(device.get(), &info);
      EXPECT_EQ(info.memory_used, 0u) << error->text;
    }
    return status;
  }

  // Refuses the first allocation, then the second only, until all succeed; gives the texts.
  std::set<std::string> refuse_each_allocation(bool null_device) {
    std::set<std::string> texts;
    for (int n = 0;; ++n) {
      memory_left = n;
      qnl_error error = {};
      qnl_status status = create(null_device, &error);
      EXPECT_EQ(mapped_bytes, 0) << "leaked after refused allocation " << n << ": " << error.text;
      if (memory_left >= 0) {  // fewer allocations than that were needed
        EXPECT_EQ(status, QNL_OK) << error.text;
        return texts;
      }
      EXPECT_EQ(status, QNL_OUT_OF_MEMORY) << error.text;
      EXPECT_EQ(error.status, QNL_OUT_OF_MEMORY);
      EXPECT_NE(std::string(error.text).find("no memory for"), std::string::npos) << error.text;
      EXPECT_TRUE(texts.insert(error.text).second) << error.text;
      if (n > 100) {
        ADD_FAILURE() << "no end of allocations";
        return texts;
      }
    }
  }

  AlignedBytes bytes_;
};

void expect_begins(const std::set<std::string>& texts, const std::string& wanted) {
  auto it = texts.lower_bound(wanted);
  EXPECT_TRUE(it != texts.end() && it->rfind(wanted, 0) == 0) << wanted << "\n"
                                                              << testing::PrintToString(texts);
}

TEST_F(SystemFailure, each_allocation_of_a_cpu_session) {
  std::set<std::string> texts = refuse_each_allocation(false);
  for (const char* wanted : {"bundle: no memory for it", "bundle: no memory for checking it",
                             "device: no memory for it", "session: no memory for ",
                             "state: no memory for 64 bytes", "input and output: no memory for 128 bytes",
                             "code image: no memory for its description", "code image: no memory for "})
    expect_begins(texts, wanted);
}

TEST_F(SystemFailure, each_allocation_of_a_null_session) {
  std::set<std::string> texts = refuse_each_allocation(true);
  expect_begins(texts, "device: no memory for it");
  expect_begins(texts, "kernels: no memory for their description");
}

TEST_F(SystemFailure, workspace_is_named) {
  Bundle bundle;
  ASSERT_EQ(bundle.open(bytes_.data(), bytes_.size()), QNL_OK);
  Device device;
  ASSERT_EQ(device.open_cpu(1), QNL_OK);
  memory_left = 1;  // the session block comes first
  Session session;
  qnl_error error = {};
  EXPECT_EQ(session.create(bundle, device, nullptr, &error), QNL_OUT_OF_MEMORY);
  EXPECT_EQ(std::string(error.text).rfind("workspace: no memory for ", 0), 0u) << error.text;
}

TEST_F(SystemFailure, executable_pages) {
  executable_left = 0;
  qnl_error error = {};
  EXPECT_EQ(create(false, &error), QNL_CODE_MEMORY_REFUSED);
  EXPECT_STREQ(error.text, "code image: the system does not let this process make pages executable");
  EXPECT_EQ(mapped_bytes, 0);
  EXPECT_EQ(create(false, &error), QNL_OK) << "only one call was refused";
}

TEST_F(SystemFailure, a_device_gets_no_thread_of_its_own) {
  Device device;
  qnl_error error = {};
  ASSERT_EQ(device.open_cpu(1, &error), QNL_OK);
  threads_left = 0;
  EXPECT_EQ(device.start_thread(&error), QNL_THREAD_FAILED);
  EXPECT_STREQ(error.text, "device: could not start a thread");
  threads_left = -1;
  memory_left = 0;
  EXPECT_EQ(device.start_thread(&error), QNL_OUT_OF_MEMORY);
  EXPECT_STREQ(error.text, "device: no memory for a thread");
  memory_left = -1;
  EXPECT_EQ(device.start_thread(&error), QNL_OK);
  device = Device();
  EXPECT_EQ(mapped_bytes, 0);
}

// The threads that started before the one that does not are stopped and joined.
TEST_F(SystemFailure, each_thread) {
  for (int n = 0; n < 3; ++n) {
    threads_left = n;
    Device device;
    qnl_error error = {};
    EXPECT_EQ(device.open_cpu(4, &error), QNL_THREAD_FAILED);
    EXPECT_EQ(device.get(), nullptr);
    EXPECT_STREQ(error.text, "device: could not start 3 threads");
    EXPECT_EQ(error.status, QNL_THREAD_FAILED);
    EXPECT_EQ(mapped_bytes, 0);
  }
  threads_left = 3;
  Device device;
  EXPECT_EQ(device.open_cpu(4), QNL_OK);
}

// Large blocks begin where huge pages do; whatever was mapped to get there is given back.
TEST_F(SystemFailure, blocks_of_every_size) {
  constexpr uint64_t kHuge = uint64_t{2} << 20;
  for (uint64_t bytes : {uint64_t{1}, uint64_t{4096}, uint64_t{4097}, kHuge / 2, kHuge - 1, kHuge, kHuge + 1,
                         kHuge + kHuge / 2, 3 * kHuge - 64, 3 * kHuge}) {
    auto* block = static_cast<unsigned char*>(platform::allocate_pages(bytes));
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % (bytes < kHuge - 1 ? 4096 : kHuge), 0u) << bytes;
    EXPECT_GE(mapped_bytes, static_cast<long>(bytes));
    EXPECT_LE(mapped_bytes, static_cast<long>(bytes + kHuge / 4)) << bytes;
    EXPECT_EQ(block[0] | block[bytes / 2] | block[bytes - 1], 0);
    block[0] = block[bytes / 2] = block[bytes - 1] = 1;
    platform::free_pages(block, bytes);
    EXPECT_EQ(mapped_bytes, 0) << bytes;
    memory_left = 0;
    EXPECT_EQ(platform::allocate_pages(bytes), nullptr);
    memory_left = -1;
  }
}

TEST_F(SystemFailure, mapping_of_a_file) {
  std::string path = temporary_path("unmapped.qnl");
  std::ofstream(path, std::ios::binary)
      .write(static_cast<const char*>(bytes_.data()), static_cast<std::streamsize>(bytes_.size()));
  refuse_files = true;
  Bundle bundle;
  qnl_error error = {};
  EXPECT_EQ(bundle.open(path.c_str(), nullptr, &error), QNL_FILE_UNREADABLE);
  EXPECT_EQ(error.text, "'" + path + "': it cannot be mapped");
  refuse_files = false;
  memory_left = 0;  // of the bundle object, after the file is mapped
  EXPECT_EQ(bundle.open(path.c_str(), nullptr, &error), QNL_OUT_OF_MEMORY);
  EXPECT_EQ(mapped_bytes, 0) << "the file stays mapped";
  EXPECT_EQ(bundle.open(path.c_str()), QNL_OK);
}

TEST_F(SystemFailure, file_without_permission) {
  std::string path = temporary_path("forbidden.qnl");
  std::ofstream(path) << "x";
  ASSERT_EQ(chmod(path.c_str(), 0), 0);
  // The superuser may read every file, so be someone else for a moment.
  const bool superuser = geteuid() == 0;
  if (superuser && seteuid(65534) != 0) GTEST_SKIP() << "cannot become another user";
  Bundle bundle;
  qnl_error error = {};
  qnl_status status = bundle.open(path.c_str(), nullptr, &error);
  if (superuser) {
    ASSERT_EQ(seteuid(0), 0);
  }
  EXPECT_EQ(status, QNL_FILE_UNREADABLE);
  EXPECT_EQ(error.text, "'" + path + "': it cannot be opened for reading");
}

}  // namespace
}  // namespace quernel::test
