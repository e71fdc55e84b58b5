// After a session exists, nothing allocates: not malloc (which operator new calls), not pages from the
// system.
#include <gtest/gtest.h>
#include <vector>

#include "count_allocations.h"
#include "quernel/runtime.hpp"
#include "test_bundle.h"

namespace quernel::test {
namespace {

TEST(Allocation, counting_works) {
  if (!kCounts) GTEST_SKIP() << "not with a sanitizer";
  allocations = 0;
  counting = true;
  int* volatile number = new int(3);  // volatile: else the compiler may drop the pair
  delete number;
  void* pages = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  counting = false;
  munmap(pages, 4096);
  EXPECT_GE(allocations, 2u);
}

void run_everything(uint32_t threads, bool asynchronous) {
  AlignedBytes bytes(bundle_bytes(test_contents()));
  Bundle bundle;
  ASSERT_EQ(bundle.open(bytes.data(), bytes.size()), QNL_OK);
  Device device;
  ASSERT_EQ(device.open_cpu(threads), QNL_OK);
  if (asynchronous) {
    ASSERT_EQ(device.start_thread(), QNL_OK);
  }
  Session session;
  ASSERT_EQ(session.create(bundle, device), QNL_OK);
  auto run = [&] {
    qnl_event* event = nullptr;
    if (!asynchronous) return session.run();
    qnl_status status = session.submit(&event);
    return status == QNL_OK ? qnl_event_wait(event, ~uint64_t{0}, nullptr) : status;
  };
  std::vector<float> a(kElements, 1.0f), b(kElements, 2.0f), sum(kElements), state(16);
  qnl_tensor in_a = tensor("a", QNL_F32, {64, 64}, a), in_b = tensor("b", QNL_F32, {64, 64}, b);
  qnl_tensor out = tensor("sum", QNL_F32, {64, 64}, sum);

  allocations = 0;
  counting = true;
  bool ok = true;
  for (int r = 0; r < 100; ++r) {
    ok = ok && session.set_input(in_a) == QNL_OK && session.bind_input(in_b) == QNL_OK;
    out.data = r % 2 == 0 ? sum.data() : nullptr;
    ok = ok && session.bind_output(out) == QNL_OK && run() == QNL_OK;
    qnl_tensor result;
    ok = ok && session.tensor(QNL_OUTPUT, "sum", &result) == QNL_OK;
    ok = ok && static_cast<float*>(result.data)[7] == 7.0f;
    qnl_error error;
    qnl_tensor wrong = in_a;
    wrong.rank = 1;
    ok = ok && session.set_input(wrong, &error) == QNL_SHAPE_MISMATCH;
    ok = ok && qnl_session_save_state(session.get(), state.data(), 64, &error) == QNL_OK;
    ok = ok && qnl_session_restore_state(session.get(), state.data(), 64, &error) == QNL_OK;
    ok = ok && qnl_session_reset_state(session.get(), &error) == QNL_OK;
  }
  counting = false;
  EXPECT_TRUE(ok);
  EXPECT_EQ(allocations, 0u);
}

// Nor do custom ops.
TEST(Allocation, custom_ops_do_not_allocate) {
  if (!kCounts) GTEST_SKIP() << "not with a sanitizer";
  AlignedBytes bytes(bundle_bytes(custom_contents()));
  Bundle bundle;
  ASSERT_EQ(bundle.open(bytes.data(), bytes.size()), QNL_OK);
  Device device;
  ASSERT_EQ(device.open_cpu(), QNL_OK);
  auto last_dim = [](void*, const qnl_custom_call* call) {
    *static_cast<int32_t*>(call->outputs[1].data) = static_cast<int32_t>(call->inputs[0].shape[1]);
    return int32_t{0};
  };
  qnl_custom_op op = {QNL_CUSTOM_OP_ABI_VERSION, "test::Rows", "f32[?,?]->f32[?],i32[]", last_dim, nullptr};
  qnl_session_options options = {};
  options.custom_ops = &op;
  options.custom_op_count = 1;
  Session session;
  ASSERT_EQ(session.create(bundle, device, &options), QNL_OK);
  std::vector<float> narrow(2 * 16), wide(8 * 64);
  qnl_tensor small = tensor("x", QNL_F32, {2, 16}, narrow), large = tensor("x", QNL_F32, {8, 64}, wide),
             n = {};
  allocations = 0;
  counting = true;
  bool ok = true;
  for (int r = 0; r < 10; ++r) {
    const qnl_tensor& x = r % 2 == 0 ? small : large;
    ok = ok && session.set_input(x) == QNL_OK && session.run() == QNL_OK &&
         session.tensor(QNL_OUTPUT, "n", &n) == QNL_OK && *static_cast<int32_t*>(n.data) == x.shape[1];
  }
  counting = false;
  EXPECT_TRUE(ok);
  EXPECT_EQ(allocations, 0u);
}

// Shapes that change within what the session was made for do not allocate, nor do loops; larger ones do,
// once.
TEST(Allocation, shapes_that_fit_do_not_allocate) {
  if (!kCounts) GTEST_SKIP() << "not with a sanitizer";
  AlignedBytes bytes(bundle_bytes(symbolic_contents()));
  Bundle bundle;
  ASSERT_EQ(bundle.open(bytes.data(), bytes.size()), QNL_OK);
  Device device;
  ASSERT_EQ(device.open_cpu(), QNL_OK);
  Session add, steps;
  const qnl_symbol_value capacity[] = {{"batch", 4}, {"width", 32}, {"rows", 12}};
  qnl_session_options options = {};
  options.symbols = capacity;
  options.symbol_count = 3;
  ASSERT_EQ(add.create(bundle, device, &options), QNL_OK);
  options.entry_point = "steps";
  ASSERT_EQ(steps.create(bundle, device, &options), QNL_OK);
  ASSERT_EQ(add.set_symbol("bias", 0), QNL_OK);
  std::vector<float> values(8 * 64, 1.0f);
  std::vector<int64_t> n = {0}, rows(12);
  // made before counting begins
  qnl_tensor a = tensor("a", QNL_F32, {0, 0}, values), b = tensor("b", QNL_F32, {0, 0}, values);
  qnl_tensor c = tensor("c", QNL_F32, {0}, values), count = tensor("n", QNL_I64, {}, n);
  qnl_tensor room = tensor("rows", QNL_I64, {0}, rows);
  auto run = [&](int64_t batch, int64_t width) {
    qnl_tensor out;
    a.shape[0] = b.shape[0] = batch;
    a.shape[1] = b.shape[1] = width;
    c.shape[0] = room.shape[0] = batch * 2;
    a.bytes = b.bytes = static_cast<uint64_t>(batch * width) * 4;
    c.bytes = static_cast<uint64_t>(batch) * 8;
    room.bytes = static_cast<uint64_t>(batch) * 16;
    n[0] = batch;
    bool ok = add.set_input(a) == QNL_OK && add.set_input(b) == QNL_OK && add.set_input(c) == QNL_OK &&
              add.run() == QNL_OK && add.tensor(QNL_OUTPUT, "sum", &out) == QNL_OK && out.shape[0] == batch;
    if (batch > 6) return ok;
    return ok && steps.set_input(count) == QNL_OK && steps.set_input(room) == QNL_OK &&
           steps.run() == QNL_OK && steps.tensor(QNL_OUTPUT, "steps", &out) == QNL_OK &&
           out.shape[0] == batch;
  };
  allocations = 0;
  counting = true;
  bool ok = true;
  for (int64_t r = 0; r < 100; ++r) ok = ok && run(1 + r % 4, 16 + 16 * (r % 2));
  uint64_t within = allocations;
  ok = ok && run(8, 64);
  uint64_t beyond = allocations;
  for (int64_t r = 0; r < 100; ++r) ok = ok && run(1 + r % 4, 16 + 16 * (r % 4));
  uint64_t after = allocations;
  counting = false;
  EXPECT_TRUE(ok);
  EXPECT_EQ(within, 0u);
  EXPECT_GT(beyond, within);
  EXPECT_EQ(after, beyond);

  const qnl_symbol_value more[] = {{"rows", 100}};
  ASSERT_EQ(steps.reserve(more, 1), QNL_OK);
  std::vector<int64_t> many(100);
  room = tensor("rows", QNL_I64, {100}, many);
  allocations = 0;
  counting = true;
  ok = steps.set_input(room) == QNL_OK && steps.run() == QNL_OK;
  counting = false;
  EXPECT_TRUE(ok);
  EXPECT_EQ(allocations, 0u) << "reserved";
}

TEST(Allocation, none_after_load_on_one_thread) { run_everything(1, false); }
TEST(Allocation, none_after_load_on_four_threads) { run_everything(4, false); }
TEST(Allocation, none_in_submitted_runs) { run_everything(2, true); }

}  // namespace
}  // namespace quernel::test
