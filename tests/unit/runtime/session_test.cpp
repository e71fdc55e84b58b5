// Sessions: results, inputs and outputs in every form, memory of the caller, state, callbacks, profile,
// failures.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "bundle/write_bundle.h"
#include "core/device.h"
#include "cpu/cpu_features.h"
#include "null/null_device.h"
#include "quernel/runtime.hpp"
#include "test_bundle.h"

namespace quernel::test {
namespace {

class SessionTest : public testing::Test {
 protected:
  SessionTest() : bytes_(bundle_bytes(test_contents())) {
    EXPECT_EQ(bundle_.open(bytes_.data(), bytes_.size()), QNL_OK);
    EXPECT_EQ(cpu_.open_cpu(1), QNL_OK);
  }

  Session session(const char* entry, const Device& device) {
    Session s;
    qnl_session_options options = {};
    options.entry_point = entry;
    EXPECT_EQ(s.create(bundle_, device, &options, &error_), QNL_OK) << error_.text;
    return s;
  }

  // Sets a and b of "main" and gives the expected sum.
  std::vector<float> set_main_inputs(Session& s, float offset = 0) {
    std::vector<float> a(kElements), b(kElements), expected(kElements);
    for (size_t i = 0; i < kElements; ++i) {
      a[i] = static_cast<float>(i) + offset;
      b[i] = 0.25f * static_cast<float>(i % 7);
      expected[i] = (a[i] + b[i]) * 2.0f + 1.0f;
    }
    EXPECT_EQ(s.set_input(tensor("a", QNL_F32, {64, 64}, a), &error_), QNL_OK) << error_.text;
    EXPECT_EQ(s.set_input(tensor("b", QNL_F32, {64, 64}, b), &error_), QNL_OK) << error_.text;
    return expected;
  }

  std::vector<float> output(Session& s, const char* name) {
    qnl_tensor t;
    EXPECT_EQ(s.tensor(QNL_OUTPUT, name, &t), QNL_OK);
    const float* data = static_cast<const float*>(t.data);
    return {data, data + t.bytes / sizeof(float)};
  }

  AlignedBytes bytes_;
  Bundle bundle_;
  Device cpu_;
  qnl_error error_ = {};
};

TEST_F(SessionTest, computes) {
  Session s = session("main", cpu_);
  std::vector<float> expected = set_main_inputs(s);
  ASSERT_EQ(s.run(&error_), QNL_OK) << error_.text;
  EXPECT_EQ(output(s, "sum"), expected);
  expected = set_main_inputs(s, 10);
  ASSERT_EQ(s.run(), QNL_OK);
  EXPECT_EQ(output(s, "sum"), expected);
}

TEST_F(SessionTest, computes_the_same_on_any_number_of_threads) {
  for (uint32_t threads : {2, 3, 8}) {
    Device device;
    ASSERT_EQ(device.open_cpu(threads), QNL_OK);
    Session s = session("main", device);
    std::vector<float> expected = set_main_inputs(s);
    for (int r = 0; r < 50; ++r) {
      ASSERT_EQ(s.run(), QNL_OK);
      ASSERT_EQ(output(s, "sum"), expected);
    }
    Session counting = session("count", device);
    for (int r = 0; r < 50; ++r) {
      ASSERT_EQ(counting.run(), QNL_OK);
      qnl_tensor counts;
      ASSERT_EQ(counting.tensor(QNL_OUTPUT, nullptr, &counts), QNL_OK);
      for (int i = 0; i < 1000; ++i) ASSERT_EQ(static_cast<int32_t*>(counts.data)[i], 1) << i;
    }
  }
}

TEST_F(SessionTest, inputs_are_checked) {
  Session s = session("main", cpu_);
  std::vector<float> values(kElements), small(16);
  std::vector<int32_t> integers(kElements);
  EXPECT_EQ(s.run(&error_), QNL_INPUT_NOT_SET);
  EXPECT_STREQ(error_.text, "input 'a': not set before the run");
  EXPECT_EQ(s.set_input(tensor("c", QNL_F32, {64, 64}, values), &error_), QNL_UNKNOWN_NAME);
  EXPECT_STREQ(error_.text, "input 'c': expected one of 'a' 'b'");
  EXPECT_EQ(s.set_input(tensor(nullptr, QNL_F32, {64, 64}, values), &error_), QNL_UNKNOWN_NAME);
  EXPECT_EQ(s.set_input(tensor("a", QNL_I32, {64, 64}, integers), &error_), QNL_DTYPE_MISMATCH);
  EXPECT_STREQ(error_.text, "input 'a': expected f32[64,64], found i32[64,64]");
  EXPECT_EQ(s.set_input(tensor("a", QNL_F32, {4096}, values), &error_), QNL_SHAPE_MISMATCH);
  EXPECT_STREQ(error_.text, "input 'a': expected f32[64,64], found f32[4096]");
  EXPECT_EQ(s.set_input(tensor("a", QNL_F32, {64, 64}, small), &error_), QNL_SIZE_MISMATCH);
  EXPECT_STREQ(error_.text, "input 'a': expected f32[64,64] of 16384 bytes, found f32[64,64] of 64 bytes");
  qnl_tensor no_data = tensor("a", QNL_F32, {64, 64}, values);
  no_data.data = nullptr;
  EXPECT_EQ(s.set_input(no_data, &error_), QNL_INVALID_ARGUMENT);
  EXPECT_STREQ(error_.text, "input: expected a tensor with data");
}

TEST_F(SessionTest, arguments_are_needed) {
  const char* const session_needs = "session: expected a bundle, a device and a place for the result";
  qnl_requirements needs;
  EXPECT_EQ(qnl_session_query(nullptr, cpu_.get(), nullptr, &needs, &error_), QNL_INVALID_ARGUMENT);
  EXPECT_STREQ(error_.text, session_needs);
  error_ = {};
  EXPECT_EQ(qnl_session_create(bundle_.get(), cpu_.get(), nullptr, nullptr, &error_), QNL_INVALID_ARGUMENT);
  EXPECT_STREQ(error_.text, session_needs);
  Session s = session("accumulate", cpu_);
  EXPECT_EQ(qnl_session_bind(s.get(), QNL_INPUT, nullptr, &error_), QNL_INVALID_ARGUMENT);
  EXPECT_STREQ(error_.text, "binding: expected an input or output tensor");
  EXPECT_EQ(qnl_session_set_shape(s.get(), nullptr, &error_), QNL_INVALID_ARGUMENT);
  EXPECT_STREQ(error_.text, "input: expected a name and a shape");
  EXPECT_EQ(qnl_session_get(s.get(), QNL_INPUT, nullptr, nullptr, &error_), QNL_INVALID_ARGUMENT);
  EXPECT_STREQ(error_.text, "tensor: expected a role and a place for the result");
  qnl_tensor tensor;
  EXPECT_EQ(qnl_session_get(s.get(), QNL_STATE, "other", &tensor, &error_), QNL_UNKNOWN_NAME);
  EXPECT_STREQ(error_.text, "state 'other': not one of the entry point's");
}

TEST_F(SessionTest, state_is_shared_within_one_bundle_and_device) {
  Session owner = session("accumulate", cpu_), other;
  Device second;
  ASSERT_EQ(second.open_cpu(1), QNL_OK);
  qnl_session_options options = {};
  options.entry_point = "accumulate";
  options.parent = owner.get();
  options.share_state = 1;
  EXPECT_EQ(other.create(bundle_, second, &options, &error_), QNL_INVALID_ARGUMENT);
  EXPECT_STREQ(error_.text, "parent: has another bundle or device");
}

TEST_F(SessionTest, bound_tensors_are_used_in_place) {
  Session s = session("main", cpu_);
  std::vector<float> expected = set_main_inputs(s);
  std::vector<float> a(kElements, 1.0f), sum(kElements + 1);
  ASSERT_EQ(s.bind_input(tensor("a", QNL_F32, {64, 64}, a)), QNL_OK);
  qnl_tensor out = tensor("sum", QNL_F32, {64, 64}, sum);
  out.bytes = kElements * sizeof(float);
  out.data = sum.data() + 1;  // aligned to the element only
  ASSERT_EQ(s.bind_output(out), QNL_OK);
  ASSERT_EQ(s.run(&error_), QNL_OK) << error_.text;
  EXPECT_EQ(sum[0], 0.0f);
  EXPECT_EQ(sum[1], 3.0f);
  EXPECT_EQ(sum[2], 3.5f);
  a.assign(kElements, 2.0f);  // no call is needed to use new contents
  ASSERT_EQ(s.run(), QNL_OK);
  EXPECT_EQ(sum[1], 5.0f);
  out.data = nullptr;  // back to the session's own slot
  ASSERT_EQ(s.bind_output(out), QNL_OK);
  ASSERT_EQ(s.run(), QNL_OK);
  EXPECT_EQ(output(s, "sum")[0], 5.0f);
}

TEST_F(SessionTest, bad_bindings_are_refused) {
  Session s = session("main", cpu_);
  set_main_inputs(s);
  std::vector<float> memory(2 * kElements);
  qnl_tensor out = tensor("sum", QNL_F32, {64, 64}, memory);
  out.bytes = kElements * sizeof(float);
  out.data = reinterpret_cast<char*>(memory.data()) + 1;
  EXPECT_EQ(s.bind_output(out, &error_), QNL_MISALIGNED);
  EXPECT_STREQ(error_.text, "output 'sum': expected 4-byte alignment");
  out.data = memory.data();
  out.dtype = QNL_I32;
  EXPECT_EQ(s.bind_output(out, &error_), QNL_DTYPE_MISMATCH);
  out.dtype = QNL_F32;
  ASSERT_EQ(s.bind_output(out), QNL_OK);
  qnl_tensor in = out;
  in.name = "a";
  in.data = memory.data() + kElements - 1;
  ASSERT_EQ(s.bind_input(in), QNL_OK);
  EXPECT_EQ(s.run(&error_), QNL_OVERLAP);
  EXPECT_STREQ(error_.text, "output 'sum': its memory overlaps that of input 'a'");
  in.data = memory.data() + kElements;
  ASSERT_EQ(s.bind_input(in), QNL_OK);
  EXPECT_EQ(s.run(), QNL_OK);
}

TEST_F(SessionTest, caller_supplies_all_memory) {
  qnl_session_options options = {};
  options.entry_point = "accumulate";
  qnl_requirements needs;
  ASSERT_EQ(qnl_session_query(bundle_.get(), cpu_.get(), &options, &needs, &error_), QNL_OK) << error_.text;
  EXPECT_EQ(needs.alignment, 64u);
  EXPECT_EQ(needs.state_bytes, 64u);
  EXPECT_EQ(needs.io_bytes, 128u);
  EXPECT_EQ(needs.workspace_bytes, 0u);
  EXPECT_EQ(needs.constants_bytes, 10000u);
  struct alignas(64) Memory {
    char session[16384], state[64], io[128];
  };
  static Memory memory;
  ASSERT_LE(needs.session_bytes, sizeof memory.session);
  options.session_memory = memory.session;
  options.session_memory_bytes = needs.session_bytes;
  options.state_memory = memory.state;
  options.state_memory_bytes = 64;
  options.io_memory = memory.io;
  options.io_memory_bytes = 128;
  {
    Session s;
    ASSERT_EQ(s.create(bundle_, cpu_, &options, &error_), QNL_OK) << error_.text;
    EXPECT_EQ(static_cast<void*>(s.get()), memory.session);
    std::vector<float> x(16, 2.0f);
    ASSERT_EQ(s.set_input(tensor("x", QNL_F32, {16}, x)), QNL_OK);
    ASSERT_EQ(s.run(), QNL_OK);
    EXPECT_EQ(output(s, "y")[3], 2.0f);
  }
  Session s;
  options.session_memory_bytes -= 1;
  EXPECT_EQ(s.create(bundle_, cpu_, &options, &error_), QNL_MEMORY_TOO_SMALL);
  options.session_memory_bytes += 1;
  options.state_memory_bytes = 63;
  EXPECT_EQ(s.create(bundle_, cpu_, &options, &error_), QNL_MEMORY_TOO_SMALL);
  EXPECT_STREQ(error_.text, "state memory: expected 64 bytes, found 63");
  options.state_memory_bytes = 64;
  options.io_memory = memory.io + 4;
  EXPECT_EQ(s.create(bundle_, cpu_, &options, &error_), QNL_MISALIGNED);
  EXPECT_STREQ(error_.text, "input and output memory: expected 64-byte alignment");
  qnl_device_info info;
  qnl_device_get_info(cpu_.get(), &info);
  EXPECT_EQ(info.memory_used, 0u) << "failed creations give everything back";
}

TEST_F(SessionTest, inputs_and_outputs_bound_by_the_caller) {
  qnl_session_options options = {};
  options.entry_point = "accumulate";
  options.io_bound_by_caller = 1;
  qnl_requirements needs;
  ASSERT_EQ(qnl_session_query(bundle_.get(), cpu_.get(), &options, &needs, nullptr), QNL_OK);
  EXPECT_EQ(needs.io_bytes, 0u);
  Session s;
  ASSERT_EQ(s.create(bundle_, cpu_, &options), QNL_OK);
  std::vector<float> x(16, 1.0f), y(16);
  EXPECT_EQ(s.set_input(tensor("x", QNL_F32, {16}, x), &error_), QNL_INPUT_NOT_SET);
  EXPECT_STREQ(error_.text, "input 'x': has no slot, bind it instead");
  ASSERT_EQ(s.bind_input(tensor("x", QNL_F32, {16}, x)), QNL_OK);
  EXPECT_EQ(s.run(&error_), QNL_INPUT_NOT_SET);
  EXPECT_STREQ(error_.text, "output 'y': not bound before the run");
  ASSERT_EQ(s.bind_output(tensor("y", QNL_F32, {16}, y)), QNL_OK);
  ASSERT_EQ(s.run(), QNL_OK);
  EXPECT_EQ(y[0], 1.0f);
}

TEST_F(SessionTest, state_is_kept_reset_saved_restored_and_shared) {
  Session s = session("accumulate", cpu_);
  std::vector<float> x(16, 1.5f);
  ASSERT_EQ(s.set_input(tensor(nullptr, QNL_F32, {16}, x)), QNL_OK) << "the only input needs no name";
  ASSERT_EQ(s.run(), QNL_OK);
  ASSERT_EQ(s.run(), QNL_OK);
  EXPECT_EQ(output(s, "y")[0], 3.0f);
  std::vector<float> saved(16);
  ASSERT_EQ(qnl_session_save_state(s.get(), saved.data(), 64, nullptr), QNL_OK);
  EXPECT_EQ(qnl_session_save_state(s.get(), saved.data(), 60, &error_), QNL_SIZE_MISMATCH);
  EXPECT_STREQ(error_.text, "state: expected 64 bytes, found 60");
  ASSERT_EQ(qnl_session_reset_state(s.get(), nullptr), QNL_OK);
  ASSERT_EQ(s.run(), QNL_OK);
  EXPECT_EQ(output(s, "y")[0], 1.5f);

  Session fork = session("accumulate", cpu_);
  ASSERT_EQ(qnl_session_restore_state(fork.get(), saved.data(), 64, nullptr), QNL_OK);
  ASSERT_EQ(fork.set_input(tensor("x", QNL_F32, {16}, x)), QNL_OK);
  ASSERT_EQ(fork.run(), QNL_OK);
  EXPECT_EQ(output(fork, "y")[0], 4.5f);

  Session copied = session("accumulate", cpu_);
  ASSERT_EQ(qnl_session_copy_state(copied.get(), fork.get(), &error_), QNL_OK) << error_.text;
  ASSERT_EQ(qnl_session_copy_state(copied.get(), copied.get(), &error_), QNL_OK) << error_.text;
  ASSERT_EQ(copied.set_input(tensor("x", QNL_F32, {16}, x)), QNL_OK);
  ASSERT_EQ(copied.run(), QNL_OK);
  EXPECT_EQ(output(copied, "y")[0], 6.0f);
  EXPECT_EQ(qnl_session_copy_state(copied.get(), nullptr, &error_), QNL_INVALID_ARGUMENT);
  EXPECT_STREQ(error_.text, "state: expected two sessions of one bundle");

  qnl_session_options options = {};
  options.entry_point = "accumulate";
  options.parent = fork.get();
  options.share_state = 1;
  Session shared;
  ASSERT_EQ(shared.create(bundle_, cpu_, &options), QNL_OK);
  ASSERT_EQ(shared.set_input(tensor("x", QNL_F32, {16}, x)), QNL_OK);
  ASSERT_EQ(shared.run(), QNL_OK);
  EXPECT_EQ(output(shared, "y")[0], 6.0f);
  ASSERT_EQ(fork.run(), QNL_OK);
  EXPECT_EQ(output(fork, "y")[0], 7.5f);
  qnl_tensor state;
  ASSERT_EQ(shared.tensor(QNL_STATE, "acc", &state), QNL_OK);
  EXPECT_EQ(static_cast<float*>(state.data)[5], 7.5f);
}

int32_t notify(void* user, void* const* bindings, const uint64_t* bytes, uint32_t count) {
  auto* seen = static_cast<std::vector<int32_t>*>(user);
  EXPECT_EQ(count, 1u);
  EXPECT_EQ(bytes[0], 96u);
  const auto* values = static_cast<const int32_t*>(bindings[0]);
  seen->assign(values, values + 24);
  return values[0] == 99 ? 7 : 0;
}

TEST_F(SessionTest, strided_copy_and_callback) {
  Session s = session("extras", cpu_);
  std::vector<int32_t> in(24), seen;
  for (int i = 0; i < 24; ++i) in[i] = i;
  ASSERT_EQ(s.set_input(tensor("in", QNL_I32, {4, 6}, in)), QNL_OK);
  EXPECT_EQ(s.run(&error_), QNL_CALLBACK_MISSING);
  EXPECT_STREQ(error_.text, "item 2 'notify': host callback missing");
  EXPECT_EQ(qnl_session_set_callback(s.get(), "other", notify, &seen, &error_), QNL_UNKNOWN_NAME);
  ASSERT_EQ(qnl_session_set_callback(s.get(), "notify", notify, &seen, nullptr), QNL_OK);
  ASSERT_EQ(s.run(&error_), QNL_OK) << error_.text;
  for (int r = 0; r < 4; ++r)
    for (int c = 0; c < 6; ++c) EXPECT_EQ(seen[c * 4 + r], in[r * 6 + c]);
  in[0] = 99;
  ASSERT_EQ(s.set_input(tensor("in", QNL_I32, {4, 6}, in)), QNL_OK);
  EXPECT_EQ(s.run(&error_), QNL_CALLBACK_FAILED);
}

TEST_F(SessionTest, kernel_failure_is_reported) {
  Session s = session("failing", cpu_);
  std::vector<float> x(16);
  ASSERT_EQ(s.set_input(tensor("x", QNL_F32, {16}, x)), QNL_OK);
  EXPECT_EQ(s.run(&error_), QNL_KERNEL_FAILED);
  EXPECT_STREQ(error_.text, "item 0 'fail': kernel failed, index out of range, code 1");
  Session main = session("main", cpu_);
  set_main_inputs(main);
  EXPECT_EQ(main.run(), QNL_OK) << "the device is still good";
}

TEST_F(SessionTest, profile_sees_every_item) {
  Session s = session("main", cpu_);
  set_main_inputs(s);
  std::vector<uint32_t> items;
  qnl_session_set_profile(
      s.get(),
      [](void* user, uint32_t item, uint64_t) { static_cast<std::vector<uint32_t>*>(user)->push_back(item); },
      &items);
  ASSERT_EQ(s.run(), QNL_OK);
  EXPECT_EQ(items, (std::vector<uint32_t>{0, 1}));
  ASSERT_EQ(qnl_session_item_count(s.get()), 2u);
  qnl_item_info info;
  ASSERT_EQ(qnl_session_get_item(s.get(), 1, &info), QNL_OK);
  EXPECT_STREQ(info.name, "scale");
  EXPECT_STREQ(info.source_node, "Mul_1");
  EXPECT_EQ(info.workgroups, kElements / 16);
  EXPECT_EQ(info.flops, 2 * kElements);
  EXPECT_EQ(qnl_session_get_item(s.get(), 2, &info), QNL_INVALID_ARGUMENT);
}

TEST_F(SessionTest, unknown_entry_point) {
  Session s;
  qnl_session_options options = {};
  options.entry_point = "nothing";
  EXPECT_EQ(s.create(bundle_, cpu_, &options, &error_), QNL_UNKNOWN_NAME);
  EXPECT_STREQ(
      error_.text,
      "entry point 'nothing': not in the bundle, which has 'main' 'accumulate' 'extras' 'failing' 'count'");
}

TEST(Variants, best_usable_is_picked) {
  qnl_device* raw = nullptr;
  qnl_cpu_options masked = {};
  masked.feature_mask = 1;
  ASSERT_EQ(qnl_device_open_cpu(&masked, &raw, nullptr), QNL_OK);
  qnl_device_info info;
  qnl_device_get_info(raw, &info);
  EXPECT_EQ(info.features, 1u);
  qnl_device_close(raw);
  if (runtime::host_arch() != QNL_ARCH_X86_64 || (runtime::host_features() & QNL_X86_64_V2) == 0)
    GTEST_SKIP() << "needs x86-64-v2";

  bundle::BundleContents contents = test_contents();
  contents.variants[1].required_features = QNL_X86_64_V1 | QNL_X86_64_V2;
  AlignedBytes bytes(bundle_bytes(contents));
  Bundle bundle;
  ASSERT_EQ(bundle.open(bytes.data(), bytes.size()), QNL_OK);
  for (uint64_t mask : {uint64_t{QNL_X86_64_V1}, uint64_t{0}}) {
    qnl_cpu_options options = {};
    options.feature_mask = mask;
    qnl_device* device = nullptr;
    ASSERT_EQ(qnl_device_open_cpu(&options, &device, nullptr), QNL_OK);
    qnl_requirements needs;
    ASSERT_EQ(qnl_session_query(bundle.get(), device, nullptr, &needs, nullptr), QNL_OK);
    EXPECT_EQ(needs.variant, mask == 0 ? 1u : 0u);
    qnl_device_close(device);
  }
}

TEST(Variants, none_usable_is_explained) {
  bundle::BundleContents contents = test_contents();
  contents.variants[0].required_features = UINT64_C(1) << 62;
  AlignedBytes bytes(bundle_bytes(contents));
  Bundle bundle;
  ASSERT_EQ(bundle.open(bytes.data(), bytes.size()), QNL_OK);
  Device device;
  ASSERT_EQ(device.open_cpu(), QNL_OK);
  Session session;
  qnl_error error = {};
  EXPECT_EQ(session.create(bundle, device, nullptr, &error), QNL_NO_MATCHING_VARIANT);
  std::string text = error.text;
  for (const char* part : {"host:", "future:", "foreign:", "bit-62", "device 'cpu': has"})
    EXPECT_NE(text.find(part), std::string::npos) << text;
}

// A device that can do less than the CPU: what it refuses is said in the words of the session.
TEST_F(SessionTest, refusals_of_the_device) {
  Device device;
  ASSERT_EQ(device.open_null(), QNL_OK);
  static runtime::DeviceTable table;
  table = *device.get()->table;
  device.get()->table = &table;
  auto refuse = [](runtime::Device*, const void*, uint64_t, bool, runtime::DeviceArena*) {
    return QNL_INVALID_ARGUMENT;
  };
  auto wrap = table.wrap_arena;
  table.wrap_arena = refuse;
  Session s;
  EXPECT_EQ(s.create(bundle_, device, nullptr, &error_), QNL_INVALID_ARGUMENT);
  EXPECT_STREQ(error_.text, "constants: the device cannot use them");
  table.wrap_arena = wrap;

  s = session("accumulate", device);
  std::vector<float> x(16);
  table.wrap_arena = refuse;
  EXPECT_EQ(s.bind_input(tensor("x", QNL_F32, {16}, x), &error_), QNL_INVALID_ARGUMENT);
  EXPECT_STREQ(error_.text, "input 'x': cannot be used in place");
  table.write = [](runtime::Device*, const runtime::DeviceRange&, const void*, uint64_t) {
    return QNL_DEVICE_FAULT;
  };
  EXPECT_EQ(s.set_input(tensor("x", QNL_F32, {16}, x), &error_), QNL_DEVICE_FAULT);
  EXPECT_STREQ(error_.text, "input 'x': cannot be written");
  table.fill = [](runtime::Device*, const runtime::DeviceRange&, uint64_t, uint8_t) {
    return QNL_DEVICE_FAULT;
  };
  EXPECT_EQ(qnl_session_reset_state(s.get(), &error_), QNL_DEVICE_FAULT);
  EXPECT_STREQ(error_.text, "state: cannot be reset");
}

TEST(NullDevice, validates_and_counts) {
  AlignedBytes bytes(bundle_bytes(test_contents()));
  Bundle bundle;
  ASSERT_EQ(bundle.open(bytes.data(), bytes.size()), QNL_OK);
  Device device;
  ASSERT_EQ(device.open_null(), QNL_OK);
  Session s;
  qnl_error error = {};
  ASSERT_EQ(s.create(bundle, device, nullptr, &error), QNL_OK) << error.text;
  std::vector<float> values(kElements);
  ASSERT_EQ(s.set_input(tensor("a", QNL_F32, {64, 64}, values)), QNL_OK);
  ASSERT_EQ(s.set_input(tensor("b", QNL_F32, {64, 64}, values)), QNL_OK);
  ASSERT_EQ(s.run(&error), QNL_OK) << error.text;
  EXPECT_EQ(runtime::null::counts(device.get()).launches, 2u);
  EXPECT_EQ(runtime::null::counts(device.get()).workgroups, 2 * kElements / 16);
  runtime::null::inject_fault(device.get());
  EXPECT_EQ(s.run(&error), QNL_DEVICE_FAULT);
  EXPECT_EQ(s.run(&error), QNL_DEVICE_FAULT) << "sticky";
}

}  // namespace
}  // namespace quernel::test
