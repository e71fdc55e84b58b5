// Symbols: shapes bound before a run, memory that follows them, and what is wrong with shapes.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "core/device.h"
#include "core/expression.h"
#include "null/null_device.h"
#include "quernel/runtime.hpp"
#include "test_bundle.h"

namespace quernel::test {
namespace {

using Floats = std::vector<float>;

// A session on one of the entry points of symbolic_contents.
struct Fixture {
  explicit Fixture(const char* entry, const std::vector<qnl_symbol_value>& capacity = {}, bool null = false)
      : bytes(bundle_bytes(symbolic_contents())) {
    EXPECT_EQ(bundle.open(bytes.data(), bytes.size(), nullptr, &error), QNL_OK) << error.text;
    EXPECT_EQ(null ? device.open_null() : device.open_cpu(), QNL_OK);
    options.entry_point = entry;
    options.symbols = capacity.data();
    options.symbol_count = static_cast<uint32_t>(capacity.size());
    EXPECT_EQ(session.create(bundle, device, &options, &error), QNL_OK) << error.text;
  }

  // Inputs of the entry point "add": a all 1, b all 2, c counting.
  qnl_status set_add_inputs(int64_t batch, int64_t width) {
    Floats a(static_cast<size_t>(batch * width), 1.0f), b(a.size(), 2.0f), c(static_cast<size_t>(batch) * 2);
    for (size_t i = 0; i < c.size(); ++i) c[i] = static_cast<float>(i);
    qnl_status status = session.set_input(tensor("a", QNL_F32, {batch, width}, a), &error);
    if (status == QNL_OK) status = session.set_input(tensor("b", QNL_F32, {batch, width}, b), &error);
    if (status == QNL_OK) status = session.set_input(tensor("c", QNL_F32, {batch * 2}, c), &error);
    return status;
  }

  template <class T>
  std::vector<T> output(const char* name) {
    qnl_tensor found = {};
    EXPECT_EQ(session.tensor(QNL_OUTPUT, name, &found, &error), QNL_OK) << error.text;
    const T* data = static_cast<const T*>(found.data);
    return {data, data + found.bytes / sizeof(T)};
  }

  // The text of the error holds all of these.
  void expect_text(std::initializer_list<const char*> parts) const {
    for (const char* part : parts)
      EXPECT_NE(std::strstr(error.text, part), nullptr) << part << ": " << error.text;
  }

  AlignedBytes bytes;
  Bundle bundle;
  Device device;
  Session session;
  qnl_session_options options = {};
  qnl_error error = {};
};

TEST(Expression, rounds_toward_negative_infinity) {
  auto value = [](int64_t opcode, int64_t a, int64_t b) {
    const int64_t code[] = {0, a, 0, b, opcode, 0};
    int64_t result = 0;
    EXPECT_EQ(runtime::evaluate({code, 3}, nullptr, &result), runtime::Evaluation::kOk);
    return result;
  };
  EXPECT_EQ(value(5, 7, 2), 3);
  EXPECT_EQ(value(5, -7, 2), -4);
  EXPECT_EQ(value(5, 7, -2), -4);
  EXPECT_EQ(value(5, -7, -2), 3);
  EXPECT_EQ(value(5, -8, 2), -4);
  EXPECT_EQ(value(6, 7, 2), 1);
  EXPECT_EQ(value(6, -7, 2), 1);
  EXPECT_EQ(value(6, 7, -2), -1);
  EXPECT_EQ(value(6, -7, -2), -1);
  EXPECT_EQ(value(6, INT64_MIN, -1), 0);
  EXPECT_EQ(value(5, 5, -1), -5);
  EXPECT_EQ(value(7, 3, -4), -4);
  EXPECT_EQ(value(8, 3, -4), 3);
  EXPECT_EQ(value(3, 3, 4), -1);
}

TEST(Expression, overflow_and_division_by_zero_are_errors) {
  using runtime::Evaluation;
  auto result = [](int64_t opcode, int64_t a, int64_t b) {
    const int64_t code[] = {0, a, 0, b, opcode, 0};
    int64_t value = 0;
    return runtime::evaluate({code, 3}, nullptr, &value);
  };
  EXPECT_EQ(result(2, INT64_MAX, 1), Evaluation::kOverflow);
  EXPECT_EQ(result(3, INT64_MIN, 1), Evaluation::kOverflow);
  EXPECT_EQ(result(4, INT64_MAX, 2), Evaluation::kOverflow);
  EXPECT_EQ(result(5, INT64_MIN, -1), Evaluation::kOverflow);
  EXPECT_EQ(result(5, 1, 0), Evaluation::kDivisionByZero);
  EXPECT_EQ(result(6, 1, 0), Evaluation::kDivisionByZero);
}

TEST(Symbols, signature_says_what_is_symbolic) {
  Fixture f("add");
  EXPECT_EQ(f.bundle.info().symbol_count, kSymbolCount);
  qnl_symbol_info symbol;
  ASSERT_EQ(qnl_bundle_get_symbol(f.bundle.get(), 1, &symbol), QNL_OK);
  EXPECT_STREQ(symbol.name, "width");
  EXPECT_EQ(symbol.min, 16);
  EXPECT_EQ(symbol.max, 64);
  EXPECT_EQ(symbol.multiple_of, 16);
  EXPECT_EQ(symbol.runtime, 0);
  ASSERT_EQ(qnl_bundle_get_symbol(f.bundle.get(), 5, &symbol), QNL_OK);
  EXPECT_EQ(symbol.runtime, 1);
  EXPECT_EQ(qnl_bundle_get_symbol(f.bundle.get(), kSymbolCount, &symbol), QNL_INVALID_ARGUMENT);
  qnl_tensor input;
  ASSERT_EQ(qnl_bundle_get_tensor(f.bundle.get(), 0, QNL_INPUT, 2, &input), QNL_OK);
  EXPECT_EQ(input.shape[0], -1);
  EXPECT_EQ(input.bytes, 0u);
  char text[64];
  ASSERT_EQ(qnl_bundle_get_dim_text(f.bundle.get(), 0, QNL_INPUT, 2, 0, text, sizeof text), QNL_OK);
  EXPECT_STREQ(text, "(batch * 2)");
  ASSERT_EQ(qnl_bundle_get_dim_text(f.bundle.get(), 0, QNL_INPUT, 0, 1, text, sizeof text), QNL_OK);
  EXPECT_STREQ(text, "width");
  ASSERT_EQ(qnl_bundle_get_dim_text(f.bundle.get(), 0, QNL_INPUT, 0, 1, text, 4), QNL_OK);
  EXPECT_STREQ(text, "wid");
  ASSERT_EQ(qnl_bundle_get_dim_text(f.bundle.get(), 2, QNL_INPUT, 0, 0, text, sizeof text), QNL_OK);
  EXPECT_STREQ(text, "16");
  EXPECT_EQ(qnl_bundle_get_dim_text(f.bundle.get(), 0, QNL_INPUT, 0, 2, text, sizeof text),
            QNL_INVALID_ARGUMENT);
}

TEST(Symbols, shapes_of_inputs_bind_them) {
  Fixture f("add");
  ASSERT_EQ(f.session.set_symbol("bias", 5), QNL_OK);
  for (auto [batch, width] : {std::pair<int64_t, int64_t>{2, 32}, {8, 64}, {1, 16}, {3, 48}}) {
    ASSERT_EQ(f.set_add_inputs(batch, width), QNL_OK) << f.error.text;
    ASSERT_EQ(f.session.run(&f.error), QNL_OK) << f.error.text;
    qnl_tensor sum;
    ASSERT_EQ(f.session.tensor(QNL_OUTPUT, "sum", &sum), QNL_OK);
    EXPECT_EQ(sum.shape[0], batch);
    EXPECT_EQ(sum.shape[1], width);
    EXPECT_EQ(f.output<float>("sum"), Floats(static_cast<size_t>(batch * width), 12.0f));
    Floats twice = f.output<float>("twice");
    ASSERT_EQ(twice.size(), static_cast<size_t>(batch) * 2);
    EXPECT_EQ(twice.back(), static_cast<float>(batch * 2 - 1));
  }
}

TEST(Symbols, disagreeing_inputs_name_both) {
  Fixture f("add");
  ASSERT_EQ(f.session.set_symbol("bias", 0), QNL_OK);
  ASSERT_EQ(f.set_add_inputs(2, 32), QNL_OK);
  Floats b(3 * 32);
  ASSERT_EQ(f.session.set_input(tensor("b", QNL_F32, {3, 32}, b), &f.error), QNL_OK);
  EXPECT_EQ(f.session.run(&f.error), QNL_SHAPE_MISMATCH);
  f.expect_text({"input 'b' dim 0", "'batch'", "expected 2", "dim 0 of input 'a'", "found 3"});
  ASSERT_EQ(f.set_add_inputs(2, 32), QNL_OK);
  EXPECT_EQ(f.session.run(&f.error), QNL_OK) << f.error.text;
  Floats c(6);
  ASSERT_EQ(f.session.set_input(tensor("c", QNL_F32, {6}, c), &f.error), QNL_OK);
  EXPECT_EQ(f.session.run(&f.error), QNL_SHAPE_MISMATCH);
  f.expect_text({"input 'c' dim 0", "expected 4", "(batch * 2)", "found 6"});
  ASSERT_EQ(f.set_add_inputs(2, 32), QNL_OK);
  ASSERT_EQ(f.session.set_symbol("batch", 4), QNL_OK);
  EXPECT_EQ(f.session.run(&f.error), QNL_SHAPE_MISMATCH);
  f.expect_text({"input 'a' dim 0", "expected 4", "qnl_session_set_symbol", "found 2"});
  ASSERT_EQ(f.session.set_symbol("batch", QNL_SYMBOL_UNSET), QNL_OK);
  EXPECT_EQ(f.session.run(&f.error), QNL_OK) << f.error.text;
}

TEST(Symbols, ranges_are_checked_when_a_shape_is_given) {
  Fixture f("add");
  Floats a(9 * 48);
  EXPECT_EQ(f.session.set_input(tensor("a", QNL_F32, {9, 48}, a), &f.error), QNL_SYMBOL_OUT_OF_RANGE);
  f.expect_text({"input 'a' dim 0", "'batch'", "expected 1 to 8", "found 9"});
  EXPECT_EQ(f.session.set_input(tensor("a", QNL_F32, {12, 36}, a), &f.error), QNL_SYMBOL_OUT_OF_RANGE);
  a.resize(2 * 24);
  EXPECT_EQ(f.session.set_input(tensor("a", QNL_F32, {2, 24}, a), &f.error), QNL_SYMBOL_OUT_OF_RANGE);
  f.expect_text({"dim 1", "'width'", "a multiple of 16 from 16 to 64", "found 24"});
  EXPECT_EQ(f.session.set_input(tensor("a", QNL_F32, {48}, a), &f.error), QNL_SHAPE_MISMATCH);
  f.expect_text({"f32[batch,width]", "f32[48]"});
  EXPECT_EQ(f.session.set_input(tensor("a", QNL_F32, {2, 16}, a), &f.error), QNL_SIZE_MISMATCH);
  EXPECT_EQ(f.session.set_input(tensor("c", QNL_F32, {-2}, a), &f.error), QNL_SHAPE_MISMATCH);
  f.expect_text({"input 'c' dim 0", "expected 0 or more, found -2"});
  EXPECT_EQ(f.session.set_symbol("bias", 101, &f.error), QNL_SYMBOL_OUT_OF_RANGE);
  EXPECT_EQ(f.session.set_symbol("i", 1, &f.error), QNL_UNKNOWN_NAME) << "set during runs only";
  EXPECT_EQ(f.session.set_symbol("nothing", 1, &f.error), QNL_UNKNOWN_NAME);
  f.expect_text({"'nothing'", "'batch'", "'bias'"});
}

TEST(Symbols, huge_shapes_are_refused) {
  Fixture f("steps");
  std::vector<int64_t> rows(1);
  for (int64_t dim : {INT64_MAX, INT64_MAX / 8, int64_t{1} << 61, int64_t{1} << 47}) {
    qnl_tensor t = tensor("rows", QNL_I64, {dim}, rows);
    for (uint64_t bytes : {uint64_t{8}, ~uint64_t{0}, static_cast<uint64_t>(dim) * 8}) {
      t.bytes = bytes;
      EXPECT_NE(f.session.set_input(t, &f.error), QNL_OK) << dim;
    }
    EXPECT_EQ(f.session.set_shape(t, &f.error), QNL_SHAPE_MISMATCH) << f.error.text;
  }
}

TEST(Symbols, a_missing_symbol_is_named) {
  Fixture f("add");
  ASSERT_EQ(f.set_add_inputs(2, 32), QNL_OK);
  EXPECT_EQ(f.session.run(&f.error), QNL_INPUT_NOT_SET);
  f.expect_text({"'bias'", "has no value"});
}

TEST(Symbols, outputs_have_no_shape_before_inputs_do) {
  Fixture f("add");
  qnl_tensor sum;
  EXPECT_EQ(f.session.tensor(QNL_OUTPUT, "sum", &sum, &f.error), QNL_INPUT_NOT_SET);
  f.expect_text({"output 'sum' dim 0", "'batch'"});
  ASSERT_EQ(f.session.set_symbol("bias", 0), QNL_OK);
  ASSERT_EQ(f.set_add_inputs(2, 32), QNL_OK);
  ASSERT_EQ(f.session.tensor(QNL_OUTPUT, "sum", &sum, &f.error), QNL_OK) << f.error.text;
  EXPECT_EQ(sum.bytes, 256u);
  ASSERT_EQ(f.session.run(&f.error), QNL_OK);
  ASSERT_EQ(f.set_add_inputs(4, 32), QNL_OK);
  ASSERT_EQ(f.session.tensor(QNL_OUTPUT, "sum", &sum, &f.error), QNL_OK);
  EXPECT_EQ(sum.shape[0], 2) << "still the last run's";
}

TEST(Symbols, inputs_are_filled_in_place_after_their_shape_is_known) {
  Fixture f("add");
  qnl_tensor a;
  EXPECT_EQ(f.session.tensor(QNL_INPUT, "a", &a, &f.error), QNL_INPUT_NOT_SET);
  f.expect_text({"input 'a' dim 0", "'batch'"});
  for (const char* name : {"a", "b"}) {
    qnl_tensor shape = {};
    shape.name = name;
    shape.rank = 2;
    shape.shape[0] = 3;
    shape.shape[1] = 16;
    ASSERT_EQ(f.session.set_shape(shape, &f.error), QNL_OK) << f.error.text;
    ASSERT_EQ(f.session.tensor(QNL_INPUT, name, &a, &f.error), QNL_OK) << f.error.text;
    ASSERT_EQ(a.bytes, 192u);
    for (int i = 0; i < 48; ++i) static_cast<float*>(a.data)[i] = 4.0f;
  }
  qnl_tensor c;  // follows from the others
  ASSERT_EQ(f.session.tensor(QNL_INPUT, "c", &c, &f.error), QNL_OK) << f.error.text;
  EXPECT_EQ(c.shape[0], 6);
  ASSERT_EQ(f.session.set_symbol("bias", 1), QNL_OK);
  ASSERT_EQ(f.session.run(&f.error), QNL_OK) << f.error.text;
  EXPECT_EQ(f.output<float>("sum"), Floats(48, 18.0f));
}

TEST(Symbols, symbols_by_name_give_shapes_to_inputs) {
  Fixture f("add");
  for (int64_t batch : {2, 5, 1}) {
    for (auto [name, value] : {std::pair<const char*, int64_t>{"batch", batch}, {"width", 32}, {"bias", 0}})
      ASSERT_EQ(f.session.set_symbol(name, value, &f.error), QNL_OK) << f.error.text;
    for (const char* name : {"a", "b", "c"}) {
      qnl_tensor t;
      ASSERT_EQ(f.session.tensor(QNL_INPUT, name, &t, &f.error), QNL_OK) << f.error.text;
      EXPECT_EQ(t.shape[0], name[0] == 'c' ? 2 * batch : batch);
      std::memset(t.data, 0, t.bytes);
    }
    ASSERT_EQ(f.session.run(&f.error), QNL_OK) << f.error.text;
    EXPECT_EQ(f.output<float>("sum"), Floats(static_cast<size_t>(batch) * 32, 1.0f));
  }
}

TEST(Symbols, requirements_are_for_the_named_capacity) {
  auto needs = [](std::vector<qnl_symbol_value> capacity) {
    Fixture f("add", capacity);
    qnl_requirements r = {};
    EXPECT_EQ(qnl_session_query(f.bundle.get(), f.device.get(), &f.options, &r, &f.error), QNL_OK);
    return r;
  };
  EXPECT_EQ(needs({{"batch", 2}, {"width", 16}}).workspace_bytes, 256u);
  EXPECT_EQ(needs({}).workspace_bytes, 2u * 8 * 64 * 4) << "the maximum when it is finite";
  EXPECT_EQ(needs({{"batch", 1}, {"width", 16}}).io_bytes, 64u + 64 + 64 + 64 + 8);
  Fixture steps("steps");
  qnl_requirements r = {};
  ASSERT_EQ(qnl_session_query(steps.bundle.get(), steps.device.get(), &steps.options, &r, &steps.error),
            QNL_OK);
  EXPECT_EQ(r.io_bytes, 64u + 64 + 8) << "the minimum when it is not";
  qnl_symbol_value wrong = {"batch", 9};
  steps.options.symbols = &wrong;
  steps.options.symbol_count = 1;
  EXPECT_EQ(qnl_session_query(steps.bundle.get(), steps.device.get(), &steps.options, &r, &steps.error),
            QNL_SYMBOL_OUT_OF_RANGE);
  wrong = {"rows", INT64_MAX};
  EXPECT_EQ(qnl_session_query(steps.bundle.get(), steps.device.get(), &steps.options, &r, &steps.error),
            QNL_SYMBOL_OUT_OF_RANGE)
      << "no device has that";
  steps.expect_text(
      {"inputs and outputs: its size for the symbols' capacity is beyond what any device has; "
       "name smaller values in qnl_session_options"});
  steps.options.symbols = nullptr;
  steps.options.symbol_count = 2;
  EXPECT_EQ(qnl_session_query(steps.bundle.get(), steps.device.get(), &steps.options, &r, &steps.error),
            QNL_INVALID_ARGUMENT);
  steps.expect_text({"symbols: expected 2 values"});
}

TEST(Symbols, memory_grows_with_shapes_and_keeps_values) {
  Fixture f("add", {{"batch", 1}, {"width", 16}});
  qnl_device_info before, after;
  qnl_device_get_info(f.device.get(), &before);
  ASSERT_EQ(f.session.set_symbol("bias", 0), QNL_OK);
  ASSERT_EQ(f.set_add_inputs(1, 16), QNL_OK);
  ASSERT_EQ(f.session.run(&f.error), QNL_OK) << f.error.text;
  ASSERT_EQ(f.set_add_inputs(8, 64), QNL_OK);
  EXPECT_EQ(f.output<float>("sum"), Floats(16, 7.0f)) << "the last result outlives growth of inputs";
  ASSERT_EQ(f.session.run(&f.error), QNL_OK) << f.error.text;
  EXPECT_EQ(f.output<float>("sum"), Floats(512, 7.0f));
  EXPECT_EQ(f.output<float>("twice")[15], 15.0f);
  qnl_device_get_info(f.device.get(), &after);
  EXPECT_GT(after.memory_used, before.memory_used);
  ASSERT_EQ(f.set_add_inputs(2, 32), QNL_OK);
  ASSERT_EQ(f.session.run(&f.error), QNL_OK);
  EXPECT_EQ(f.output<float>("sum"), Floats(64, 7.0f));
}

TEST(Symbols, states_survive_growth) {
  bundle::BundleContents contents = test_contents();
  contents.symbols.push_back({"n", 1, INT64_MAX});
  contents.expressions = {{{1, 0}}, {{1, 0, 0, 4, 4, 0}}};
  contents.arenas.push_back({"pad", bundle::ArenaKind::kInput});
  contents.arenas.back().bytes_expression = 1;
  contents.entry_points[1].inputs.push_back(
      {"pad", DType::kF32, {-1}, {0}, 0, static_cast<uint32_t>(contents.arenas.size()) - 1});
  AlignedBytes bytes(bundle_bytes(contents));
  Bundle bundle;
  Device device;
  Session owner, other;
  qnl_error error = {};
  ASSERT_EQ(bundle.open(bytes.data(), bytes.size(), nullptr, &error), QNL_OK) << error.text;
  ASSERT_EQ(device.open_cpu(), QNL_OK);
  qnl_session_options options = {};
  options.entry_point = "accumulate";
  ASSERT_EQ(owner.create(bundle, device, &options, &error), QNL_OK) << error.text;
  options.parent = owner.get();
  options.share_state = 1;
  ASSERT_EQ(other.create(bundle, device, &options, &error), QNL_OK) << error.text;
  Floats x(16, 1.0f);
  float expected = 0;
  for (Session* session : {&owner, &other})
    for (size_t n : {1, 5000, 20000}) {
      Floats pad(n);
      qnl_tensor y;
      ASSERT_EQ(session->set_input(tensor("x", QNL_F32, {16}, x)), QNL_OK);
      ASSERT_EQ(session->set_input(tensor("pad", QNL_F32, {static_cast<int64_t>(n)}, pad), &error), QNL_OK)
          << error.text;
      ASSERT_EQ(session->run(&error), QNL_OK) << error.text;
      ASSERT_EQ(session->tensor(QNL_OUTPUT, "y", &y), QNL_OK);
      EXPECT_EQ(static_cast<float*>(y.data)[15], expected += 1);
    }
}

TEST(Symbols, supplied_memory_does_not_grow) {
  Fixture f("add");
  std::vector<qnl_symbol_value> capacity = {{"batch", 2}, {"width", 32}};
  f.options.symbols = capacity.data();
  f.options.symbol_count = 2;
  qnl_requirements r;
  ASSERT_EQ(qnl_session_query(f.bundle.get(), f.device.get(), &f.options, &r, &f.error), QNL_OK);
  for (bool io : {false, true}) {
    AlignedBytes block(std::vector<std::byte>(std::max(r.workspace_bytes, r.io_bytes)));
    f.options.workspace_memory = io ? nullptr : const_cast<void*>(block.data());
    f.options.workspace_memory_bytes = r.workspace_bytes;
    f.options.io_memory = io ? const_cast<void*>(block.data()) : nullptr;
    f.options.io_memory_bytes = r.io_bytes;
    ASSERT_EQ(f.session.create(f.bundle, f.device, &f.options, &f.error), QNL_OK) << f.error.text;
    ASSERT_EQ(f.session.set_symbol("bias", 0), QNL_OK);
    ASSERT_EQ(f.set_add_inputs(2, 32), QNL_OK);
    ASSERT_EQ(f.session.run(&f.error), QNL_OK) << f.error.text;
    qnl_status status = f.set_add_inputs(3, 32);
    EXPECT_EQ(status, io ? QNL_MEMORY_TOO_SMALL : QNL_OK);
    if (status == QNL_OK) {
      EXPECT_EQ(f.session.run(&f.error), QNL_MEMORY_TOO_SMALL);
    }
    f.expect_text({io ? "input and output memory: expected "
                      : "workspace memory: expected 768 bytes, the caller has supplied 512",
                   "; create the session with larger values in qnl_session_options::symbols"});
    qnl_symbol_value more = {"batch", 8};
    EXPECT_EQ(f.session.reserve(&more, 1, &f.error), QNL_MEMORY_TOO_SMALL);
    ASSERT_EQ(f.set_add_inputs(1, 32), QNL_OK) << f.error.text;
    EXPECT_EQ(f.session.run(&f.error), QNL_OK) << f.error.text;
    f.session = Session();
  }
}

TEST(Symbols, memory_that_the_device_does_not_have) {
  Fixture f("add", {{"batch", 2}, {"width", 32}});
  static runtime::DeviceTable table;
  table = *f.device.get()->table;
  table.allocate_arena = [](runtime::Device*, uint64_t, bool, runtime::DeviceArena*) {
    return QNL_OUT_OF_MEMORY;
  };
  f.device.get()->table = &table;
  EXPECT_EQ(f.set_add_inputs(3, 32), QNL_OUT_OF_MEMORY);
  f.expect_text({"inputs and outputs: no memory for ", " bytes"});
  qnl_symbol_value more = {"batch", 8};
  EXPECT_EQ(f.session.reserve(&more, 1, &f.error), QNL_OUT_OF_MEMORY);
  f.expect_text({"workspace: no memory for 2048 bytes"});
}

TEST(Symbols, bound_memory_is_checked_against_shapes) {
  Fixture f("add");
  ASSERT_EQ(f.session.set_symbol("bias", 0), QNL_OK);
  Floats a(4 * 32, 1.0f), out(64);
  ASSERT_EQ(f.session.bind_input(tensor("a", QNL_F32, {4, 32}, a), &f.error), QNL_OK);
  ASSERT_EQ(f.session.bind_output(tensor("sum", QNL_F32, {-1, -1}, out), &f.error), QNL_OK) << f.error.text;
  Floats b(4 * 32, 2.0f), c(8);
  ASSERT_EQ(f.session.set_input(tensor("b", QNL_F32, {4, 32}, b)), QNL_OK);
  ASSERT_EQ(f.session.set_input(tensor("c", QNL_F32, {8}, c)), QNL_OK);
  EXPECT_EQ(f.session.run(&f.error), QNL_MEMORY_TOO_SMALL);
  f.expect_text({"output 'sum': expected 512 bytes, the memory bound to it has 256"});
  out.resize(200);
  ASSERT_EQ(f.session.bind_output(tensor("sum", QNL_F32, {0, 0}, out), &f.error), QNL_OK);
  ASSERT_EQ(f.session.run(&f.error), QNL_OK) << f.error.text;
  EXPECT_EQ(out[127], 7.0f);
  EXPECT_EQ(out[128], 0.0f);
  qnl_tensor shape = tensor("a", QNL_F32, {5, 32}, a);
  EXPECT_EQ(f.session.set_shape(shape, &f.error), QNL_SIZE_MISMATCH) << "the bound memory is smaller";
  f.expect_text({"input 'a': expected 640 bytes, the memory bound to it has 512"});
  // a smaller shape in the same memory
  shape.shape[0] = 2;
  ASSERT_EQ(f.session.set_shape(shape, &f.error), QNL_OK);
  qnl_tensor slot;
  ASSERT_EQ(f.session.tensor(QNL_INPUT, "a", &slot), QNL_OK);
  EXPECT_EQ(slot.data, a.data());
}

TEST(Symbols, an_unbound_slot_has_room_for_the_shape) {
  Fixture f("add", {{"batch", 1}, {"width", 16}});
  Floats a(8 * 64);
  ASSERT_EQ(f.session.bind_input(tensor("a", QNL_F32, {8, 64}, a)), QNL_OK);
  qnl_tensor own = tensor("a", QNL_F32, {8, 64}, a);
  own.data = nullptr;
  ASSERT_EQ(f.session.bind_input(own), QNL_OK);
  ASSERT_EQ(f.session.tensor(QNL_INPUT, "a", &own, &f.error), QNL_OK) << f.error.text;
  EXPECT_EQ(own.bytes, 2048u);
  std::memset(own.data, 1, own.bytes);
}

TEST(Symbols, null_device_checks_every_range) {
  Fixture f("add", {}, true);
  ASSERT_EQ(f.session.set_symbol("bias", 0), QNL_OK);
  ASSERT_EQ(f.set_add_inputs(3, 48), QNL_OK);
  ASSERT_EQ(f.session.run(&f.error), QNL_OK) << f.error.text;
  EXPECT_EQ(runtime::null::counts(f.device.get()).submissions, 1u) << "no control flow: one submission";
  EXPECT_EQ(runtime::null::counts(f.device.get()).workgroups, 3u * 9);
}

}  // namespace
}  // namespace quernel::test
