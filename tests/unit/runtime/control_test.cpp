// Control flow: loops, branches and symbols read from memory during a run.
#include <gtest/gtest.h>

#include <array>
#include <functional>

#include "core/device.h"
#include "null/null_device.h"
#include "quernel/runtime.hpp"
#include "test_bundle.h"

namespace quernel::test {
namespace {

using Floats = std::vector<float>;
using Integers = std::vector<int64_t>;

struct Fixture {
  explicit Fixture(const char* entry) : Fixture(entry, symbolic_contents()) {}
  Fixture(const char* entry, const bundle::BundleContents& contents) : bytes(bundle_bytes(contents)) {
    qnl_session_options options = {};
    options.entry_point = entry;
    EXPECT_EQ(bundle.open(bytes.data(), bytes.size(), nullptr, &error), QNL_OK) << error.text;
    EXPECT_EQ(device.open_cpu(), QNL_OK);
    EXPECT_EQ(session.create(bundle, device, &options, &error), QNL_OK) << error.text;
  }

  template <class T>
  void set(const char* name, qnl_dtype dtype, const std::vector<int64_t>& shape, std::vector<T> values) {
    EXPECT_EQ(session.set_input(tensor(name, dtype, shape, values), &error), QNL_OK) << error.text;
  }
  template <class T>
  std::vector<T> output(const char* name) {
    qnl_tensor found = {};
    EXPECT_EQ(session.tensor(QNL_OUTPUT, name, &found, &error), QNL_OK) << error.text;
    const T* data = static_cast<const T*>(found.data);
    return {data, data + found.bytes / sizeof(T)};
  }

  AlignedBytes bytes;
  Bundle bundle;
  Device device;
  Session session;
  qnl_error error = {};
};

TEST(Control, a_loop_runs_its_count_and_outputs_follow_it) {
  Fixture f("steps");
  f.set<int64_t>("rows", QNL_I64, {9}, Integers(9));
  for (int64_t n : {3, 0, 9, 1}) {
    f.set<int64_t>("n", QNL_I64, {}, {n});
    ASSERT_EQ(f.session.run(&f.error), QNL_OK) << f.error.text;
    Integers expected;
    for (int64_t i = 0; i < n; ++i) expected.push_back(i * i + 9);
    EXPECT_EQ(f.output<int64_t>("steps"), expected);
    qnl_tensor steps;
    ASSERT_EQ(f.session.tensor(QNL_OUTPUT, "steps", &steps), QNL_OK);
    EXPECT_EQ(steps.shape[0], n);
  }
}

TEST(Control, what_is_read_must_be_in_range) {
  Fixture f("steps");
  f.set<int64_t>("rows", QNL_I64, {9}, Integers(9));
  for (int64_t n : {int64_t{10}, int64_t{-1}, INT64_MIN, INT64_MAX}) {
    f.set<int64_t>("n", QNL_I64, {}, {n});
    EXPECT_EQ(f.session.run(&f.error), QNL_SYMBOL_OUT_OF_RANGE);
    EXPECT_NE(std::string(f.error.text).find("symbol 'count': expected 0 to 9, found " + std::to_string(n)),
              std::string::npos)
        << f.error.text;
  }
  qnl_tensor steps;
  EXPECT_EQ(f.session.tensor(QNL_OUTPUT, "steps", &steps, &f.error), QNL_INPUT_NOT_SET)
      << "the failed run has not set it";
}

TEST(Control, what_the_device_cannot_read_is_named) {
  Fixture f("steps");
  f.set<int64_t>("rows", QNL_I64, {9}, Integers(9));
  f.set<int64_t>("n", QNL_I64, {}, {3});
  static runtime::DeviceTable table;
  table = *f.device.get()->table;
  table.read = [](runtime::Device*, const runtime::DeviceRange&, void*, uint64_t) {
    return QNL_DEVICE_FAULT;
  };
  f.device.get()->table = &table;
  EXPECT_EQ(f.session.run(&f.error), QNL_DEVICE_FAULT);
  EXPECT_STREQ(f.error.text, "item 0: its number cannot be read");
}

TEST(Control, output_shapes_need_the_run) {
  Fixture f("steps");
  f.set<int64_t>("rows", QNL_I64, {9}, Integers(9));
  f.set<int64_t>("n", QNL_I64, {}, {2});
  qnl_tensor steps;
  EXPECT_EQ(f.session.tensor(QNL_OUTPUT, "steps", &steps, &f.error), QNL_INPUT_NOT_SET);
  EXPECT_NE(std::string(f.error.text).find("'count'"), std::string::npos) << f.error.text;
}

TEST(Control, nested_loops_count_with_their_own_symbols) {
  Fixture f("nested");
  for (int r = 0; r < 2; ++r) {
    f.set<float>("x", QNL_F32, {16}, Floats(16, 0.5f));
    ASSERT_EQ(f.session.run(&f.error), QNL_OK) << f.error.text;
    // (1,0), (2,0), (2,1)
    EXPECT_EQ(f.output<float>("y"), Floats(16, 0.5f + 1 + 2 + 3));
  }
}

TEST(Control, a_condition_ends_a_loop_and_the_symbol_is_the_trip_count) {
  Fixture f("until");
  for (auto [limit, sum, trips] : {std::array<int64_t, 3>{10, 12, 4}, {0, 0, 0}, {3, 3, 1}}) {
    f.set<int64_t>("limit", QNL_I64, {}, {limit});
    ASSERT_EQ(f.session.run(&f.error), QNL_OK) << f.error.text;
    EXPECT_EQ(f.output<int64_t>("sum")[0], sum);
    EXPECT_EQ(f.output<int64_t>("trips")[0], trips);
  }
  f.set<int64_t>("limit", QNL_I64, {}, {4000});
  EXPECT_EQ(f.session.run(&f.error), QNL_SYMBOL_OUT_OF_RANGE) << "more than 1000 iterations";
  EXPECT_NE(std::string(f.error.text).find("symbol 'i': expected 0 to 1000, found 1001"), std::string::npos)
      << f.error.text;
}

TEST(Control, branches_run_one_side) {
  Fixture f("choose");
  f.set<float>("x", QNL_F32, {16}, Floats(16, 1.0f));
  for (auto [pick, expected] : {std::pair<int32_t, float>{0, 11.0f}, {1, 21.0f}, {5, 31.0f}, {-5, 31.0f}}) {
    f.set<int32_t>("pick", QNL_I32, {}, {pick});
    ASSERT_EQ(f.session.run(&f.error), QNL_OK) << f.error.text;
    EXPECT_EQ(f.output<float>("y"), Floats(16, expected)) << pick;
  }
}

TEST(Control, every_integer_type_is_read) {
  struct Case {
    DType dtype;
    std::vector<uint8_t> bytes;
    int64_t value;
  };
  const Case cases[] = {{DType::kI8, {0xFF}, -1},
                        {DType::kU8, {3}, 3},
                        {DType::kI16, {0xFE, 0xFF}, -2},
                        {DType::kU16, {4, 0}, 4},
                        {DType::kI32, {0xFD, 0xFF, 0xFF, 0xFF}, -3},
                        {DType::kU32, {5, 0, 0, 0}, 5},
                        {DType::kI64, {0xFC, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}, -4},
                        {DType::kU64, {2, 0, 0, 0, 0, 0, 0, 0}, 2},
                        {DType::kU64, {0, 0, 0, 0, 0, 0, 0, 0x80}, INT64_MAX},
                        {DType::kBool, {7}, 1}};
  for (const Case& c : cases) {
    bundle::BundleContents contents = symbolic_contents();
    bundle::EntryPoint& entry = contents.entry_points[4];
    entry.inputs[0].dtype = c.dtype;
    entry.inputs[0].bytes = c.bytes.size();
    contents.arenas[entry.inputs[0].arena].bytes = c.bytes.size();
    for (bundle::Plan& plan : entry.plans) {
      plan.items[0].dtype = c.dtype;
      plan.items[0].bindings[0].bytes = c.bytes.size();
      plan.items[3].symbols[0] = static_cast<int32_t>(contents.expressions.size());  // + pick
      plan.items[4].symbols[0] = plan.items[3].symbols[0];
    }
    contents.expressions.push_back({{1, 8}});
    Fixture f("choose", contents);
    f.set<float>("x", QNL_F32, {16}, Floats(16, 0.0f));
    f.set<uint8_t>("pick", static_cast<qnl_dtype>(c.dtype), {}, c.bytes);
    qnl_status status = f.session.run(&f.error);
    if (c.value == INT64_MAX) {
      EXPECT_EQ(status, QNL_SYMBOL_OUT_OF_RANGE) << "does not fit";
      continue;
    }
    ASSERT_EQ(status, QNL_OK) << f.error.text;
    EXPECT_EQ(f.output<float>("y")[0], static_cast<float>(c.value))
        << qnl_dtype_name(static_cast<qnl_dtype>(c.dtype));
  }
}

TEST(Control, the_profile_sees_every_execution) {
  Fixture f("nested");
  f.set<float>("x", QNL_F32, {16}, Floats(16));
  std::vector<uint32_t> items;
  qnl_session_set_profile(
      f.session.get(),
      [](void* user, uint32_t item, uint64_t) { static_cast<std::vector<uint32_t>*>(user)->push_back(item); },
      &items);
  ASSERT_EQ(f.session.run(&f.error), QNL_OK);
  EXPECT_EQ(items, (std::vector<uint32_t>{0, 3, 3, 3}));
  qnl_item_info info;
  ASSERT_EQ(qnl_session_get_item(f.session.get(), 1, &info), QNL_OK);
  EXPECT_EQ(info.kind, QNL_ITEM_LOOP);
  EXPECT_STREQ(info.name, "loop");
}

TEST(Control, states_keep_their_values_in_loops) {
  // accumulate, three times a run
  bundle::BundleContents contents = test_contents();
  contents.symbols.push_back({"i", 0, 10, 1, bundle::SymbolKind::kRuntime});
  contents.expressions.push_back({{0, 3}});
  for (bundle::Plan& plan : contents.entry_points[1].plans) {
    bundle::Item loop;
    loop.kind = bundle::ItemKind::kLoop;
    loop.symbol = 0;
    loop.count_expression = 0;
    loop.end = 2;
    plan.items.insert(plan.items.begin(), loop);
    plan.items[2].edges = {{0, bundle::EdgeKind::kRaw}};
  }
  Fixture f("accumulate", contents);
  f.set<float>("x", QNL_F32, {16}, Floats(16, 1.0f));
  ASSERT_EQ(f.session.run(&f.error), QNL_OK) << f.error.text;
  EXPECT_EQ(f.output<float>("y")[0], 3.0f);
  ASSERT_EQ(f.session.run(&f.error), QNL_OK);
  EXPECT_EQ(f.output<float>("y")[5], 6.0f);
}

TEST(Control, malformed_control_flow_is_refused) {
  using bundle::BundleContents;
  auto refused = [](const char* part, const std::function<void(std::vector<bundle::Item>&)>& change,
                    size_t entry) {
    BundleContents contents = symbolic_contents();
    change(contents.entry_points[entry].plans[0].items);
    AlignedBytes bytes(bundle_bytes(contents));
    Bundle bundle;
    qnl_error error = {};
    EXPECT_EQ(bundle.open(bytes.data(), bytes.size(), nullptr, &error), QNL_INVALID_BUNDLE) << part;
    EXPECT_NE(std::string(error.text).find(part), std::string::npos) << error.text;
  };
  using Items = std::vector<bundle::Item>;
  constexpr size_t kSteps = 1, kNested = 2, kChoose = 4;
  refused(
      "item 4: has an edge into another body, to item 3",
      [](Items& i) {
        i[4].edges = {{3, bundle::EdgeKind::kRaw}};
      },
      kChoose);
  refused(
      "item 5: has an edge into another body, to item 2",
      [](Items& i) {
        i[5].edges = {{2, bundle::EdgeKind::kRaw}};
      },
      kChoose);
  refused(
      "item 2: expected a runtime symbol that no loop around it counts with",
      [](Items& i) { i[2].symbol = i[1].symbol; }, kNested);
  refused(
      "item 0: expected to read one integer or boolean", [](Items& i) { i[0].dtype = DType::kF64; }, kSteps);
  refused(
      "item 0: expected to read one integer or boolean", [](Items& i) { i[0].dtype = DType::kI32; }, kSteps);
  refused(
      ": its body is not nested in the one around it, or more than 32 deep",
      [](Items& i) {
        for (int depth = 0; depth < 33; ++depth) i.insert(i.begin() + 2, i[1]);
        for (bundle::Item& item : i) {
          if (item.kind != bundle::ItemKind::kLoop) continue;
          item.kind = bundle::ItemKind::kBranch;
          item.condition_expression = item.count_expression;
          item.count_expression = -1;
          item.else_begin = item.end = static_cast<uint32_t>(i.size());
        }
      },
      kSteps);
}

TEST(Control, edges_may_point_out_of_a_body) {
  bundle::BundleContents contents = symbolic_contents();
  contents.entry_points[2].plans[0].items[3].edges = {{0, bundle::EdgeKind::kRaw},
                                                      {2, bundle::EdgeKind::kRaw}};
  contents.entry_points[4].plans[0].items[4].edges = {{0, bundle::EdgeKind::kRaw},
                                                      {2, bundle::EdgeKind::kRaw}};
  Fixture f("nested", contents);
}

TEST(Control, the_feature_must_be_asked_for) {
  std::vector<std::byte> bytes = bundle_bytes(symbolic_contents());
  EXPECT_EQ(static_cast<int>(bytes[16]), 3);
  bytes[16] = std::byte{1};
  rehash(bytes);
  AlignedBytes aligned(bytes);
  Bundle bundle;
  qnl_error error = {};
  EXPECT_EQ(bundle.open(aligned.data(), aligned.size(), nullptr, &error), QNL_INVALID_BUNDLE);
  EXPECT_STREQ(error.text, "item 0: needs the feature 'control_flow', which the header does not ask for");
}

}  // namespace
}  // namespace quernel::test
