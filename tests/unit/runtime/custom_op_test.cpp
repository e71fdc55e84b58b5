// Custom ops: functions that sessions are created with, what they get, and what is refused.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "quernel/custom_op.hpp"
#include "quernel/runtime.hpp"
#include "test_bundle.h"

namespace quernel::test {
namespace {

// y = per row of x the sum and the largest, times gain; n = the number of elements.
int32_t rows(void* user, const qnl_custom_call* call) {
  ++*static_cast<int*>(user);
  EXPECT_EQ(call->input_count, 1u);
  EXPECT_EQ(call->output_count, 2u);
  float gain = 0;
  if (!CustomAttributes(call->attributes).get("gain", &gain)) return 9;
  const qnl_tensor &x = call->inputs[0], &y = call->outputs[0], &n = call->outputs[1];
  EXPECT_TRUE(x.dtype == QNL_F32 && x.rank == 2 && y.dtype == QNL_F32 && y.rank == 1);
  EXPECT_TRUE(n.dtype == QNL_I32 && n.rank == 0 && n.bytes == 4 && x.name == nullptr);
  EXPECT_EQ(y.shape[0], 2 * x.shape[0]);
  EXPECT_EQ(x.bytes, static_cast<uint64_t>(4 * x.shape[0] * x.shape[1]));
  EXPECT_EQ(y.bytes, static_cast<uint64_t>(4 * y.shape[0]));
  const auto* in = static_cast<const float*>(x.data);
  auto* out = static_cast<float*>(y.data);
  for (int64_t r = 0; r < x.shape[0]; ++r) {
    float sum = 0, largest = in[r * x.shape[1]];
    for (int64_t i = 0; i < x.shape[1]; ++i) {
      sum += in[r * x.shape[1] + i];
      largest = in[r * x.shape[1] + i] > largest ? in[r * x.shape[1] + i] : largest;
    }
    out[2 * r] = gain * sum;
    out[2 * r + 1] = gain * largest;
  }
  auto count = static_cast<int32_t>(x.shape[0] * x.shape[1]);
  std::memcpy(n.data, &count, sizeof count);
  return 0;
}

int32_t fails(void*, const qnl_custom_call* call) {
  std::strncpy(call->message, "too warm", call->message_bytes);
  return 7;
}
int32_t fails_at_length(void*, const qnl_custom_call* call) {
  std::memset(call->message, 'x', call->message_bytes);
  return -3;
}

constexpr const char* kName = "test::Rows";
constexpr const char* kSignature = " f32[?, ?] -> f32[?], i32[]";

class CustomOp : public ::testing::Test {
 protected:
  CustomOp() : bytes_(bundle_bytes(custom_contents())) {
    EXPECT_EQ(bundle_.open(bytes_.data(), bytes_.size(), nullptr, &error_), QNL_OK) << error_.text;
    EXPECT_EQ(device_.open_cpu(1, &error_), QNL_OK);
  }
  qnl_status create(const std::vector<qnl_custom_op>& ops) {
    qnl_session_options options = {};
    options.custom_ops = ops.data();
    options.custom_op_count = static_cast<uint32_t>(ops.size());
    return session_.create(bundle_, device_, &options, &error_);
  }
  qnl_status run(int64_t batch, int64_t width) {
    x_.resize(static_cast<size_t>(batch * width));
    for (size_t i = 0; i < x_.size(); ++i) x_[i] = static_cast<float>(i);
    EXPECT_EQ(session_.set_input(tensor("x", QNL_F32, {batch, width}, x_), &error_), QNL_OK) << error_.text;
    return session_.run(&error_);
  }
  const void* output(const char* name) {
    qnl_tensor out = {};
    EXPECT_EQ(session_.tensor(QNL_OUTPUT, name, &out, &error_), QNL_OK) << error_.text;
    return out.data;
  }

  AlignedBytes bytes_;
  Bundle bundle_;
  Device device_;
  Session session_;
  qnl_error error_ = {};
  std::vector<float> x_;
  int calls_ = 0;
};

TEST_F(CustomOp, gets_the_shapes_of_each_run) {
  {
    std::string name = kName, signature = kSignature;  // may go after creation
    ASSERT_EQ(create({{QNL_CUSTOM_OP_ABI_VERSION, "test::Unused", "->f32[]", fails, nullptr},
                      {QNL_CUSTOM_OP_ABI_VERSION, name.c_str(), "f32[?]->f32[?]", fails, nullptr},
                      {QNL_CUSTOM_OP_ABI_VERSION, name.c_str(), signature.c_str(), rows, &calls_}}),
              QNL_OK)
        << error_.text;
  }
  for (auto [batch, width] : {std::pair<int64_t, int64_t>(3, 16), {1, 64}, {8, 32}, {2, 16}}) {
    ASSERT_EQ(run(batch, width), QNL_OK) << error_.text;
    const auto* y = static_cast<const float*>(output("y"));
    for (int64_t r = 0; r < batch; ++r) {
      EXPECT_EQ(y[2 * r], 0.5f * static_cast<float>(width * (2 * r * width + width - 1)) / 2);
      EXPECT_EQ(y[2 * r + 1], 0.5f * static_cast<float>((r + 1) * width - 1));
    }
    EXPECT_EQ(*static_cast<const int32_t*>(output("n")), batch * width);
  }
  EXPECT_EQ(calls_, 4);
  qnl_item_info item;
  ASSERT_EQ(qnl_session_get_item(session_.get(), 0, &item), QNL_OK);
  EXPECT_STREQ(item.name, kName);
}

TEST_F(CustomOp, needs_a_function) {
  EXPECT_EQ(session_.create(bundle_, device_, nullptr, &error_), QNL_CUSTOM_OP_MISSING);
  EXPECT_STREQ(
      error_.text,
      "custom op 'test::Rows' (node 'rows'): expected a function of signature f32[?,?]->f32[?],i32[] in "
      "qnl_session_options::custom_ops, found none of that name");
  EXPECT_EQ(create({{QNL_CUSTOM_OP_ABI_VERSION, "test::Row", kSignature, rows, &calls_}}),
            QNL_CUSTOM_OP_MISSING);
  qnl_requirements requirements;
  EXPECT_EQ(qnl_session_query(bundle_.get(), device_.get(), nullptr, &requirements, &error_), QNL_OK);
}

TEST_F(CustomOp, needs_the_signature) {
  for (const char* wrong : {"f32[?,?]->f32[?],i64[]", "f32[?,?]->f32[?,?],i32[]", "f32[?,?]->f32[?]",
                            "f32[?,?],f32[?],i32[]", "f32[?,?]->f32[?],i32[],i32[]", "->f32[?],i32[]", "",
                            "f32[?,?]->f32[?],i32[] "
                            "x"})
    EXPECT_EQ(create({{QNL_CUSTOM_OP_ABI_VERSION, kName, wrong, rows, &calls_}}), QNL_CUSTOM_OP_MISMATCH)
        << wrong;
  EXPECT_EQ(create({{QNL_CUSTOM_OP_ABI_VERSION, kName, "f32[?]->f32[?]", rows, &calls_}}),
            QNL_CUSTOM_OP_MISMATCH);
  EXPECT_STREQ(
      error_.text,
      "custom op 'test::Rows' (node 'rows'): expected a function of signature f32[?,?]->f32[?],i32[], found "
      "f32[?]->f32[?]");
  EXPECT_EQ(create({{QNL_CUSTOM_OP_ABI_VERSION, kName, kSignature, nullptr, nullptr}}),
            QNL_CUSTOM_OP_MISMATCH);
  EXPECT_NE(std::strstr(error_.text, "without a function"), nullptr) << error_.text;
  EXPECT_EQ(create({{QNL_CUSTOM_OP_ABI_VERSION, kName, nullptr, rows, nullptr}}), QNL_CUSTOM_OP_MISMATCH);
}

TEST_F(CustomOp, needs_the_calling_convention) {
  EXPECT_EQ(create({{QNL_CUSTOM_OP_ABI_VERSION + 1, kName, kSignature, rows, &calls_}}),
            QNL_CUSTOM_OP_MISMATCH);
  EXPECT_STREQ(error_.text,
               "custom op 'test::Rows' (node 'rows'): expected functions of custom op ABI version 1, found "
               "version 2 in "
               "entry 0; build the application with this runtime's headers");
}

TEST_F(CustomOp, fails_with_its_message) {
  ASSERT_EQ(create({{QNL_CUSTOM_OP_ABI_VERSION, kName, kSignature, fails, nullptr}}), QNL_OK) << error_.text;
  EXPECT_EQ(run(1, 16), QNL_CALLBACK_FAILED);
  EXPECT_STREQ(error_.text, "item 0 'test::Rows' (node 'rows'): host callback failed, code 7: too warm");
  ASSERT_EQ(create({{QNL_CUSTOM_OP_ABI_VERSION, kName, kSignature, fails_at_length, nullptr}}), QNL_OK);
  EXPECT_EQ(run(1, 16), QNL_CALLBACK_FAILED);
  EXPECT_NE(std::strstr(error_.text, "code -3: xxx"), nullptr) << error_.text;
}

// Its memory as the bundle says, its dims too, and both contradict each other.
TEST_F(CustomOp, dims_beyond_its_memory_are_refused) {
  bundle::BundleContents contents = custom_contents();
  bundle::Item& item = contents.entry_points[0].plans[0].items[0];
  std::swap(item.symbols[0], item.symbols[2]);
  AlignedBytes bytes(bundle_bytes(contents));
  Bundle bundle;
  ASSERT_EQ(bundle.open(bytes.data(), bytes.size(), nullptr, &error_), QNL_OK) << error_.text;
  qnl_session_options options = {};
  qnl_custom_op op = {QNL_CUSTOM_OP_ABI_VERSION, kName, kSignature, rows, &calls_};
  options.custom_ops = &op;
  options.custom_op_count = 1;
  ASSERT_EQ(session_.create(bundle, device_, &options, &error_), QNL_OK) << error_.text;
  EXPECT_EQ(run(2, 16), QNL_CALLBACK_FAILED);
  EXPECT_STREQ(
      error_.text,
      "item 0 'test::Rows' (node 'rows'): host callback failed, code -1: its dims do not fit its memory");
  EXPECT_EQ(calls_, 0);
  session_ = Session();  // before its bundle
}

// Their functions take other arguments.
TEST_F(CustomOp, are_no_plain_callbacks) {
  ASSERT_EQ(create({{QNL_CUSTOM_OP_ABI_VERSION, kName, kSignature, rows, &calls_}}), QNL_OK);
  auto plain = [](void*, void* const*, const uint64_t*, uint32_t) { return int32_t{0}; };
  EXPECT_EQ(qnl_session_set_callback(session_.get(), kName, plain, nullptr, &error_), QNL_UNKNOWN_NAME);
}

TEST(CustomAttributes, are_read_by_name_and_type) {
  CustomAttributes attributes(
      "a=-3;alpha=0.5;axes=[1,-2,30];empty=[];e=1e-07;inf=-inf;m=[0.5,2.0];mode=\"li;n\\\"e[\\x41\";names=["
      "\"x,y\",\"]\"]");
  int64_t integer = 0;
  float number = 0;
  std::string text;
  std::vector<int64_t> integers = {9};
  std::vector<float> numbers;
  std::vector<std::string> texts;
  EXPECT_TRUE(attributes.get("a", &integer));
  EXPECT_EQ(integer, -3);
  EXPECT_TRUE(attributes.get("alpha", &number));
  EXPECT_EQ(number, 0.5f);
  EXPECT_TRUE(attributes.get("e", &number));
  EXPECT_EQ(number, 1e-7f);
  EXPECT_TRUE(attributes.get("inf", &number));
  EXPECT_EQ(number, -INFINITY);
  EXPECT_TRUE(attributes.get("axes", &integers));
  EXPECT_EQ(integers, (std::vector<int64_t>{1, -2, 30}));
  EXPECT_TRUE(attributes.get("m", &numbers));
  EXPECT_EQ(numbers, (std::vector<float>{0.5f, 2.0f}));
  EXPECT_TRUE(attributes.get("mode", &text));
  EXPECT_EQ(text, "li;n\"e[A");
  EXPECT_TRUE(attributes.get("names", &texts));
  EXPECT_EQ(texts, (std::vector<std::string>{"x,y", "]"}));
  EXPECT_TRUE(attributes.get("empty", &integers));
  EXPECT_TRUE(integers.empty());
  EXPECT_TRUE(attributes.has("a"));
  EXPECT_FALSE(attributes.has("al"));
  // Another type, or none at all, leaves the value.
  EXPECT_FALSE(attributes.get("alpha", &integer));
  EXPECT_FALSE(attributes.get("a", &number));
  EXPECT_FALSE(attributes.get("a", &text));
  EXPECT_FALSE(attributes.get("m", &integers));
  EXPECT_FALSE(attributes.get("b", &integer));
  EXPECT_EQ(integer, -3);
  EXPECT_FALSE(CustomAttributes("").has("a"));
  EXPECT_FALSE(CustomAttributes(nullptr).has(""));
}

}  // namespace
}  // namespace quernel::test
