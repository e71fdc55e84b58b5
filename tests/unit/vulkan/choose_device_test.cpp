// Which device is chosen, why, and what of it is kept from one process to the next.
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>

#include "core/device.h"
#include "vulkan_fixture.h"

namespace quernel::test {
namespace {

constexpr uint32_t kMain = 0;  // entry point, and its tensors in order

template <class T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  const auto* data = reinterpret_cast<const std::byte*>(values.data());
  return {data, data + values.size() * sizeof(T)};
}

bundle::TestVector main_test(const std::string& name, float offset) {
  std::vector<float> a(kElements), b(kElements), sum(kElements);
  for (size_t i = 0; i < kElements; ++i) {
    a[i] = static_cast<float>(i % 100) + offset;
    b[i] = 0.25f * static_cast<float>(i % 7);
    sum[i] = (a[i] + b[i]) * 2.0f + 1.0f;
  }
  bundle::TestVector test;
  test.name = name;
  test.entry_point = kMain;
  test.tensors = {{0, false, bytes_of(a), {64, 64}, {}},
                  {1, false, bytes_of(b), {64, 64}, {}},
                  {0, true, bytes_of(sum), {64, 64}, {}}};
  return test;
}

bundle::BundleContents tested_contents() {
  bundle::BundleContents contents = with_vulkan(test_contents());
  contents.test_vectors = {main_test("small", 0), main_test("large", 1000)};
  return contents;
}

bundle::Plan& plan_of(bundle::BundleContents& contents, const std::string& target) {
  for (bundle::Plan& plan : contents.entry_points[kMain].plans)
    if (contents.variants[plan.variant].target == target) return plan;
  std::abort();
}

// The CPU's plan does its work again and again.
bundle::BundleContents contents_of_a_slow_cpu() {
  bundle::BundleContents contents = tested_contents();
  bundle::Plan& plan = plan_of(contents, "host");
  std::vector<bundle::Item> once = plan.items;
  for (uint32_t round = 1; round < 4000; ++round)
    for (bundle::Item item : once) {
      for (bundle::Edge& edge : item.edges) edge.item += round * static_cast<uint32_t>(once.size());
      plan.items.push_back(item);
    }
  return contents;
}

// The Vulkan variant is that of another model: with other constants.
bundle::BundleContents contents_of_a_wrong_gpu() {
  bundle::BundleContents contents = tested_contents();
  bundle::Binding& constants = plan_of(contents, "vulkan").items[1].bindings[1];
  constants.offset += 8;
  constants.bytes -= 8;
  return contents;
}

bundle::BundleContents without_the_cpu(bundle::BundleContents contents) {
  contents.variants[0].required_features |= uint64_t{1} << 62;
  return contents;
}

class ChooseDevice : public testing::Test {
 protected:
  void SetUp() override {
    static const std::string reason = why_no_vulkan();
    if (!reason.empty()) GTEST_SKIP() << reason;
    vulkan_.validation = 1;
    vulkan_.message = [](void* user, const char* text) { *static_cast<std::string*>(user) += text; };
    vulkan_.message_user = &messages_;
    options_.vulkan = &vulkan_;
    options_.cpu = &cpu_;
  }
  void TearDown() override {
    device_ = Device();
    EXPECT_EQ(messages_, "") << "of the validation layers";
  }
  void open(const bundle::BundleContents& contents) {
    bytes_.emplace(bundle_bytes(contents));
    ASSERT_EQ(bundle_.open(bytes_->data(), bytes_->size(), nullptr, &error_), QNL_OK) << error_.text;
  }
  qnl_status choose() {
    device_ = Device();
    return device_.choose(bundle_, &options_, &choice_, &error_);
  }
  void expect(qnl_choice_reason reason, bool is_vulkan, const std::string& says) {
    ASSERT_EQ(choose(), QNL_OK) << error_.text;
    EXPECT_EQ(choice_.reason, reason) << choice_.text;
    EXPECT_EQ(choice_.is_vulkan != 0, is_vulkan) << choice_.text;
    EXPECT_NE(std::string(choice_.text).find(says), std::string::npos) << choice_.text;
    qnl_device_info info;
    qnl_device_get_info(device_.get(), &info);
    EXPECT_EQ(info.arch == QNL_ARCH_SPIRV, is_vulkan) << info.name;
  }
  // The software driver has the same processors as everything else on the machine, which may hold it up:
  // asked until it is the faster one, and each answer follows from its times.
  void expect_faster() {
    for (int tries = 0; tries < 20; ++tries) {
      ASSERT_EQ(choose(), QNL_OK) << error_.text;
      if (choice_.vulkan_nanoseconds < choice_.cpu_nanoseconds) break;
      EXPECT_EQ(choice_.reason, QNL_CHOICE_SLOWER) << choice_.text;
      EXPECT_FALSE(choice_.is_vulkan) << choice_.text;
      options_.check_anew = 1;
    }
    options_.check_anew = 0;
    EXPECT_EQ(choice_.reason, QNL_CHOICE_FASTER) << choice_.text;
    EXPECT_TRUE(choice_.is_vulkan) << choice_.text;
    EXPECT_NE(strstr(choice_.text, "is faster: right on 2 test vectors"), nullptr) << choice_.text;
    EXPECT_EQ(choice_.test_count, 2u);
  }
  void expect_cached(qnl_choice_reason reason, bool is_vulkan) {
    expect(reason, is_vulkan, "");
    EXPECT_TRUE(choice_.is_cached) << choice_.text;
  }
  void expect_decided_anew() {
    ASSERT_EQ(choose(), QNL_OK) << error_.text;
    EXPECT_FALSE(choice_.is_cached) << choice_.text;
  }
  void keep_in(const std::string& name) {
    path_ = temporary_path(name);
    options_.cache_path = path_.c_str();
  }

  std::string messages_, path_;
  qnl_vulkan_options vulkan_ = {};
  qnl_cpu_options cpu_ = {};
  qnl_choice_options options_ = {};
  std::optional<AlignedBytes> bytes_;
  Bundle bundle_;
  Device device_;
  qnl_choice choice_ = {};
  qnl_error error_ = {};
};

TEST_F(ChooseDevice, the_faster_one) {
  open(contents_of_a_slow_cpu());
  expect_faster();
}

TEST_F(ChooseDevice, the_cpu_where_it_is_faster_unless_forced) {
  open(tested_contents());
  keep_in("slower");
  expect(QNL_CHOICE_SLOWER, false, "is slower: right on 2 test vectors");
  EXPECT_GT(choice_.vulkan_nanoseconds, choice_.cpu_nanoseconds);
  options_.force = 1;
  expect_cached(QNL_CHOICE_SLOWER, true);
}

TEST_F(ChooseDevice, not_one_that_is_wrong) {
  open(contents_of_a_wrong_gpu());
  expect(QNL_CHOICE_WRONG, false, "is wrong: test vector 'small': output 'sum': ");
  options_.force = 1;
  expect(QNL_CHOICE_WRONG, true, "is wrong");
}

TEST_F(ChooseDevice, an_error_where_neither_is_right) {
  open(without_the_cpu(contents_of_a_wrong_gpu()));
  EXPECT_EQ(choose(), QNL_NO_MATCHING_VARIANT);
  EXPECT_NE(strstr(error_.text, "is wrong: test vector 'small'"), nullptr) << error_.text;
  EXPECT_EQ(device_.get(), nullptr);
}

TEST_F(ChooseDevice, the_only_one_that_is_right) {
  open(without_the_cpu(tested_contents()));
  expect(QNL_CHOICE_ONLY, true, "the CPU cannot be used: device 'cpu'");
}

bundle::BundleContents without_tests(bundle::BundleContents contents) {
  contents.test_vectors.clear();
  return contents;
}

TEST_F(ChooseDevice, without_test_vectors_and_cpu_it_is_unchecked) {
  open(without_the_cpu(without_tests(tested_contents())));
  expect(QNL_CHOICE_UNCHECKED, true,
         "is not checked: the bundle holds no test vectors (quernel compile --embed-tests stores some)");
}

TEST_F(ChooseDevice, without_test_vectors_it_has_to_compute_what_the_cpu_does) {
  open(without_tests(contents_of_a_wrong_gpu()));
  expect(QNL_CHOICE_WRONG, false,
         "is wrong: of random input it computes something else than the CPU: output 'sum': ");
  EXPECT_EQ(choice_.vulkan_nanoseconds, 0u);
  options_.force = 1;
  expect(QNL_CHOICE_WRONG, true, "is wrong");
}

TEST_F(ChooseDevice, without_test_vectors_the_faster_one_on_random_input) {
  open(without_tests(tested_contents()));
  expect(QNL_CHOICE_SLOWER, false, "is slower: computes what the CPU does of random input, in ");
  EXPECT_GT(choice_.vulkan_nanoseconds, choice_.cpu_nanoseconds);
  EXPECT_EQ(choice_.test_count, 0u);
}

TEST_F(ChooseDevice, the_cpu_where_there_is_no_device) {
  open(tested_contents());
  vulkan_.device = "a device that nobody has";
  expect(QNL_CHOICE_NO_DEVICE, false, "expected device 'a device that nobody has'");
  EXPECT_EQ(choice_.key, 0u);
  vulkan_.device = nullptr;
  const char* drivers = getenv("VK_ICD_FILENAMES");
  std::string before = drivers == nullptr ? "" : drivers;
  setenv("VK_ICD_FILENAMES", "/nonexistent.json", 1);
  expect(QNL_CHOICE_NO_DEVICE, false, "or use the CPU");
  options_.force = 1;
  EXPECT_EQ(choose(), QNL_NO_MATCHING_VARIANT);
  EXPECT_NE(strstr(error_.text, "or use the CPU"), nullptr) << error_.text;
  drivers == nullptr ? unsetenv("VK_ICD_FILENAMES") : setenv("VK_ICD_FILENAMES", before.c_str(), 1);
  messages_.clear();  // of the loader, about the driver that there is not
}

TEST_F(ChooseDevice, the_cpu_where_the_bundle_has_no_code_for_the_device) {
  open(test_contents());
  expect(QNL_CHOICE_NO_VARIANT, false, "the bundle has");
  open(tested_contents());
  vulkan_.feature_mask = QNL_SPIRV_VULKAN_1_1;  // a device without 64-bit integers
  expect(QNL_CHOICE_NO_VARIANT, false, "the bundle has");
  options_.force = 1;
  EXPECT_EQ(choose(), QNL_NO_MATCHING_VARIANT);
}

TEST_F(ChooseDevice, the_cpu_where_memory_is_missing) {
  bundle::BundleContents contents = tested_contents();
  constexpr uint32_t kWorkspace = 1;
  contents.arenas[kWorkspace].bytes = uint64_t{1} << 45;
  open(contents);
  expect(QNL_CHOICE_NO_MEMORY, false, "the bundle needs a block of memory of 35184372088832 bytes");
  qnl_device_info info;
  qnl_device_get_info(device_.get(), &info);
  EXPECT_EQ(info.memory_bytes, UINT64_MAX);
  // A program can find out by itself.
  ASSERT_EQ(device_.open_vulkan(&vulkan_, &error_), QNL_OK) << error_.text;
  qnl_device_get_info(device_.get(), &info);
  qnl_requirements needs;
  ASSERT_EQ(qnl_session_query(bundle_.get(), device_.get(), nullptr, &needs, &error_), QNL_OK) << error_.text;
  EXPECT_GT(needs.workspace_bytes, info.max_block_bytes);
  EXPECT_GT(needs.workspace_bytes, info.memory_bytes);
  EXPECT_GE(info.max_binding_bytes, uint64_t{1} << 27) << "what Vulkan promises";
}

TEST_F(ChooseDevice, a_decision_is_kept) {
  open(tested_contents());
  keep_in("kept");
  expect(QNL_CHOICE_SLOWER, false, "is slower");
  EXPECT_FALSE(choice_.is_cached);
  std::string text = choice_.text;
  uint64_t nanoseconds = choice_.vulkan_nanoseconds;
  expect_cached(QNL_CHOICE_SLOWER, false);
  EXPECT_EQ(choice_.text, text);
  EXPECT_EQ(choice_.vulkan_nanoseconds, nanoseconds);
  EXPECT_EQ(choice_.test_count, 2u);
  options_.check_anew = 1;
  expect_decided_anew();
}

TEST_F(ChooseDevice, a_decision_is_of_its_bundle_device_and_options) {
  open(tested_contents());
  keep_in("keyed");
  expect_decided_anew();
  cpu_.threads = 2;
  expect_decided_anew();
  expect_cached(QNL_CHOICE_SLOWER, false);
  vulkan_.feature_mask = QNL_SPIRV_VULKAN_1_1 | QNL_SPIRV_INT64;  // another device to the bundle
  expect_decided_anew();
  vulkan_.copy_always = 1;
  expect_decided_anew();
  device_ = Device();
  bundle::BundleContents contents = tested_contents();
  contents.test_vectors.pop_back();
  open(contents);
  expect_decided_anew();
  expect_cached(QNL_CHOICE_SLOWER, false);
}

TEST_F(ChooseDevice, a_damaged_decision_is_made_anew) {
  open(tested_contents());
  keep_in("damaged");
  expect_decided_anew();
  std::string whole;
  {
    std::ifstream file(path_, std::ios::binary);
    whole.assign(std::istreambuf_iterator<char>(file), {});
  }
  ASSERT_GT(whole.size(), 500u);
  auto store = [&](const std::string& contents) {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << contents;
  };
  for (size_t at = 0; at < whole.size(); at += 40) {  // magic, version, reason, key, text, hash
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    store(damaged);
    expect_decided_anew();
    expect_cached(QNL_CHOICE_SLOWER, false);
  }
  for (const std::string& other : {std::string(), whole.substr(0, whole.size() - 1), whole + "x"}) {
    store(other);
    expect_decided_anew();
    expect_cached(QNL_CHOICE_SLOWER, false);
  }
  std::filesystem::remove(path_);
  std::filesystem::create_directory(path_);  // cannot be read, nor written
  expect_decided_anew();
  expect_decided_anew();
}

TEST_F(ChooseDevice, after_a_fault_in_use_the_cpu_is_chosen) {
  open(contents_of_a_slow_cpu());
  keep_in("fault");
  expect_faster();
  {
    Session session;
    ASSERT_EQ(session.create(bundle_, device_, nullptr, &error_), QNL_OK) << error_.text;
    std::vector<float> values(kElements, 1);
    for (const char* name : {"a", "b"})
      ASSERT_EQ(session.set_input(tensor(name, QNL_F32, {64, 64}, values)), QNL_OK);
    ASSERT_EQ(session.run(&error_), QNL_OK) << error_.text;
    runtime::vulkan::inject_fault(device_.get());
    EXPECT_EQ(session.run(&error_), QNL_DEVICE_FAULT);
    EXPECT_EQ(session.run(&error_), QNL_DEVICE_FAULT) << "it stays lost";
  }
  qnl_choice_give_up(path_.c_str(), &choice_, error_.text);
  EXPECT_EQ(choice_.reason, QNL_CHOICE_FAILED);
  EXPECT_FALSE(choice_.is_vulkan);
  expect_cached(QNL_CHOICE_FAILED, false);
  EXPECT_NE(strstr(choice_.text, "failed in use: "), nullptr) << choice_.text;
  options_.force = 1;  // tries again
  expect_decided_anew();
  EXPECT_TRUE(choice_.is_vulkan) << choice_.text;
  EXPECT_EQ(choice_.test_count, 2u) << choice_.text;
}

TEST_F(ChooseDevice, null_is_refused) {
  EXPECT_EQ(qnl_device_choose(nullptr, nullptr, nullptr, nullptr, &error_), QNL_INVALID_ARGUMENT);
  EXPECT_STREQ(error_.text, "device: expected a bundle, and places for the device and the choice");
}

}  // namespace
}  // namespace quernel::test
