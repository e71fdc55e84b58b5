// Constants that go through a queue family that only transfers, which transfer_family_layer.h adds, below the
// validation layers.
#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <optional>
#include <thread>

#include "core/device.h"
#include "transfer_family_layer.h"
#include "vulkan/vulkan_device.h"
#include "vulkan_fixture.h"

namespace quernel::test {
namespace {

using runtime::DeviceArena;
using runtime::DeviceRange;
using runtime::DeviceTable;
using runtime::KernelSet;

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kNone = ~uint64_t{0};

// A variable of the environment, for as long as this object lives.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    setenv(name, value.c_str(), 1);
  }
  ~Variable() { before_ ? setenv(name_, before_->c_str(), 1) : unsetenv(name_); }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

class VulkanUploads : public testing::Test, protected SessionsOnDevice {
 protected:
  void SetUp() override {
    if (std::string reason = why_not("vulkan"); !reason.empty()) GTEST_SKIP() << reason;
    void* library = dlopen(TEST_LAYER, RTLD_NOW);
    ASSERT_NE(library, nullptr) << dlerror();
    counts_ = reinterpret_cast<TransferFamilyCountsFunction>(dlsym(library, "transfer_family_counts"));
    ASSERT_NE(counts_, nullptr) << dlerror();
    before_ = counts_();
    open_device("vulkan copies");
  }
  // On a device with the layer below those of validation. Loaders take layers in the order of the list or, as
  // version 1.3.239, in that in which they find them; what comes first is closest to the application.
  void open_device(const char* kind) {
    std::string folders;
    for (const char* root : {"/etc", "/usr/local/share", "/usr/share"})
      folders += std::string(root) + "/vulkan/explicit_layer.d:";
    Variable path("VK_ADD_LAYER_PATH", folders + TEST_LAYERS);
    Variable names("VK_INSTANCE_LAYERS", std::string("VK_LAYER_KHRONOS_validation:") + kTransferFamilyLayer);
    device_.emplace(kind);
  }
  void TearDown() override {
    if (counts_ != nullptr) {
      EXPECT_EQ(layer().exclusive_buffers, 0u) << "buffers that only the other family may use";
    }
  }
  qnl_device* device() const { return device_->get(); }
  const DeviceTable& table() const { return *device()->table; }
  // Since the test began.
  TransferFamilyCounts layer() const {
    TransferFamilyCounts now = counts_();
    return {now.submissions - before_.submissions, now.copies - before_.copies,
            now.exclusive_buffers - before_.exclusive_buffers};
  }
  // The number of that name in the device's description; kNone: it has none.
  uint64_t described(const char* name) const {
    std::string text(qnl_device_describe(device(), QNL_JSON, nullptr, 0), '\0');
    qnl_device_describe(device(), QNL_JSON, text.data(), text.size());
    const std::string key = "\"" + std::string(name) + "\": ";
    size_t at = text.find(key);
    return at == std::string::npos ? kNone : std::strtoull(text.c_str() + at + key.size(), nullptr, 10);
  }

  TransferFamilyCountsFunction counts_ = nullptr;
  TransferFamilyCounts before_;
};

std::vector<std::byte> pattern(uint64_t bytes, uint32_t factor) {
  std::vector<std::byte> result(bytes);
  for (uint32_t i = 0; i < bytes / 4; ++i) {
    const uint32_t word = i * factor;
    std::memcpy(result.data() + size_t{i} * 4, &word, 4);
  }
  return result;
}

// Else their silence would mean nothing.
TEST_F(VulkanUploads, the_validation_layers_see_two_families) {
  auto* d = runtime::vulkan::vulkan(static_cast<runtime::Device*>(device()));
  ASSERT_EQ(d->queue_count, 2u);
  VkCommandBuffer commands = d->queues[1].transfers[0];
  VkCommandBufferBeginInfo begin = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  VkSubmitInfo info = {VK_STRUCTURE_TYPE_SUBMIT_INFO};
  info.commandBufferCount = 1;
  info.pCommandBuffers = &commands;
  ASSERT_EQ(d->api.BeginCommandBuffer(commands, &begin), VK_SUCCESS);
  ASSERT_EQ(d->api.EndCommandBuffer(commands), VK_SUCCESS);
  ASSERT_EQ(device_->messages, "");
  (void)d->api.QueueSubmit(d->queues[0].handle, 1, &info, VK_NULL_HANDLE);
  ASSERT_EQ(d->api.DeviceWaitIdle(d->device), VK_SUCCESS);
  EXPECT_NE(device_->messages.find("VUID-vkQueueSubmit-pCommandBuffers-00074"), std::string::npos)
      << device_->messages;
  device_->messages.clear();
}

TEST_F(VulkanUploads, constants_go_through_the_family_that_only_transfers) {
  AlignedBytes code(spirv_table("WORD(0, i) = WORD(1, i * 16u + 5u);", 2, 0));
  constexpr uint32_t kFactor = 2654435761u, kCount = 160 * 1024;
  const std::vector<std::byte> bytes = pattern(10 * kMiB, kFactor);
  const AlignedBytes constants(bytes);
  KernelSet* kernels = nullptr;
  ASSERT_EQ(table().load_kernels(device(), {code.data(), code.size(), QNL_ARCH_SPIRV, 1}, &kernels, nullptr),
            QNL_OK);
  DeviceArena words, results;
  ASSERT_EQ(table().wrap_arena(device(), constants.data(), bytes.size(), true, &words), QNL_OK);
  ASSERT_EQ(table().allocate_arena(device(), kCount * 4, false, &results), QNL_OK);
  const DeviceRange ranges[] = {{&results, 0}, {&words, 0}};
  EXPECT_EQ(layer().submissions, 0u) << "an arena's zeros are no constants";
  ASSERT_EQ(table().launch(device(), kernels, 0, kCount / 16, ranges, 2, nullptr), QNL_OK);
  EXPECT_EQ(layer().submissions, 3u) << "halves of the staging memory";
  std::vector<uint32_t> found(kCount);
  ASSERT_EQ(table().read(device(), ranges[0], found.data(), kCount * 4), QNL_OK);
  for (uint32_t i = 0; i < kCount; ++i) ASSERT_EQ(found[i], (i * 16 + 5) * kFactor) << i;
  std::vector<std::byte> copy(bytes.size());
  ASSERT_EQ(table().read(device(), ranges[1], copy.data(), copy.size()), QNL_OK);
  EXPECT_TRUE(copy == bytes);
  ASSERT_EQ(table().launch(device(), kernels, 0, kCount / 16, ranges, 2, nullptr), QNL_OK);
  EXPECT_EQ(layer().submissions, 3u) << "once";
  EXPECT_EQ(layer().copies, 3u);
  table().free_arena(device(), &results);
  table().free_arena(device(), &words);
  table().unload_kernels(device(), kernels);
}

TEST_F(VulkanUploads, other_transfers_go_through_the_queue_of_kernels) {
  DeviceArena a, b;
  ASSERT_EQ(table().allocate_arena(device(), kMiB, false, &a), QNL_OK);
  ASSERT_EQ(table().allocate_arena(device(), kMiB, false, &b), QNL_OK);
  const std::vector<std::byte> bytes = pattern(kMiB, 3);
  std::vector<std::byte> found(kMiB);
  ASSERT_EQ(table().write(device(), {&a, 0}, bytes.data(), kMiB), QNL_OK);
  ASSERT_EQ(table().copy(device(), {&a, 0}, {&b, 0}, kMiB), QNL_OK);
  ASSERT_EQ(table().fill(device(), {&a, 0}, kMiB, 7), QNL_OK);
  ASSERT_EQ(table().read(device(), {&b, 0}, found.data(), kMiB), QNL_OK);
  EXPECT_TRUE(found == bytes);
  EXPECT_EQ(layer().submissions, 0u);
  table().free_arena(device(), &a);
  table().free_arena(device(), &b);
}

TEST_F(VulkanUploads, runs_in_flight_go_on_meanwhile) {
  open(test_contents());
  Session first = session("main");
  set_main(first, 2);
  EXPECT_EQ(layer().submissions, 1u);
  qnl_event* event = submit(first);
  const AlignedBytes bytes(bundle_bytes(contents_for(test_contents())));
  Bundle other;  // with constants of its own
  ASSERT_EQ(other.open(bytes.data(), bytes.size(), nullptr, &error_), QNL_OK) << error_.text;
  qnl_session_options options = {};
  options.entry_point = "main";
  Session second;
  ASSERT_EQ(second.create(other, device_->device, &options, &error_), QNL_OK) << error_.text;
  set_main(second, 5);
  qnl_event* last = submit(second);
  EXPECT_EQ(layer().submissions, 2u);
  EXPECT_EQ(wait(event), QNL_OK);
  EXPECT_EQ(wait(last), QNL_OK);
  EXPECT_EQ(result(first, "sum"), 9);
  EXPECT_EQ(result(second, "sum"), 21);
  EXPECT_EQ(counts(*device_).uploads, 2u);
}

TEST_F(VulkanUploads, threads_upload_and_run_at_once) {
  const std::vector<std::byte> contents = bundle_bytes(contents_for(test_contents()));
  constexpr int kThreads = 4, kRounds = 5;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      qnl_error error = {};
      qnl_session_options options = {};
      options.entry_point = "main";
      for (int round = 0; round < kRounds; ++round) {
        const AlignedBytes bytes(contents);
        Bundle bundle;
        Session session;
        ASSERT_EQ(bundle.open(bytes.data(), bytes.size(), nullptr, &error), QNL_OK) << error.text;
        ASSERT_EQ(session.create(bundle, device_->device, &options, &error), QNL_OK) << error.text;
        std::vector<float> values(kElements, static_cast<float>(t + round));
        for (const char* name : {"a", "b"})
          ASSERT_EQ(session.set_input(tensor(name, QNL_F32, {64, 64}, values), &error), QNL_OK) << error.text;
        ASSERT_EQ(session.run(&error), QNL_OK) << error.text;
        qnl_tensor sum = {};
        ASSERT_EQ(session.tensor(QNL_OUTPUT, "sum", &sum, &error), QNL_OK) << error.text;
        for (uint64_t i = 0; i < kElements; ++i)
          ASSERT_EQ(static_cast<const float*>(sum.data)[i], static_cast<float>(4 * (t + round) + 1)) << i;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(layer().submissions, uint64_t{kThreads * kRounds});
}

TEST_F(VulkanUploads, the_description_names_the_family) {
  const uint64_t kernels = described("queue_family"), uploads = described("upload_queue_family");
  ASSERT_NE(kernels, kNone);
  ASSERT_NE(uploads, kNone);
  EXPECT_NE(uploads, kernels);
  open_device("vulkan");
  EXPECT_EQ(described("queue_family"), kernels);
  runtime::DeviceProperties properties;
  table().properties(device(), &properties);
  if (properties.is_software) {
    EXPECT_EQ(described("upload_queue_family"), kNone) << "a device that shares memory uploads nothing";
    Variable none("VK_INSTANCE_LAYERS", "");
    device_.emplace("vulkan copies");
    EXPECT_EQ(described("queue_family"), 0u);
    EXPECT_EQ(described("upload_queue_family"), 0u) << "without the layer there is one family";
  }
}

}  // namespace
}  // namespace quernel::test
