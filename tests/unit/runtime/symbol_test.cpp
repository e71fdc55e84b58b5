// Symbols: shapes bound before a run, memory that follows them, and what is wrong with shapes or bundles.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <limits>

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

TEST(Expression, RoundsTowardNegativeInfinity) {
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

TEST(Expression, OverflowAndDivisionByZeroAreErrors) {
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

TEST(Symbols, SignatureSaysWhatIsSymbolic) {
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

TEST(Symbols, ShapesOfInputsBindThem) {
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

TEST(Symbols, DisagreeingInputsNameBoth) {
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

TEST(Symbols, RangesAreCheckedWhenAShapeIsGiven) {
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
  EXPECT_EQ(f.session.set_symbol("bias", 101, &f.error), QNL_SYMBOL_OUT_OF_RANGE);
  EXPECT_EQ(f.session.set_symbol("i", 1, &f.error), QNL_UNKNOWN_NAME) << "set during runs only";
  EXPECT_EQ(f.session.set_symbol("nothing", 1, &f.error), QNL_UNKNOWN_NAME);
  f.expect_text({"'nothing'", "'batch'", "'bias'"});
}

TEST(Symbols, HugeShapesAreRefused) {
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

TEST(Symbols, AMissingSymbolIsNamed) {
  Fixture f("add");
  ASSERT_EQ(f.set_add_inputs(2, 32), QNL_OK);
  EXPECT_EQ(f.session.run(&f.error), QNL_INPUT_NOT_SET);
  f.expect_text({"'bias'", "has no value"});
}

TEST(Symbols, OutputsHaveNoShapeBeforeInputsDo) {
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

TEST(Symbols, InputsAreFilledInPlaceAfterTheirShapeIsKnown) {
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

TEST(Symbols, SymbolsByNameGiveShapesToInputs) {
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

TEST(Symbols, RequirementsAreForTheNamedCapacity) {
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
}

TEST(Symbols, MemoryGrowsWithShapesAndKeepsValues) {
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

TEST(Symbols, StatesSurviveGrowth) {
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
  options.share_state_with = owner.get();
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

TEST(Symbols, SuppliedMemoryDoesNotGrow) {
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
    f.expect_text({io ? "input and output memory" : "workspace memory", "qnl_session_options::symbols"});
    qnl_symbol_value more = {"batch", 8};
    EXPECT_EQ(f.session.reserve(&more, 1, &f.error), QNL_MEMORY_TOO_SMALL);
    ASSERT_EQ(f.set_add_inputs(1, 32), QNL_OK) << f.error.text;
    EXPECT_EQ(f.session.run(&f.error), QNL_OK) << f.error.text;
    f.session = Session();
  }
}

TEST(Symbols, BoundMemoryIsCheckedAgainstShapes) {
  Fixture f("add");
  ASSERT_EQ(f.session.set_symbol("bias", 0), QNL_OK);
  Floats a(4 * 32, 1.0f), out(64);
  ASSERT_EQ(f.session.bind_input(tensor("a", QNL_F32, {4, 32}, a), &f.error), QNL_OK);
  ASSERT_EQ(f.session.bind_output(tensor("sum", QNL_F32, {-1, -1}, out), &f.error), QNL_OK) << f.error.text;
  Floats b(4 * 32, 2.0f), c(8);
  ASSERT_EQ(f.session.set_input(tensor("b", QNL_F32, {4, 32}, b)), QNL_OK);
  ASSERT_EQ(f.session.set_input(tensor("c", QNL_F32, {8}, c)), QNL_OK);
  EXPECT_EQ(f.session.run(&f.error), QNL_MEMORY_TOO_SMALL);
  f.expect_text({"output 'sum'", "512", "256"});
  out.resize(200);
  ASSERT_EQ(f.session.bind_output(tensor("sum", QNL_F32, {0, 0}, out), &f.error), QNL_OK);
  ASSERT_EQ(f.session.run(&f.error), QNL_OK) << f.error.text;
  EXPECT_EQ(out[127], 7.0f);
  EXPECT_EQ(out[128], 0.0f);
  qnl_tensor shape = tensor("a", QNL_F32, {5, 32}, a);
  EXPECT_EQ(f.session.set_shape(shape, &f.error), QNL_SIZE_MISMATCH) << "the bound memory is smaller";
  // a smaller shape in the same memory
  shape.shape[0] = 2;
  ASSERT_EQ(f.session.set_shape(shape, &f.error), QNL_OK);
  qnl_tensor slot;
  ASSERT_EQ(f.session.tensor(QNL_INPUT, "a", &slot), QNL_OK);
  EXPECT_EQ(slot.data, a.data());
}

TEST(Symbols, AnUnboundSlotHasRoomForTheShape) {
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

TEST(Symbols, NullDeviceChecksEveryRange) {
  Fixture f("add", {}, true);
  ASSERT_EQ(f.session.set_symbol("bias", 0), QNL_OK);
  ASSERT_EQ(f.set_add_inputs(3, 48), QNL_OK);
  ASSERT_EQ(f.session.run(&f.error), QNL_OK) << f.error.text;
  EXPECT_EQ(runtime::null::counts(f.device.get()).submissions, 1u) << "no control flow: one submission";
  EXPECT_EQ(runtime::null::counts(f.device.get()).workgroups, 3u * 9);
}

// ---- bundles that contradict themselves

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

TEST(Symbols, MalformedExpressionsAreRefused) {
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
  std::vector<int64_t> deep, chain = {0, 1};
  for (int i = 0; i < 32; ++i) deep.insert(deep.end(), {0, 1});
  for (int i = 1; i < 32; ++i) deep.insert(deep.end(), {2, 0});
  EXPECT_EQ(with(deep), QNL_OK) << text;
  deep.insert(deep.begin(), {0, 1});
  deep.insert(deep.end(), {2, 0});
  EXPECT_EQ(with(deep), QNL_INVALID_BUNDLE) << "33 values on the stack";
  for (int i = 0; i < 600; ++i) chain.insert(chain.end(), {0, 1, 2, 0});
  EXPECT_EQ(with(chain), QNL_INVALID_BUNDLE) << "too many steps";
}

TEST(Symbols, WrongUsesOfSymbolsAreRefused) {
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
  refused("its maximum", [&](BundleContents& c) { c.symbols[4].max_expression = runtime_expression(c); });
  refused("too many symbols", [&](BundleContents& c) { item(c, 0, 3).symbols = {0}; });
  refused("wrong expression of its size",
          [&](BundleContents& c) { item(c, 0, 3).workgroups_expression = 0; });
  refused("used twice", [&](BundleContents& c) { c.symbols[3].name = "batch"; });
}

// What a bundle cannot say before symbols have values is checked when they have.
TEST(Symbols, RangesThatFollowFromSymbolsAreChecked) {
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
  refused("reaches outside", [&](BundleContents& c) {
    item(c, 0, 3).copy_bytes_expression = add(c, {0, 17});
  });
  refused("'(batch - 3)'", [&](BundleContents& c) {
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

}  // namespace
}  // namespace quernel::test
