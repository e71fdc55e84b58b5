// Descriptions of devices and sessions, as text and JSON. tests/end_to_end/command_line.py parses whole ones.
#include <gtest/gtest.h>

#include <optional>

#include "core/describe.h"
#include "test_device.h"

namespace quernel::test {
namespace {

using runtime::Description;

std::string small_description(qnl_text_form form, uint64_t capacity, uint64_t* needed) {
  std::string text(capacity + 1, '#');
  Description out(form, text.data(), capacity);
  out.text("name", "a \"b\"\\\n");
  out.number("most", ~uint64_t{0});
  out.signed_number("low", INT64_MIN);
  out.open_object("memory");
  out.number("bytes", 1024);
  out.flag("used", true);
  out.close();
  out.open_list("items");
  for (uint64_t i = 0; i < 2; ++i) {
    out.open_object(nullptr);
    out.number("item", i);
    out.open_list("bindings");
    for (uint64_t b = 0; b <= i; ++b) {
      out.open_object(nullptr);
      out.number("arena", b);
      out.text("access", "read");
      out.close();
    }
    out.close();
    out.close();
  }
  out.close();
  out.open_list("none");
  out.close();
  *needed = out.finish();
  EXPECT_EQ(text[capacity], '#') << "written beyond its memory";
  return capacity == 0 ? "" : text.c_str();
}

TEST(Describe, text_is_a_line_for_each_value_and_listed_object) {
  uint64_t needed = 0;
  EXPECT_EQ(small_description(QNL_TEXT, 1000, &needed),
            "name: a \"b\"\\\\x0a\n"
            "most: no limit known\n"
            "low: -9223372036854775808\n"
            "memory:\n"
            "  bytes: 1024\n"
            "  used: yes\n"
            "items:\n"
            "  item 0, bindings [arena 0, access read]\n"
            "  item 1, bindings [arena 0, access read; arena 1, access read]\n"
            "none:\n");
}

TEST(Describe, json_is_one_object) {
  uint64_t needed = 0;
  EXPECT_EQ(small_description(QNL_JSON, 1000, &needed),
            R"({"name": "a \"b\"\\\u000a", "most": null, "low": -9223372036854775808, )"
            R"("memory": {"bytes": 1024, "used": true}, )"
            R"("items": [{"item": 0, "bindings": [{"arena": 0, "access": "read"}]}, )"
            R"({"item": 1, "bindings": [{"arena": 0, "access": "read"}, {"arena": 1, "access": "read"}]}], )"
            R"("none": []})");
}

TEST(Describe, what_does_not_fit_is_cut) {
  for (qnl_text_form form : {QNL_TEXT, QNL_JSON}) {
    uint64_t all = 0, needed = 0;
    std::string whole = small_description(form, 1000, &all);
    EXPECT_EQ(all, whole.size() + 1);
    for (uint64_t capacity = 0; capacity <= all; ++capacity) {
      std::string text = small_description(form, capacity, &needed);
      EXPECT_EQ(needed, all);
      EXPECT_EQ(text, whole.substr(0, capacity == 0 ? 0 : capacity - 1));
    }
  }
}

class DescribeDevice : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (std::string reason = why_not(GetParam()); !reason.empty()) GTEST_SKIP() << reason;
  }
};

std::string text_of(const Session& session, qnl_text_form form) {
  std::string text(qnl_session_describe(session.get(), form, nullptr, 0), '\0');
  EXPECT_EQ(qnl_session_describe(session.get(), form, text.data(), text.size()), text.size());
  text.pop_back();
  return text;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_P(DescribeDevice, says_what_it_is) {
  OpenDevice device(GetParam());
  qnl_device_info info;
  qnl_device_get_info(device.device.get(), &info);
  std::string text(qnl_device_describe(device.device.get(), QNL_JSON, nullptr, 0), '\0');
  EXPECT_EQ(qnl_device_describe(device.device.get(), QNL_JSON, text.data(), text.size()), text.size());
  EXPECT_TRUE(has(text, std::string("{\"name\": \"") + info.name + "\"")) << text;
  EXPECT_TRUE(has(text, "\"threads\": " + std::to_string(info.threads))) << text;
  EXPECT_EQ(has(text, "\"vulkan\": {\"type\": "), is_vulkan(GetParam())) << text;
  EXPECT_EQ(has(text, "\"max_binding_bytes\": " + std::to_string(info.max_binding_bytes)),
            is_vulkan(GetParam()))
      << text;
}

TEST_P(DescribeDevice, says_what_a_session_holds) {
  OpenDevice device(GetParam());
  AlignedBytes bytes(bundle_bytes(contents_for(test_contents())));
  Bundle bundle;
  Session session, child;
  qnl_error error = {};
  ASSERT_EQ(bundle.open(bytes.data(), bytes.size(), nullptr, &error), QNL_OK) << error.text;
  ASSERT_EQ(session.create(bundle, device.device, nullptr, &error), QNL_OK) << error.text;
  std::string text = text_of(session, QNL_TEXT);
  EXPECT_TRUE(has(text, "entry_point: main\n")) << text;
  EXPECT_TRUE(has(text, "child: no\nshares_state: no\nchildren: 0\nplaced: yes\n")) << text;
  EXPECT_TRUE(has(text, "  name a, type f32[64,64], ")) << text;
  EXPECT_TRUE(has(text, ", kind input, bytes 16384, block slots, offset 0\n")) << text;
  EXPECT_TRUE(has(text, ", block constants, offset 0\n")) << text;
  EXPECT_TRUE(has(text, "  item 0, name ")) << text;
  EXPECT_TRUE(has(text, ", access write]\n")) << text;
  qnl_session_options options = {};
  options.entry_point = "accumulate";
  options.parent = session.get();
  options.share_state = 1;
  ASSERT_EQ(child.create(bundle, device.device, &options, &error), QNL_OK) << error.text;
  text = text_of(child, QNL_JSON);
  EXPECT_TRUE(has(text, "\"child\": true, \"shares_state\": true, \"children\": 0")) << text;
  EXPECT_TRUE(has(text, "\"kind\": \"state\", \"bytes\": 64, \"block\": \"state\"")) << text;
  EXPECT_TRUE(has(text_of(session, QNL_JSON), "\"children\": 1"));
}

TEST_P(DescribeDevice, says_which_symbols_are_known) {
  OpenDevice device(GetParam());
  AlignedBytes bytes(bundle_bytes(contents_for(symbolic_contents())));
  Bundle bundle;
  Session session;
  qnl_error error = {};
  ASSERT_EQ(bundle.open(bytes.data(), bytes.size(), nullptr, &error), QNL_OK) << error.text;
  ASSERT_EQ(session.create(bundle, device.device, nullptr, &error), QNL_OK) << error.text;
  std::string text = text_of(session, QNL_TEXT);
  EXPECT_TRUE(has(text, "placed: no\n")) << text;
  EXPECT_TRUE(has(text, "  name batch, memory_for 8, runtime no\n")) << text;
  EXPECT_TRUE(has(text, "  name a, type f32[-1,-1], ")) << text;
}

#ifdef TEST_VULKAN
INSTANTIATE_TEST_SUITE_P(Devices, DescribeDevice,
                         testing::Values("cpu", "cpu pool", "vulkan", "vulkan copies"));
#else
INSTANTIATE_TEST_SUITE_P(Devices, DescribeDevice, testing::Values("cpu", "cpu pool"));
#endif

}  // namespace
}  // namespace quernel::test
