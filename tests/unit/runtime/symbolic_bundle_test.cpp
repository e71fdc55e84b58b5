// Bundles with symbols that contradict themselves: refused when they are opened, or when symbols have values.
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>

#include "quernel/runtime.hpp"
#include "test_bundle.h"

namespace quernel::test {
namespace {

using Floats = std::vector<float>;

bundle::Item& item(bundle::BundleContents& c, size_t entry, size_t index) {
  return c.entry_points[entry].plans[0].items[index];
}

// Opens the bundle after a change of its first variant's plans or of anything else; the writer must accept
// it.
qnl_status open_changed(const std::function<void(bundle::BundleContents&)>& change, std::string* text) {
  bundle::BundleContents contents = symbolic_contents();
  change(contents);
  AlignedBytes bytes(bundle_bytes(contents));
  Bundle bundle;
  qnl_error error = {};
  qnl_status status = bundle.open(bytes.data(), bytes.size(), nullptr, &error);
  *text = error.text;
  return status;
}

TEST(SymbolicBundle, malformed_expressions_are_refused) {
  std::string text;
  auto with = [&](std::vector<int64_t> code) {
    return open_changed([&](bundle::BundleContents& c) { c.expressions[1].code = code; }, &text);
  };
  EXPECT_EQ(with({0, 1, 0, 2, 2, 0}), QNL_OK) << text;
  EXPECT_EQ(with({2, 0}), QNL_INVALID_BUNDLE) << "an empty stack";
  EXPECT_EQ(with({0, 1, 2, 0}), QNL_INVALID_BUNDLE) << "one value for two";
  EXPECT_EQ(with({0, 1, 0, 2}), QNL_INVALID_BUNDLE) << "two values left";
  EXPECT_EQ(with({0, 1, 0, 2, 9, 0}), QNL_INVALID_BUNDLE) << "unknown opcode";
  EXPECT_EQ(with({-1, 1}), QNL_INVALID_BUNDLE);
  std::vector<int64_t> deep;
  for (int i = 0; i < 32; ++i) deep.insert(deep.end(), {0, 1});
  for (int i = 1; i < 32; ++i) deep.insert(deep.end(), {2, 0});
  EXPECT_EQ(with(deep), QNL_OK) << text;
}

TEST(SymbolicBundle, wrong_uses_of_symbols_are_refused) {
  std::string text;
  auto refused = [&](const char* part, const std::function<void(bundle::BundleContents&)>& change) {
    EXPECT_EQ(open_changed(change, &text), QNL_INVALID_BUNDLE) << part;
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  using bundle::BundleContents;
  auto runtime_expression = [](BundleContents& c) {
    c.expressions.push_back({{1, 5}});
    return static_cast<int32_t>(c.expressions.size()) - 1;
  };
  refused("wrong expression of its size",
          [&](BundleContents& c) { c.arenas[7].bytes_expression = runtime_expression(c); });
  refused("wrong expression of a binding",
          [&](BundleContents& c) { item(c, 0, 0).bindings[0].offset_expression = runtime_expression(c); });
  refused("dim 0 has a wrong expression", [&](BundleContents& c) {
    c.entry_points[0].inputs[0].shape_expressions[0] = runtime_expression(c);
  });
  refused("symbol 'count': wrong expression of its maximum",
          [&](BundleContents& c) { c.symbols[4].max_expression = runtime_expression(c); });
  refused("too many symbols", [&](BundleContents& c) { item(c, 0, 3).symbols = {0}; });
  refused("wrong expression of its size",
          [&](BundleContents& c) { item(c, 0, 3).workgroups_expression = 0; });
  refused("wrong expression of its size",
          [&](BundleContents& c) { item(c, 0, 0).flops_expression = runtime_expression(c); });
  refused("used twice", [&](BundleContents& c) { c.symbols[3].name = "batch"; });
}

// What a bundle cannot say before symbols have values is checked when they have.
TEST(SymbolicBundle, ranges_that_follow_from_symbols_are_checked) {
  auto run_changed = [](const std::function<void(bundle::BundleContents&)>& change, std::string* text) {
    bundle::BundleContents contents = symbolic_contents();
    change(contents);
    AlignedBytes bytes(bundle_bytes(contents));
    Bundle bundle;
    Device device;
    Session session;
    qnl_error error = {};
    qnl_session_options options = {};
    options.entry_point = "add";
    EXPECT_EQ(bundle.open(bytes.data(), bytes.size(), nullptr, &error), QNL_OK) << error.text;
    EXPECT_EQ(device.open_cpu(), QNL_OK);
    EXPECT_EQ(session.create(bundle, device, &options, &error), QNL_OK) << error.text;
    Floats a(64), c(4);
    EXPECT_EQ(session.set_input(tensor("a", QNL_F32, {2, 32}, a)), QNL_OK);
    EXPECT_EQ(session.set_input(tensor("b", QNL_F32, {2, 32}, a)), QNL_OK);
    EXPECT_EQ(session.set_input(tensor("c", QNL_F32, {4}, c)), QNL_OK);
    EXPECT_EQ(session.set_symbol("bias", 1), QNL_OK);
    qnl_status status = session.run(&error);
    *text = error.text;
    return status;
  };
  auto add = [](bundle::BundleContents& c, std::vector<int64_t> code) {
    c.expressions.push_back({std::move(code)});
    return static_cast<int32_t>(c.expressions.size()) - 1;
  };
  std::string text;
  using bundle::BundleContents;
  auto refused = [&](const char* part, const std::function<void(BundleContents&)>& change) {
    EXPECT_EQ(run_changed(change, &text), QNL_SYMBOL_OUT_OF_RANGE) << part;
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  refused("lie outside arena", [&](BundleContents& c) {
    item(c, 0, 0).bindings[2].offset_expression = add(c, {0, 257});
  });
  refused("found -1", [&](BundleContents& c) {
    item(c, 0, 0).bindings[2].offset_expression = add(c, {0, -1});
  });
  refused("divides by zero", [&](BundleContents& c) {
    item(c, 0, 0).workgroups_expression = add(c, {1, 0, 0, 0, 5, 0});
  });
  refused("overflows", [&](BundleContents& c) {
    item(c, 0, 0).workgroups_expression = add(c, {1, 0, 0, INT64_MAX, 4, 0});
  });
  refused("item 3: a copy of 17 bytes reaches outside its bindings", [&](BundleContents& c) {
    item(c, 0, 3).copy_bytes_expression = add(c, {0, 17});
  });
  refused("'(batch - 3)'", [&](BundleContents& c) {
    item(c, 0, 0).bindings[2].offset_expression = add(c, {1, 0, 0, 3, 3, 0});
  });
  refused("workgroups: expected elements to choose its result from, found too few", [&](BundleContents& c) {
    item(c, 0, 0).workgroups_expression = add(c, {1, 0, 0, 3, 3, 0});
  });
  EXPECT_EQ(run_changed(
                [&](BundleContents& c) {
                  item(c, 0, 3).copy_bytes_expression = add(c, {0, 0});
                },
                &text),
            QNL_OK)
      << text;
  EXPECT_EQ(run_changed(
                [&](BundleContents& c) {
                  c.arenas[c.entry_points[0].inputs[0].arena].bytes_expression = add(c, {0, 4096});
                },
                &text),
            QNL_INVALID_BUNDLE)
      << text;
}

// A session on a changed bundle, which opens as its contradictions need values of symbols.
struct ChangedFixture {
  ChangedFixture(const char* entry, const std::function<void(bundle::BundleContents&)>& change) {
    bundle::BundleContents contents = symbolic_contents();
    change(contents);
    bytes.emplace(bundle_bytes(contents));
    qnl_session_options options = {};
    options.entry_point = entry;
    EXPECT_EQ(bundle.open(bytes->data(), bytes->size(), nullptr, &error), QNL_OK) << error.text;
    EXPECT_EQ(device.open_cpu(), QNL_OK);
    EXPECT_EQ(session.create(bundle, device, &options, &error), QNL_OK) << error.text;
  }

  std::optional<AlignedBytes> bytes;
  Bundle bundle;
  Device device;
  Session session;
  qnl_error error = {};
};

TEST(SymbolicBundle, amounts_follow_symbols_where_they_can) {
  ChangedFixture f("add", [](bundle::BundleContents& c) {
    bundle::Item& first = item(c, 0, 0);
    first.flops = first.bytes_read = first.bytes_written = 7;
    auto add = [&](std::vector<int64_t> code) {
      c.expressions.push_back({std::move(code)});
      return static_cast<int32_t>(c.expressions.size()) - 1;
    };
    first.flops_expression = add({1, 0, 0, 100, 4, 0});
    first.bytes_read_expression = add({1, 0, 0, 0, 5, 0});  // divides by zero
  });
  Floats a(64), c(4);
  ASSERT_EQ(f.session.set_input(tensor("a", QNL_F32, {2, 32}, a)), QNL_OK);
  ASSERT_EQ(f.session.set_input(tensor("b", QNL_F32, {2, 32}, a)), QNL_OK);
  ASSERT_EQ(f.session.set_input(tensor("c", QNL_F32, {4}, c)), QNL_OK);
  ASSERT_EQ(f.session.set_symbol("bias", 1), QNL_OK);
  ASSERT_EQ(f.session.run(&f.error), QNL_OK) << f.error.text;
  qnl_item_info info = {};
  ASSERT_EQ(qnl_session_get_item(f.session.get(), 0, &info), QNL_OK);
  EXPECT_EQ(info.flops, 200u);  // 2 * 100
  EXPECT_EQ(info.bytes_read, 7u);
  EXPECT_EQ(info.bytes_written, 7u);
}

TEST(SymbolicBundle, outputs_larger_than_their_slots_are_refused) {
  ChangedFixture f("add", [](bundle::BundleContents& c) {
    c.entry_points[0].outputs[1].shape_expressions[0] = static_cast<int32_t>(c.expressions.size());
    c.expressions.push_back({{0, 1000}});
  });
  Floats a(64), c(4);
  ASSERT_EQ(f.session.set_input(tensor("a", QNL_F32, {2, 32}, a)), QNL_OK);
  ASSERT_EQ(f.session.set_input(tensor("b", QNL_F32, {2, 32}, a)), QNL_OK);
  ASSERT_EQ(f.session.set_input(tensor("c", QNL_F32, {4}, c)), QNL_OK);
  ASSERT_EQ(f.session.set_symbol("bias", 1), QNL_OK);
  ASSERT_EQ(f.session.run(&f.error), QNL_OK) << f.error.text;
  qnl_tensor twice;
  EXPECT_EQ(f.session.tensor(QNL_OUTPUT, "twice", &twice, &f.error), QNL_SYMBOL_OUT_OF_RANGE);
  EXPECT_STREQ(f.error.text, "output 'twice': its shape takes 4000 bytes, expected at most 16");
}

TEST(SymbolicBundle, shapes_that_no_device_has_are_refused) {
  ChangedFixture f("steps", [](bundle::BundleContents& c) {
    bundle::Tensor& rows = c.entry_points[1].inputs[1];
    rows.shape.push_back(-1);
    rows.shape_expressions.push_back(rows.shape_expressions[0]);
  });
  ASSERT_EQ(f.session.set_symbol("rows", int64_t{1} << 40), QNL_OK);
  qnl_tensor rows;
  EXPECT_EQ(f.session.tensor(QNL_INPUT, "rows", &rows, &f.error), QNL_SYMBOL_OUT_OF_RANGE);
  EXPECT_STREQ(f.error.text, "input 'rows': its shape is beyond what any device has");
}

TEST(SymbolicBundle, reserving_more_than_any_device_has_is_refused) {
  ChangedFixture f("steps", [](bundle::BundleContents& c) {
    bundle::Binding scratch = item(c, 1, 2).bindings[0];
    bundle::Arena arena = c.arenas[scratch.arena];
    arena.kind = bundle::ArenaKind::kWorkspace;
    scratch.arena = static_cast<uint32_t>(c.arenas.size());
    c.arenas.push_back(arena);
    item(c, 1, 2).bindings.push_back(scratch);
  });
  qnl_symbol_value most = {"rows", INT64_MAX};
  EXPECT_EQ(f.session.reserve(&most, 1, &f.error), QNL_SYMBOL_OUT_OF_RANGE);
  EXPECT_STREQ(f.error.text, "workspace: its size for these symbols is beyond what any device has");
  EXPECT_EQ(f.session.reserve(nullptr, 1, &f.error), QNL_INVALID_ARGUMENT);
  EXPECT_STREQ(f.error.text, "symbols: expected 1 values");
}

}  // namespace
}  // namespace quernel::test
