// The traps that are about runs, on every device: states, symbols, bindings, refusals, and schedules that
// hold more than kernels.
#include <numeric>

#include "bundle/write_bundle.h"
#include "graph/build.h"
#include "test_bundle.h"
#include "trap_device.h"

namespace quernel::testing {
namespace {

Tensor f32(std::vector<double> values) {
  int64_t count = static_cast<int64_t>(values.size());
  return tensor_of(DType::kF32, {count}, values);
}

std::vector<float> state_of(CompiledGraph& compiled, const char* name) {
  qnl_tensor tensor = {};
  if (compiled.session().tensor(QNL_STATE, name, &tensor) != QNL_OK)
    throw std::runtime_error("no such state");
  const float* data = static_cast<const float*>(tensor.data);
  return {data, data + tensor.bytes / sizeof(float)};
}

qnl_tensor view(const char* name, std::vector<float>& values) {
  return {name,         QNL_F32, 1, {static_cast<int64_t>(values.size())}, values.size() * sizeof(float),
          values.data()};
}

// A copy keeps its value when what was copied is written.
TEST_P(SeedTraps, copy_clone) {
  Expected<CompiledGraph> compiled =
      compile(graph_of("graph @g(%x: f32[3], state %s: f32[3] = {1, 2, 3}) {\n%c = contiguous %s : "
                       "f32[3]\nreturn before = %c, state %s = "
                       "%x\n}"));
  ASSERT_TRUE(compiled) << to_string(compiled.errors());
  expect_equal(run(*compiled, {f32({4, 5, 6})}), {1, 2, 3}, "first run");
  expect_equal(run(*compiled, {f32({7, 8, 9})}), {4, 5, 6}, "second run");
  EXPECT_EQ(state_of(*compiled, "s"), (std::vector<float>{7, 8, 9}));
}

TEST_P(SeedTraps, assign_slice) {
  Expected<CompiledGraph> compiled = compile(graph_of(
      "graph @g(%at: i64[1], %row: f32[1,2], state %s: f32[3,2] = {9 ...}) {\n%n = scatter_rows %s, %at, "
      "%row {0} "
      "set : f32[3,2]\n%t = reduce_sum %n {0} acc f32 : f32[2]\nreturn total = %t, state %s = %n\n}"));
  ASSERT_TRUE(compiled) << to_string(compiled.errors());
  auto step = [&](double at, double a, double b) {
    return run(*compiled, {tensor_of(DType::kI64, {1}, {at}), tensor_of(DType::kF32, {1, 2}, {a, b})});
  };
  expect_equal(step(1, 1, 2), {19, 20}, "row 1");
  EXPECT_EQ(state_of(*compiled, "s"), (std::vector<float>{9, 9, 1, 2, 9, 9}));
  expect_equal(step(-1, 3, 4), {13, 15}, "row -1");
  EXPECT_EQ(state_of(*compiled, "s"), (std::vector<float>{9, 9, 1, 2, 3, 4}));
}

// The new value reads the old one elsewhere.
TEST_P(SeedTraps, assign_alias_input) {
  Expected<CompiledGraph> compiled = compile(
      graph_of("graph @g(state %s: f32[5] = {1, 2, 3, 4, 5}) {\n%f = flip %s {0} : f32[5]\n%y = add %f, %s : "
               "f32[5]\nreturn y = %y, state %s = %f\n}"));
  ASSERT_TRUE(compiled) << to_string(compiled.errors());
  expect_equal(run(*compiled, {}), {6, 6, 6, 6, 6}, "sum");
  EXPECT_EQ(state_of(*compiled, "s"), (std::vector<float>{5, 4, 3, 2, 1}));
  expect_equal(run(*compiled, {}), {6, 6, 6, 6, 6}, "sum");
  EXPECT_EQ(state_of(*compiled, "s"), (std::vector<float>{1, 2, 3, 4, 5}));
}

TEST_P(SeedTraps, inplace_argument_slots) {
  Expected<CompiledGraph> compiled = compile(graph_of(
      "graph @g(%x: f32[3], state %s: f32[3] = {1, 2, 3}) {\n%a = mul %s, %x : f32[3]\n%b = add %a, %s : "
      "f32[3]\n%y = sub %b, %x : f32[3]\nreturn y = %y, state %s = %b\n}"));
  ASSERT_TRUE(compiled) << to_string(compiled.errors());
  expect_equal(run(*compiled, {f32({2, 3, 4})}), {1, 5, 11}, "s x + s - x");
  EXPECT_EQ(state_of(*compiled, "s"), (std::vector<float>{3, 8, 15}));
  expect_equal(run(*compiled, {f32({1, 0, -1})}), {5, 8, 1}, "s x + s - x");
}

TEST_P(SeedTraps, define_var_runtime) {
  Expected<CompiledGraph> compiled = compile(graph_of(
      "symbol n min=1 max=100\ngraph @g(%x: f32[n]) {\n%y = add %x, %x : f32[n]\n%d = dims [n, (n * 3)] : "
      "i64[2]\nreturn y = %y, d = %d\n}"));
  ASSERT_TRUE(compiled) << to_string(compiled.errors());
  for (int n : {1, 7, 100}) {
    std::vector<double> x(static_cast<size_t>(n), 2), wanted(static_cast<size_t>(n), 4);
    wanted.insert(wanted.end(), {static_cast<double>(n), static_cast<double>(3 * n)});
    expect_equal(run(*compiled, {f32(x)}), wanted, std::to_string(n));
  }
  std::vector<float> many(101);
  EXPECT_EQ(compiled->session().set_input(view("x", many)), QNL_SYMBOL_OUT_OF_RANGE);
}

TEST_P(SeedTraps, bind_undeclared) {
  Expected<Graph> undeclared = parse_graph("graph @g(%x: f32[k]) {\nreturn y = %x\n}");
  ASSERT_FALSE(undeclared);
  EXPECT_NE(to_string(undeclared.errors()).find("k"), std::string::npos) << to_string(undeclared.errors());
  // Declared, but of no input's shape: set by name, or refused before anything runs.
  Expected<CompiledGraph> compiled = compile(graph_of(
      "symbol k min=0 max=9\ngraph @g(%x: i64[1]) {\n%d = dims [k] : i64[1]\n%y = add %x, %d : i64[1]\n"
      "return y = %y\n}"));
  ASSERT_TRUE(compiled) << to_string(compiled.errors());
  Tensor x = tensor_of(DType::kI64, {1}, {30});
  Expected<std::vector<Tensor>> unset = compiled->run({x});
  ASSERT_FALSE(unset);
  EXPECT_NE(to_string(unset.errors()).find("'k'"), std::string::npos) << to_string(unset.errors());
  ASSERT_EQ(compiled->session().set_symbol("k", 5), QNL_OK);
  expect_equal(run(*compiled, {x}), {35}, "k = 5");
  EXPECT_EQ(compiled->session().set_symbol("k", 10), QNL_SYMBOL_OUT_OF_RANGE);
}

TEST_P(SeedTraps, symbol_nested) {
  Expected<CompiledGraph> compiled = compile(graph_of(
      "symbol n min=1 max=8\ngraph @g(%x: f32[((n * 2) + 1)], %z: f32[n]) {\n%y = neg %x : f32[((n * 2) + "
      "1)]\nreturn y = %y\n}"));
  ASSERT_TRUE(compiled) << to_string(compiled.errors());
  expect_equal(run(*compiled, {f32({1, 2, 3, 4, 5, 6, 7}), f32({0, 0, 0})}), {-1, -2, -3, -4, -5, -6, -7},
               "n = 3");
  EXPECT_FALSE(compiled->run({f32({1, 2, 3, 4, 5, 6}), f32({0, 0, 0})})) << "n = 3 makes 7, not 6";
}

// Memory of the caller's buffer from an offset on, and what is not aligned.
TEST_P(SeedTraps, buffer_view_offset) {
  Expected<CompiledGraph> compiled = compile(graph_of(
      "graph @g(%x: f32[9]) {\n%v = slice %x [4:9] : f32[5]\n%y = add %v, %v : f32[5]\nreturn y = %y\n}"));
  ASSERT_TRUE(compiled) << to_string(compiled.errors());
  std::vector<float> buffer(20);
  std::iota(buffer.begin(), buffer.end(), 0);
  qnl_tensor x = {"x", QNL_F32, 1, {9}, 36, buffer.data() + 3};
  ASSERT_EQ(compiled->session().bind_input(x), QNL_OK);
  ASSERT_EQ(compiled->session().run(), QNL_OK);
  qnl_tensor y = {};
  ASSERT_EQ(compiled->session().tensor(QNL_OUTPUT, "y", &y), QNL_OK);
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(static_cast<const float*>(y.data)[i], 2.0f * static_cast<float>(i + 7));
  x.data = reinterpret_cast<char*>(buffer.data()) + 1;
  EXPECT_EQ(compiled->session().bind_input(x), QNL_MISALIGNED);
}

class SmallSum {
 public:
  static Graph graph() {
    return std::move(
        *parse_graph("graph @g(%a: f32[4], %b: f32[4]) {\n%y = add %a, %b : f32[4]\nreturn y = %y\n}"));
  }
};

TEST_P(SeedTraps, missing_input) {
  Expected<CompiledGraph> compiled = compile(SmallSum::graph());
  ASSERT_TRUE(compiled) << to_string(compiled.errors());
  std::vector<float> a{1, 2, 3, 4};
  ASSERT_EQ(compiled->session().set_input(view("a", a)), QNL_OK);
  qnl_error error = {};
  EXPECT_EQ(compiled->session().run(&error), QNL_INPUT_NOT_SET);
  EXPECT_STREQ(error.text, "input 'b': not set before the run");
}

TEST_P(SeedTraps, wrong_dtype) {
  Expected<CompiledGraph> compiled = compile(SmallSum::graph());
  ASSERT_TRUE(compiled) << to_string(compiled.errors());
  std::vector<float> a{1, 2, 3, 4};
  qnl_tensor tensor = view("a", a);
  tensor.dtype = QNL_I32;
  qnl_error error = {};
  EXPECT_EQ(compiled->session().set_input(tensor, &error), QNL_DTYPE_MISMATCH);
  EXPECT_STREQ(error.text, "input 'a': expected f32[4], found i32[4]");
  EXPECT_EQ(compiled->session().bind_input(tensor), QNL_DTYPE_MISMATCH);
  tensor.name = "y";
  EXPECT_EQ(compiled->session().bind_output(tensor), QNL_DTYPE_MISMATCH);
}

TEST_P(SeedTraps, short_buffer) {
  Expected<CompiledGraph> compiled = compile(SmallSum::graph());
  ASSERT_TRUE(compiled) << to_string(compiled.errors());
  std::vector<float> a{1, 2, 3, 4};
  qnl_tensor tensor = view("a", a);
  tensor.bytes = 12;
  EXPECT_EQ(compiled->session().set_input(tensor), QNL_SIZE_MISMATCH);
  EXPECT_EQ(compiled->session().bind_input(tensor), QNL_SIZE_MISMATCH);
  tensor.name = "y";
  EXPECT_EQ(compiled->session().bind_output(tensor), QNL_SIZE_MISMATCH);
  tensor.shape[0] = 3;
  EXPECT_EQ(compiled->session().bind_output(tensor), QNL_SHAPE_MISMATCH);
}

TEST_P(SeedTraps, unproduced_output) {
  Expected<Graph> graph = parse_graph("graph @g(%x: f32[4]) {\nreturn y = %y\n}");
  ASSERT_FALSE(graph);
  EXPECT_NE(to_string(graph.errors()).find("value '%y' is not defined"), std::string::npos);
  Graph without = SmallSum::graph();
  without.outputs.push_back({"z", kNoValue});
  EXPECT_FALSE(compile(without));
}

TEST_P(SeedTraps, cycle_in_schedule) {
  Expected<Graph> graph =
      parse_graph("graph @g(%x: f32[4]) {\n%a = add %b, %x : f32[4]\n%b = neg %a : f32[4]\nreturn y = %b\n}");
  ASSERT_FALSE(graph);
  EXPECT_NE(to_string(graph.errors()).find("value '%b' is not defined before this line"), std::string::npos);
  bundle::BundleContents contents = test::test_contents();
  contents.entry_points[0].plans[0].items[0].edges.push_back({1, bundle::EdgeKind::kRaw});
  char path[] = "/tmp/quernel-cycle";
  Expected<bundle::BundleSizes> sizes = bundle::write_bundle(contents, path);
  ASSERT_FALSE(sizes);
  EXPECT_NE(to_string(sizes.errors()).find("edge to an item that is not earlier"), std::string::npos);
}

int32_t note(void* user, void* const* bindings, const uint64_t*, uint32_t) {
  const auto* values = static_cast<const int32_t*>(bindings[0]);
  static_cast<std::vector<int32_t>*>(user)->assign(values, values + 24);
  return 0;
}

// A strided copy, a synchronisation and a callback of the host, all of which are executed.
TEST_P(SeedTraps, non_kernel_items) {
  test::AlignedBytes bytes(test::bundle_bytes(test::test_contents()));
  Bundle bundle;
  Device device;
  Session session;
  ASSERT_EQ(bundle.open(bytes.data(), bytes.size()), QNL_OK);
  ASSERT_EQ(device.open_cpu(GetParam().threads), QNL_OK);
  qnl_session_options options = {};
  options.entry_point = "extras";
  ASSERT_EQ(session.create(bundle, device, &options), QNL_OK);
  std::vector<int32_t> in(24), seen;
  std::iota(in.begin(), in.end(), 0);
  ASSERT_EQ(session.set_input(test::tensor("in", QNL_I32, {4, 6}, in)), QNL_OK);
  EXPECT_EQ(session.run(), QNL_CALLBACK_MISSING);
  ASSERT_EQ(qnl_session_set_callback(session.get(), "notify", note, &seen, nullptr), QNL_OK);
  ASSERT_EQ(session.run(), QNL_OK);
  for (int r = 0; r < 4; ++r)
    for (int c = 0; c < 6; ++c) EXPECT_EQ(seen[c * 4 + r], in[r * 6 + c]);
}

// A kernel that somebody else has compiled: it gets its whole operands and writes whole results, before and
// after kernels of ours.
TEST_P(SeedTraps, kernel_prebuilt) {
  Graph graph = graph_of(R"(symbol n min=1
graph @g(%x: f32[n,3]) {
  %d = add %x, %x : f32[n,3]
  %t = custom %d "trap::Turn" "A" gives f32[3,n], f32[n]
  %y = result %t {0} : f32[3,n]
  %s = result %t {1} : f32[n]
  %m = neg %y : f32[3,n]
  return m = %m, s = %s
})");
  CustomOpDescription op;
  op.name = "trap::Turn";
  op.kernels = {{host_targets()[0], PREBUILT_KERNEL, "trap_turn"}};
  CompileOptions options;
  options.targets = {GetParam().target};
  options.custom_ops = {op};
  Expected<CompiledGraph> compiled = CompiledGraph::make(graph, options, GetParam().threads);
  ASSERT_TRUE(compiled) << to_string(compiled.errors());
  expect_equal(run(*compiled, {tensor_of(DType::kF32, {2, 3}, {1, 2, 3, 4, 5, 6})}),
               {-4, -17, -8, -21, -12, -25, 65 + 12, 65 + 30}, "two rows");
  std::vector<double> x(300), wanted(300);
  for (int r = 0; r < 100; ++r)
    for (int c = 0; c < 3; ++c) x[r * 3 + c] = r - c, wanted[c * 100 + r] = -4 * (r - c) - r;
  for (int r = 0; r < 100; ++r) wanted.push_back(65 + 6 * (r - 1));
  expect_equal(run(*compiled, {tensor_of(DType::kF32, {100, 3}, x)}), wanted, "a hundred rows");
}

// Chains of whole-tensor reads, whose slots are used again while other kernels still run.
TEST_P(SeedTraps, war_hazard_reused_slot) {
  Graph graph;
  GraphBuilder build(graph);
  constexpr int64_t kSize = 40000;
  ValueId v = graph.add_input("x", {DType::kI32, {kSize}});
  for (int i = 0; i < 10; ++i) {
    ValueId sum = build.scan(OpKind::k_scan_sum, v, 0, false, i % 2 == 1);
    ValueId turned = build.flip(build.add(OpKind::k_contiguous, {v}), {0});
    v = build.binary(BinaryOp::k_xor, sum, turned);
  }
  graph.outputs.push_back({"y", v});
  std::vector<double> x(kSize);
  std::iota(x.begin(), x.end(), -7);
  std::vector<int32_t> wanted(x.begin(), x.end());
  for (int i = 0; i < 10; ++i) {
    std::vector<int32_t> sum = wanted;
    bool back = i % 2 == 1;
    for (size_t k = 1; k < sum.size(); ++k) {
      size_t at = back ? sum.size() - 1 - k : k, from = back ? at + 1 : at - 1;
      sum[at] = static_cast<int32_t>(static_cast<uint32_t>(sum[at]) + static_cast<uint32_t>(sum[from]));
    }
    for (size_t k = 0; k < sum.size(); ++k) sum[k] ^= wanted[wanted.size() - 1 - k];
    wanted = sum;
  }
  Expected<CompiledGraph> compiled = compile(graph);
  ASSERT_TRUE(compiled) << to_string(compiled.errors());
  Tensor input = tensor_of(DType::kI32, {kSize}, x);
  std::vector<double> all(wanted.begin(), wanted.end());
  for (int r = 0; r < 20; ++r) expect_equal(run(*compiled, {input}), all, "run " + std::to_string(r));
}

}  // namespace
}  // namespace quernel::testing
