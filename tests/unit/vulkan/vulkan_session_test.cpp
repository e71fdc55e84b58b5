// Sessions on a Vulkan device: results, memory of every kind, symbols and control flow, callbacks, faults;
// once with memory that the process reaches and once with copies.
#include <sys/stat.h>

#include <cstring>
#include <fstream>
#include <functional>
#include <optional>

#include "core/device.h"
#include "platform/platform.h"
#include "vulkan_fixture.h"

namespace quernel::test {
namespace {

using Floats = std::vector<float>;
using Integers = std::vector<int64_t>;

class VulkanSession : public VulkanTest {
 protected:
  void TearDown() override {
    session_ = Session();
    bundle_ = Bundle();
  }
  using VulkanTest::create;
  void create(const char* entry) { ASSERT_EQ(create(&session_, entry), QNL_OK) << error_.text; }
  void run() { ASSERT_EQ(session_.run(&error_), QNL_OK) << error_.text; }

  template <class T>
  void set(const char* name, qnl_dtype dtype, const std::vector<int64_t>& shape, std::vector<T> values) {
    EXPECT_EQ(session_.set_input(tensor(name, dtype, shape, values), &error_), QNL_OK) << error_.text;
  }
  template <class T = float>
  std::vector<T> output(const char* name) {
    qnl_tensor found = {};
    EXPECT_EQ(session_.tensor(QNL_OUTPUT, name, &found, &error_), QNL_OK) << error_.text;
    const T* data = static_cast<const T*>(found.data);
    return {data, data + found.bytes / sizeof(T)};
  }
  Floats set_main_inputs(float offset = 0) {
    Floats a(kElements), b(kElements), expected(kElements);
    for (size_t i = 0; i < kElements; ++i) {
      a[i] = static_cast<float>(i) + offset;
      b[i] = 0.25f * static_cast<float>(i % 7);
      expected[i] = (a[i] + b[i]) * 2.0f + 1.0f;
    }
    set("a", QNL_F32, {64, 64}, a);
    set("b", QNL_F32, {64, 64}, b);
    return expected;
  }

  Session session_;
};

// Of a bundle with several entry points each session makes the kernels of its own, those that there are not
// yet.
TEST_P(VulkanSession, makes_the_kernels_of_its_entry_point_and_no_others) {
  open(test_contents());
  Session accumulate, again, child;
  ASSERT_EQ(create(&accumulate, "accumulate"), QNL_OK) << error_.text;
  EXPECT_EQ(counts().modules, 1u);
  EXPECT_EQ(counts().pipelines, 1u);
  create("main");
  EXPECT_EQ(counts().modules, 3u) << "two more";
  EXPECT_EQ(counts().pipelines, 3u);
  qnl_session_options options = {};
  options.parent = session_.get();
  ASSERT_EQ(create(&again, "main"), QNL_OK) << error_.text;
  ASSERT_EQ(create(&child, "accumulate", options), QNL_OK) << error_.text;
  EXPECT_EQ(counts().modules, 3u);
  EXPECT_EQ(counts().pipelines, 3u);
  Floats expected = set_main_inputs();
  run();
  EXPECT_EQ(output("sum"), expected);
}

TEST_P(VulkanSession, computes_with_one_submission_per_run_and_nothing_made_anew) {
  open(test_contents());
  create("main");
  EXPECT_EQ(counts().pipelines, 2u) << "made with the session";
  Floats expected = set_main_inputs();
  run();
  EXPECT_EQ(output("sum"), expected);
  auto before = counts();
  EXPECT_EQ(before.barriers, GetParam() ? 3u : 1u) << "the second command reads what the first one writes";
  for (int r = 1; r <= 5; ++r) {
    expected = set_main_inputs(static_cast<float>(r));
    run();
    EXPECT_EQ(output("sum"), expected);
  }
  auto after = counts();
  EXPECT_EQ(after.submissions, before.submissions + 5);
  EXPECT_EQ(after.transfers, before.transfers);
  EXPECT_EQ(after.recordings, before.recordings);
  EXPECT_EQ(after.descriptor_updates, before.descriptor_updates);
  EXPECT_EQ(after.pipelines, before.pipelines);
}

TEST_P(VulkanSession, sessions_share_constants_and_pipelines) {
  open(test_contents());
  create("main");
  auto before = counts();
  uint64_t used = device()->table->memory_used(device());
  Session second;
  ASSERT_EQ(create(&second, "main"), QNL_OK) << error_.text;
  EXPECT_EQ(counts().pipelines, before.pipelines);
  EXPECT_EQ(counts().uploads, before.uploads);
  EXPECT_LE(before.uploads, 1u);
  qnl_requirements needs;
  qnl_session_options options = {};
  options.entry_point = "main";
  ASSERT_EQ(qnl_session_query(bundle_.get(), device(), &options, &needs, nullptr), QNL_OK);
  EXPECT_EQ(device()->table->memory_used(device()),
            used + needs.workspace_bytes + needs.state_bytes + needs.io_bytes);
  session_ = Session();  // what the two share stays
  session_ = std::move(second);
  Floats expected = set_main_inputs(3);
  run();
  EXPECT_EQ(output("sum"), expected);
  session_ = Session();
  EXPECT_EQ(device()->table->memory_used(device()), 0u);
}

TEST_P(VulkanSession, bound_tensors_are_used) {
  open(test_contents());
  create("main");
  set_main_inputs();
  Floats a(kElements, 1.0f), sum(kElements + 1);
  ASSERT_EQ(session_.bind_input(tensor("a", QNL_F32, {64, 64}, a)), QNL_OK);
  qnl_tensor out = tensor("sum", QNL_F32, {64, 64}, sum);
  out.bytes = kElements * sizeof(float);
  out.data = sum.data() + 1;  // aligned to the element only
  ASSERT_EQ(session_.bind_output(out), QNL_OK);
  run();
  EXPECT_EQ(sum[0], 0.0f);
  EXPECT_EQ(sum[1], 3.0f);
  EXPECT_EQ(sum[2], 3.5f);
  auto before = counts();
  a.assign(kElements, 2.0f);  // no call is needed to use new contents
  run();
  EXPECT_EQ(sum[1], 5.0f);
  EXPECT_EQ(counts().recordings, before.recordings);
  out.data = nullptr;  // back to the session's own slot
  ASSERT_EQ(session_.bind_output(out), QNL_OK);
  run();
  EXPECT_EQ(output("sum")[0], 5.0f);
  EXPECT_EQ(sum[1], 5.0f);
}

TEST_P(VulkanSession, inputs_and_outputs_bound_by_the_caller) {
  open(test_contents());
  qnl_session_options options = {};
  options.io_bound_by_caller = 1;
  ASSERT_EQ(create(&session_, "accumulate", options), QNL_OK) << error_.text;
  Floats x(16, 1.0f), y(16);
  ASSERT_EQ(session_.bind_input(tensor("x", QNL_F32, {16}, x)), QNL_OK);
  EXPECT_EQ(session_.run(&error_), QNL_INPUT_NOT_SET);
  ASSERT_EQ(session_.bind_output(tensor("y", QNL_F32, {16}, y)), QNL_OK);
  run();
  run();
  EXPECT_EQ(y[0], 2.0f);
}

TEST_P(VulkanSession, caller_supplies_all_memory) {
  open(test_contents());
  struct alignas(64) Memory {
    char session[65536], state[64], workspace[65536], io[128];
  };
  static Memory memory;
  qnl_session_options options = {};
  options.session_memory = memory.session;
  options.session_memory_bytes = sizeof memory.session;
  options.state_memory = memory.state;
  options.state_memory_bytes = 64;
  options.workspace_memory = memory.workspace;
  options.workspace_memory_bytes = sizeof memory.workspace;
  options.io_memory = memory.io;
  options.io_memory_bytes = 128;
  ASSERT_EQ(create(&session_, "accumulate", options), QNL_OK) << error_.text;
  set("x", QNL_F32, {16}, Floats(16, 2.0f));
  run();
  run();
  EXPECT_EQ(output("y")[3], 4.0f);
  float state = 0;
  std::memcpy(&state, memory.state + 8, 4);
  EXPECT_EQ(state, 4.0f) << "the caller's memory has the state after each run";
}

TEST_P(VulkanSession, state_is_kept_reset_saved_restored_and_shared) {
  open(test_contents());
  create("accumulate");
  set("x", QNL_F32, {16}, Floats(16, 1.5f));
  run();
  run();
  EXPECT_EQ(output("y")[0], 3.0f);
  Floats saved(16);
  ASSERT_EQ(qnl_session_save_state(session_.get(), saved.data(), 64, nullptr), QNL_OK);
  EXPECT_EQ(saved[15], 3.0f);
  ASSERT_EQ(qnl_session_reset_state(session_.get(), nullptr), QNL_OK);
  run();
  EXPECT_EQ(output("y")[0], 1.5f);
  ASSERT_EQ(qnl_session_restore_state(session_.get(), saved.data(), 64, nullptr), QNL_OK);
  run();
  EXPECT_EQ(output("y")[0], 4.5f);
  qnl_session_options options = {};
  options.parent = session_.get();
  options.share_state = 1;
  Session shared;
  ASSERT_EQ(create(&shared, "accumulate", options), QNL_OK) << error_.text;
  Floats x(16, 1.5f);
  ASSERT_EQ(shared.set_input(tensor("x", QNL_F32, {16}, x)), QNL_OK);
  ASSERT_EQ(shared.run(), QNL_OK);
  run();
  EXPECT_EQ(output("y")[0], 7.5f);
  qnl_tensor state;
  ASSERT_EQ(session_.tensor(QNL_STATE, "acc", &state), QNL_OK);
  if (GetParam()) {
    EXPECT_EQ(state.data, nullptr) << "the process does not reach it";
  } else {
    EXPECT_EQ(static_cast<float*>(state.data)[5], 7.5f);
  }
}

// A state that is forked on the device stays there; to and from the CPU it passes through the host.
TEST_P(VulkanSession, state_is_copied_from_session_to_session) {
  open(test_contents());
  create("accumulate");
  set("x", QNL_F32, {16}, Floats(16, 1.5f));
  run();
  Session fork, there;
  ASSERT_EQ(create(&fork, "accumulate"), QNL_OK) << error_.text;
  std::vector<qnl_trace_kind> kinds;
  qnl_device_set_trace(
      device(),
      [](void* user, const qnl_trace_event* event) {
        static_cast<std::vector<qnl_trace_kind>*>(user)->push_back(event->kind);
      },
      &kinds);
  ASSERT_EQ(qnl_session_copy_state(fork.get(), session_.get(), &error_), QNL_OK) << error_.text;
  qnl_device_set_trace(device(), nullptr, nullptr);
  EXPECT_EQ(kinds, std::vector<qnl_trace_kind>{QNL_TRACE_COPY});
  Floats x(16, 1.5f);
  auto next = [&](Session& session) {
    qnl_tensor y = {};
    EXPECT_EQ(session.set_input(tensor("x", QNL_F32, {16}, x)), QNL_OK);
    EXPECT_EQ(session.run(&error_), QNL_OK) << error_.text;
    EXPECT_EQ(session.tensor(QNL_OUTPUT, "y", &y), QNL_OK);
    return static_cast<float*>(y.data)[15];
  };
  EXPECT_EQ(next(fork), 3.0f);
  EXPECT_EQ(next(fork), 4.5f);
  EXPECT_EQ(next(session_), 3.0f) << "its own";
  Device cpu;
  ASSERT_EQ(cpu.open_cpu(), QNL_OK);
  qnl_session_options options = {};
  options.entry_point = "accumulate";
  ASSERT_EQ(there.create(bundle_, cpu, &options, &error_), QNL_OK) << error_.text;
  ASSERT_EQ(qnl_session_copy_state(there.get(), fork.get(), &error_), QNL_OK) << error_.text;
  EXPECT_EQ(next(there), 6.0f);
  ASSERT_EQ(qnl_session_copy_state(session_.get(), there.get(), &error_), QNL_OK) << error_.text;
  EXPECT_EQ(next(session_), 7.5f);
  there = Session();
  runtime::vulkan::inject_fault(device());
  EXPECT_EQ(qnl_session_copy_state(fork.get(), session_.get(), &error_), QNL_DEVICE_FAULT);
  EXPECT_STREQ(error_.text, "state: cannot be copied");
}

int32_t notify(void* user, void* const* bindings, const uint64_t* bytes, uint32_t count) {
  EXPECT_EQ(count, 1u);
  EXPECT_EQ(bytes[0], 96u);
  auto* values = static_cast<int32_t*>(bindings[0]);
  static_cast<std::vector<int32_t>*>(user)->assign(values, values + 24);
  values[1] += 1000;
  return values[0] == 99 ? 7 : 0;
}

TEST_P(VulkanSession, strided_copy_and_callback) {
  open(test_contents());
  create("extras");
  std::vector<int32_t> in(24), seen;
  for (int i = 0; i < 24; ++i) in[i] = i;
  set("in", QNL_I32, {4, 6}, in);
  EXPECT_EQ(session_.run(&error_), QNL_CALLBACK_MISSING);
  EXPECT_STREQ(error_.text, "item 2 'notify': host callback missing");
  ASSERT_EQ(qnl_session_set_callback(session_.get(), "notify", notify, &seen, nullptr), QNL_OK);
  run();
  for (int r = 0; r < 4; ++r)
    for (int c = 0; c < 6; ++c) EXPECT_EQ(seen[c * 4 + r], in[r * 6 + c]);
  EXPECT_EQ(output<int32_t>("out")[1], seen[1] + 1000) << "what a callback writes is there";
  in[0] = 99;
  set("in", QNL_I32, {4, 6}, in);
  EXPECT_EQ(session_.run(&error_), QNL_CALLBACK_FAILED);
  EXPECT_STREQ(error_.text, "item 2 'notify': host callback failed, code 7");
}

TEST_P(VulkanSession, every_workgroup_runs_once) {
  open(test_contents(100000));
  create("count");
  for (int r = 0; r < 3; ++r) {
    run();
    std::vector<int32_t> counts = output<int32_t>("counts");
    for (size_t i = 0; i < counts.size(); ++i) ASSERT_EQ(counts[i], 1) << i;
  }
}

TEST_P(VulkanSession, profile_sees_every_item) {
  open(test_contents());
  create("main");
  Floats expected = set_main_inputs();
  std::vector<uint32_t> items;
  qnl_session_set_profile(
      session_.get(),
      [](void* user, uint32_t item, uint64_t) { static_cast<std::vector<uint32_t>*>(user)->push_back(item); },
      &items);
  run();
  EXPECT_EQ(items, (std::vector<uint32_t>{0, 1}));
  EXPECT_EQ(output("sum"), expected);
  qnl_session_set_profile(session_.get(), nullptr, nullptr);
  expected = set_main_inputs(5);
  run();
  EXPECT_EQ(output("sum"), expected);
}

TEST_P(VulkanSession, shapes_change) {
  open(symbolic_contents());
  create("add");
  for (auto [batch, width] : {std::pair<int64_t, int64_t>{2, 16}, {8, 64}, {1, 48}, {8, 64}, {2, 16}}) {
    const auto n = static_cast<size_t>(batch * width);
    Floats a(n), b(n, 0.5f), c(static_cast<size_t>(2 * batch)), expected(n);
    for (size_t i = 0; i < n; ++i) a[i] = static_cast<float>(i);
    for (size_t i = 0; i < c.size(); ++i) c[i] = static_cast<float>(i) - 3;
    for (int64_t bias : {0, 7}) {
      for (size_t i = 0; i < n; ++i) expected[i] = (a[i] + b[i]) * 2 + 1 + static_cast<float>(bias);
      set("a", QNL_F32, {batch, width}, a);
      set("b", QNL_F32, {batch, width}, b);
      set("c", QNL_F32, {2 * batch}, c);
      ASSERT_EQ(session_.set_symbol("bias", bias, &error_), QNL_OK) << error_.text;
      run();
      EXPECT_EQ(output("sum"), expected) << batch << " " << width << " " << bias;
      auto before = counts();
      run();
      EXPECT_EQ(output("sum"), expected);
      EXPECT_EQ(counts().recordings, before.recordings) << "nothing has changed";
    }
  }
}

TEST_P(VulkanSession, loops_and_branches) {
  open(symbolic_contents());
  create("steps");
  set<int64_t>("rows", QNL_I64, {9}, Integers(9));
  for (int64_t n : {3, 0, 9, 1}) {
    set<int64_t>("n", QNL_I64, {}, {n});
    run();
    Integers expected;
    for (int64_t i = 0; i < n; ++i) expected.push_back(i * i + 9);
    EXPECT_EQ(output<int64_t>("steps"), expected);
    auto before = counts();
    run();
    EXPECT_EQ(output<int64_t>("steps"), expected);
    EXPECT_EQ(counts().recordings, before.recordings) << "iterations replay";
  }
  session_ = Session();
  create("nested");
  set("x", QNL_F32, {16}, Floats(16, 100.0f));
  run();
  EXPECT_EQ(output("y"), Floats(16, 106.0f)) << "1+0, 2+0, 2+1";
  session_ = Session();
  create("until");
  for (int64_t limit : {0, 1, 10}) {
    set<int64_t>("limit", QNL_I64, {}, {limit});
    run();
    int64_t trips = (limit + 2) / 3;
    EXPECT_EQ(output<int64_t>("sum"), Integers{3 * trips});
    EXPECT_EQ(output<int64_t>("trips"), Integers{trips});
  }
  session_ = Session();
  create("choose");
  set("x", QNL_F32, {16}, Floats(16, 1.0f));
  for (auto [pick, expected] : {std::pair<int32_t, float>{0, 11.0f}, {1, 21.0f}, {2, 31.0f}}) {
    set<int32_t>("pick", QNL_I32, {}, {pick});
    run();
    EXPECT_EQ(output("y"), Floats(16, expected));
  }
}

int32_t sum_rows(void*, const qnl_custom_call* call) {
  const qnl_tensor& x = call->inputs[0];
  for (int64_t r = 0; r < x.shape[0]; ++r) {
    float sum = 0;
    for (int64_t i = 0; i < x.shape[1]; ++i) sum += static_cast<float*>(x.data)[r * x.shape[1] + i];
    static_cast<float*>(call->outputs[0].data)[2 * r] = sum;
    static_cast<float*>(call->outputs[0].data)[2 * r + 1] = -sum;
  }
  *static_cast<int32_t*>(call->outputs[1].data) = static_cast<int32_t>(x.shape[0]);
  return 0;
}

TEST_P(VulkanSession, custom_ops) {
  open(custom_contents());
  qnl_custom_op op = {QNL_CUSTOM_OP_ABI_VERSION, "test::Rows", "f32[?,?]->f32[?],i32[]", sum_rows, nullptr};
  qnl_session_options options = {};
  options.custom_ops = &op;
  options.custom_op_count = 1;
  ASSERT_EQ(create(&session_, "custom", options), QNL_OK) << error_.text;
  set("x", QNL_F32, {2, 16}, Floats(32, 0.5f));
  run();
  EXPECT_EQ(output("y"), (Floats{8, -8, 8, -8}));
  EXPECT_EQ(output<int32_t>("n")[0], 2);
}

TEST_P(VulkanSession, a_lost_device_stays_lost) {
  open(test_contents());
  create("main");
  set_main_inputs();
  run();
  runtime::vulkan::inject_fault(device());
  EXPECT_EQ(session_.run(&error_), QNL_DEVICE_FAULT);
  EXPECT_EQ(session_.run(&error_), QNL_DEVICE_FAULT);
  Session second;
  EXPECT_EQ(create(&second, "main"), QNL_DEVICE_FAULT);
  EXPECT_EQ(device()->table->wait_idle(device()), QNL_DEVICE_FAULT);
}

TEST_P(VulkanSession, more_memory_than_there_is_is_refused) {
  bundle::BundleContents contents = test_contents();
  contents.arenas[1].bytes = uint64_t{1} << 40;  // the workspace
  open(contents);
  EXPECT_EQ(create(&session_, "main"), QNL_OUT_OF_MEMORY);
  EXPECT_STREQ(error_.text, "workspace: no memory for 1099511627776 bytes");
  EXPECT_EQ(device()->table->memory_used(device()), 0u);
}

INSTANTIATE_TEST_SUITE_P(Memory, VulkanSession, testing::Bool(), memory_name);

class VulkanOpen : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (std::string reason = why_not("vulkan"); !reason.empty()) GTEST_SKIP() << reason;
  }
};

TEST_P(VulkanOpen, devices_are_listed_and_chosen) {
  qnl_vulkan_device_info devices[8];
  uint32_t count = 0;
  qnl_error error = {};
  ASSERT_EQ(qnl_vulkan_list(devices, 8, &count, &error), QNL_OK) << error.text;
  ASSERT_GE(count, 1u);
  for (uint32_t i = 0; i < count && i < 8; ++i) {
    if (devices[i].usable == 0) continue;
    EXPECT_NE(devices[i].features & QNL_SPIRV_VULKAN_1_1, 0u);
    for (const std::string& choice : {std::to_string(i), std::string(devices[i].name)}) {
      qnl_vulkan_options options = {};
      options.device = choice.c_str();
      OpenDevice device(vulkan_kind(GetParam()), options);
      qnl_device_info info;
      qnl_device_get_info(device.get(), &info);
      EXPECT_EQ(std::string(info.name), std::string("vulkan:") + devices[i].name);
      EXPECT_EQ(info.arch, QNL_ARCH_SPIRV);
      EXPECT_EQ(info.features, devices[i].features);
    }
  }
  qnl_vulkan_options options = {};
  options.device = "no such device";
  qnl_device* device = nullptr;
  EXPECT_EQ(qnl_device_open_vulkan(&options, &device, &error), QNL_NO_MATCHING_VARIANT);
  EXPECT_EQ(device, nullptr);
  EXPECT_NE(std::string(error.text).find("Vulkan: expected device 'no such device'"), std::string::npos)
      << error.text;
  EXPECT_NE(std::string(error.text).find(devices[0].name), std::string::npos) << error.text;
  options.device = "4000";
  EXPECT_EQ(qnl_device_open_vulkan(&options, &device, &error), QNL_NO_MATCHING_VARIANT);
  EXPECT_EQ(qnl_device_open_vulkan(&options, nullptr, &error), QNL_INVALID_ARGUMENT);
  std::string path(5000, 'x');
  options.cache_path = path.c_str();
  EXPECT_EQ(qnl_device_open_vulkan(&options, &device, &error), QNL_INVALID_ARGUMENT);
  EXPECT_STREQ(error.text, "cache_path: expected at most 4000 bytes, found 5000");
  EXPECT_EQ(qnl_vulkan_list(nullptr, 1, &count, &error), QNL_INVALID_ARGUMENT);
  EXPECT_STREQ(error.text, "devices: expected a place for the result");
}

TEST_P(VulkanOpen, features_can_be_masked) {
  qnl_vulkan_options options = {};
  options.feature_mask = QNL_SPIRV_INT64;
  OpenDevice device(vulkan_kind(GetParam()), options);
  qnl_device_info info;
  qnl_device_get_info(device.get(), &info);
  EXPECT_EQ(info.features & ~(QNL_SPIRV_INT64 | QNL_SPIRV_VULKAN_1_1), 0u);
}

std::string file_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST_P(VulkanOpen, pipelines_are_cached_in_a_file) {
  std::string path = temporary_path("pipelines");
  qnl_vulkan_options options = {};
  options.cache_path = path.c_str();
  AlignedBytes bytes(bundle_bytes(with_vulkan(test_contents())));
  Bundle bundle;
  ASSERT_EQ(bundle.open(bytes.data(), bytes.size()), QNL_OK);
  auto use = [&] {
    OpenDevice device(vulkan_kind(GetParam()), options);
    Session session;
    EXPECT_EQ(session.create(bundle, device.device), QNL_OK);
    return counts(device).cache_bytes;
  };
  EXPECT_EQ(use(), 0u);
  std::string stored = file_bytes(path);
  ASSERT_GE(stored.size(), 24u + 32u) << "two headers at least";
  EXPECT_EQ(use(), stored.size() - 24);
  // Whatever is wrong with it, it is not handed to the driver, and written anew.
  for (size_t at : {size_t{0}, size_t{4}, size_t{8}, size_t{16}, size_t{24 + 8}, stored.size() - 1}) {
    std::string damaged = stored;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    std::ofstream(path, std::ios::binary) << damaged;
    EXPECT_EQ(use(), 0u) << at;
    EXPECT_EQ(use(), file_bytes(path).size() - 24);
  }
  std::ofstream(path, std::ios::binary) << stored.substr(0, 30);
  EXPECT_EQ(use(), 0u);
  struct stat info;
  options.cache_path = "/nowhere/at/all";
  EXPECT_EQ(use(), 0u);
  EXPECT_NE(stat(options.cache_path, &info), 0);
}

TEST_P(VulkanOpen, a_submission_that_takes_too_long_ends_the_device) {
  qnl_vulkan_options options = {};
  options.timeout_nanoseconds = 200000000;
  OpenDevice device(vulkan_kind(GetParam()), options);
  const runtime::DeviceTable& table = *device.get()->table;
  // Many workgroups, because Mesa's software driver ends a loop after 65535 iterations; the compiler cannot
  // know the result.
  AlignedBytes code(spirv_table(
      "uint x = i; for (uint k = 0; k < SYMBOL(0); ++k) x = x * 1664525u + WORD(0, l);\nWORD(0, l) = x;", 1,
      1));
  runtime::KernelSet* kernels = nullptr;
  ASSERT_EQ(
      table.load_kernels(device.get(), {code.data(), code.size(), QNL_ARCH_SPIRV, 1}, &kernels, nullptr),
      QNL_OK);
  runtime::DeviceArena arena;
  ASSERT_EQ(table.allocate_arena(device.get(), 64, true, &arena), QNL_OK);
  runtime::DeviceRange range = {&arena, 0};
  int64_t iterations = 60000;
  EXPECT_EQ(table.launch(device.get(), kernels, 0, 1, &range, 1, &iterations), QNL_OK);
  EXPECT_EQ(table.launch(device.get(), kernels, 0, 1000, &range, 1, &iterations), QNL_DEVICE_FAULT);
  EXPECT_EQ(table.launch(device.get(), kernels, 0, 1, &range, 1, &iterations), QNL_DEVICE_FAULT);
  table.free_arena(device.get(), &arena);
  table.unload_kernels(device.get(), kernels);
}

INSTANTIATE_TEST_SUITE_P(Memory, VulkanOpen, testing::Bool(), memory_name);

// Without a driver or a loader library there is an error that says what to do.
TEST(VulkanMissing, a_driver_that_is_not_there_is_an_error) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        setenv("VK_ICD_FILENAMES", "/nowhere/icd.json", 1);
        setenv("VK_DRIVER_FILES", "/nowhere/icd.json", 1);
        qnl_device* device = nullptr;
        qnl_error error = {};
        qnl_status status = qnl_device_open_vulkan(nullptr, &device, &error);
        std::fprintf(stderr, "%s", error.text);
        _exit(status == QNL_NO_MATCHING_VARIANT && device == nullptr ? 0 : 1);
      },
      testing::ExitedWithCode(0), "use the CPU");
}

}  // namespace
}  // namespace quernel::test
