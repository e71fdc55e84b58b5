// Graphs that earlier backends computed wrongly, on every device: what each op must give.
// seed_traps_runs_test.cpp has those about runs: states, symbols, bindings, refusals.
#include <numeric>

#include "graph/build.h"
#include "trap_device.h"

namespace quernel::testing {
namespace {

constexpr double kInf = INFINITY;
const std::string kSix = "%x = constant f32[2,3] {1, 2, 3, 4, 5, 6}\n";

TEST_P(SeedTraps, fused_chain) {
  expect(
      "%x = constant f32[3] {1, 2, 3}\n%1 = add %x, %x : f32[3]\n%2 = mul %1, %x : f32[3]\n%3 = neg %2 : "
      "f32[3]\n"
      "return y = %3",
      {-2, -8, -18});
}

TEST_P(SeedTraps, const_operand) {
  Graph graph = graph_of(
      "graph @g(%x: f32[4]) {\n%c = constant f32[4] {0.1, 16777217, inf, nan}\n%s = constant f32[] {0.1}\n"
      "%r = reshape %s : f32[1]\n%e = expand %r : f32[4]\n%y = add %x, %c : f32[4]\n%z = mul %x, %e : "
      "f32[4]\n"
      "return y = %y, z = %z\n}");
  double tenth = 0.100000001490116119384765625;
  expect_equal(run(graph, {tensor_of(DType::kF32, {4}, {0, 0, 1, 1})}),
               {tenth, 16777216, kInf, NAN, 0, 0, tenth, tenth}, "constants");
}

TEST_P(SeedTraps, compare_then_select) {
  expect(
      "%a = constant f32[3] {0.25, 0.5, 3}\n%b = constant f32[3] {0.5, 0.25, 4}\n%c = lt %a, %b : bool[3]\n"
      "%y = where %c, %a, %b : f32[3]\nreturn y = %y",
      {0.25, 0.25, 3});
}

TEST_P(SeedTraps, vconst_data) {
  expect(
      "%x = constant i16[5] {1, -2, 3, -32768, 32767}\n%z = constant i16[5] {1, -2, 3, -32768, 32767}\n"
      "%y = bit_not %x : i16[5]\nreturn y = %y, z = %z",
      {-2, 1, -4, 32767, -32768, 1, -2, 3, -32768, 32767});
}

TEST_P(SeedTraps, view_strided) {
  expect(kSix + "%y = view %x [d1, 2*d0] : f32[2,2]\nreturn y = %y", {1, 4, 3, 6});
  expect("%x = constant f32[5] {1, 2, 3, 4, 5}\n%y = view %x [2*d0 + d1] : f32[2,3]\nreturn y = %y",
         {1, 2, 3, 3, 4, 5});
}

TEST_P(SeedTraps, view_masked) {
  expect(
      "%x = constant i32[3] {1, 2, 3}\n%y = view %x [d0 + -1] if 0 <= d0 + -1 < 3 fill -9 : i32[5]\nreturn y "
      "= %y",
      {-9, 1, 2, 3, -9});
}

TEST_P(SeedTraps, index_gated) {
  expect(kSix +
             "%y = view %x [d0, d1 + d2 + -1] if 0 <= d1 + d2 + -1 < 3, 1 <= d0 < 2 fill 0 : "
             "f32[2,2,2]\nreturn y = %y",
         {0, 0, 0, 0, 0, 4, 4, 5});
}

TEST_P(SeedTraps, reshape_noncontiguous) {
  expect(kSix + "%1 = permute %x {1, 0} : f32[3,2]\n%y = reshape %1 : f32[6]\nreturn y = %y",
         {1, 4, 2, 5, 3, 6});
}

TEST_P(SeedTraps, permute_contiguous) {
  expect(kSix + "%1 = permute %x {1, 0} : f32[3,2]\n%y = add %1, %1 : f32[3,2]\nreturn y = %y",
         {2, 8, 4, 10, 6, 12});
}

TEST_P(SeedTraps, expand_read) {
  expect("%x = constant f32[1,2] {1, 2}\n%y = expand %x : f32[3,2]\nreturn y = %y", {1, 2, 1, 2, 1, 2});
  expect("%x = constant f32[2,1] {1, 2}\n%y = expand %x : f32[2,3]\nreturn y = %y", {1, 1, 1, 2, 2, 2});
}

TEST_P(SeedTraps, shrink_offset) {
  expect(kSix + "%y = slice %x [1:2, 1:3] : f32[1,2]\nreturn y = %y", {5, 6});
  expect(kSix + "%y = slice %x [0:2, 0:3:2] : f32[2,2]\nreturn y = %y", {1, 3, 4, 6});
  expect(kSix + "%y = slice %x [0:2, 1:1] : f32[2,0]\nreturn y = %y", {});
}

TEST_P(SeedTraps, flip_negative_stride) {
  expect(kSix + "%y = flip %x {1} : f32[2,3]\nreturn y = %y", {3, 2, 1, 6, 5, 4});
  expect(kSix + "%y = flip %x {0, 1} : f32[2,3]\nreturn y = %y", {6, 5, 4, 3, 2, 1});
}

TEST_P(SeedTraps, pad_fill) {
  expect(kSix + "%y = pad %x [0:1, 1:0] fill -inf : f32[3,4]\nreturn y = %y",
         {-kInf, 1, 2, 3, -kInf, 4, 5, 6, -kInf, -kInf, -kInf, -kInf});
}

TEST_P(SeedTraps, reduce_axis_subset) {
  const std::string cube = "%x = constant f32[2,2,2] {1, 2, 3, 4, 5, 6, 7, 8}\n";
  struct Row {
    const char *axes, *dropped, *kept;
    std::vector<double> sums;
  };
  for (const Row& row : std::vector<Row>{{"{}", "[2,2,2]", "[2,2,2]", {1, 2, 3, 4, 5, 6, 7, 8}},
                                         {"{0}", "[2,2]", "[1,2,2]", {6, 8, 10, 12}},
                                         {"{1}", "[2,2]", "[2,1,2]", {4, 6, 12, 14}},
                                         {"{2}", "[2,2]", "[2,2,1]", {3, 7, 11, 15}},
                                         {"{0, 1}", "[2]", "[1,1,2]", {16, 20}},
                                         {"{0, 2}", "[2]", "[1,2,1]", {14, 22}},
                                         {"{1, 2}", "[2]", "[2,1,1]", {10, 26}},
                                         {"{0, 1, 2}", "[]", "[1,1,1]", {36}}}) {
    std::string op = cube + "%y = reduce_sum %x " + row.axes;
    expect(op + " acc f32 : f32" + row.dropped + "\nreturn y = %y", row.sums);
    expect(op + " keepdims acc f32 : f32" + row.kept + "\nreturn y = %y", row.sums);
  }
}

TEST_P(SeedTraps, reduce_identities) {
  auto reduce = [&](const std::string& x, const std::string& op, const std::string& type, double wanted) {
    expect("%x = constant " + x + "\n%y = " + op + " %x {0} : " + type + "\nreturn y = %y", {wanted});
  };
  reduce("i32[2] {-5, -3}", "reduce_max", "i32[]", -3);
  reduce("bool[2] {false, false}", "reduce_max", "bool[]", 0);
  reduce("bool[2] {true, true}", "reduce_min", "bool[]", 1);
  reduce("i32[0] {}", "reduce_max", "i32[]", -2147483648.0);
  reduce("u8[0] {}", "reduce_min", "u8[]", 255);
  reduce("i8[0] {}", "reduce_min", "i8[]", 127);
  reduce("f32[0] {}", "reduce_max", "f32[]", -kInf);
  reduce("bool[0] {}", "reduce_and", "bool[]", 1);
  reduce("bool[0] {}", "reduce_or", "bool[]", 0);
}

// Lanes taken out of vectors and put into them: every second element, and two vectors element by element.
TEST_P(SeedTraps, gep_vectorize) {
  std::vector<double> a(67), b(67), even, mixed;
  std::iota(a.begin(), a.end(), 0);
  std::iota(b.begin(), b.end(), 1000);
  for (size_t i = 0; i < a.size(); ++i) {
    if (i % 2 == 0) even.push_back(a[i]);
    mixed.insert(mixed.end(), {a[i], b[i]});
  }
  Graph graph = graph_of(
      "graph @g(%a: f32[67], %b: f32[67]) {\n%1 = slice %a [0:67:2] : f32[34]\n%c = reshape %a : f32[67,1]\n"
      "%d = reshape %b : f32[67,1]\n%m = cat %c, %d {1} : f32[67,2]\n%y = reshape %m : f32[134]\n"
      "return e = %1, y = %y\n}");
  even.insert(even.end(), mixed.begin(), mixed.end());
  expect_equal(run(graph, {tensor_of(DType::kF32, {67}, a), tensor_of(DType::kF32, {67}, b)}), even, "lanes");
}

// Products of the sizes that matrix units have, and of ragged ones.
TEST_P(SeedTraps, wmma_tile) {
  struct Kind {
    const char *dtype, *accumulator, *result;
    DType type;
  };
  for (const Kind& kind : {Kind{"f16", "f32", "f16", DType::kF16}, Kind{"bf16", "f32", "bf16", DType::kBF16},
                           Kind{"i8", "i32", "i32", DType::kI8}, Kind{"f32", "f32", "f32", DType::kF32}})
    for (int n : {16, 17}) {
      std::vector<double> a, b, wanted;
      for (int i = 0; i < n * n; ++i) a.push_back(i * 5 % 7 - 3), b.push_back(i * 3 % 5 - 2);
      for (int i = 0; i < n; ++i)
        for (int j = 0; j < n; ++j) {
          double sum = 0;
          for (int k = 0; k < n; ++k) sum += a[i * n + k] * b[k * n + j];
          wanted.push_back(sum);
        }
      std::string size = std::to_string(n), type = "[" + size + "," + size + "]";
      Graph graph = graph_of(std::string("graph @g(%a: ") + kind.dtype + type + ", %b: " + kind.dtype + type +
                             ") {\n%y = contract %a, %b axes(m: " + size + ", n: " + size + " | k: " + size +
                             ") a[m, k] b[k, n] out[m, n] acc " + kind.accumulator + " : " + kind.result +
                             type + "\nreturn y = %y\n}");
      expect_equal(run(graph, {tensor_of(kind.type, {n, n}, a), tensor_of(kind.type, {n, n}, b)}), wanted,
                   kind.dtype + type);
    }
}

TEST_P(SeedTraps, cast_values) {
  auto cast = [&](const std::string& x, const std::string& type, const std::vector<double>& wanted) {
    expect("%x = constant " + x + "\n%y = cast %x : " + type + "\nreturn y = %y", wanted);
  };
  cast("f32[7] {1.9, -1.9, nan, 3e9, -3e9, inf, -inf}", "i32[7]",
       {1, -1, 0, 2147483647, -2147483648.0, 2147483647, -2147483648.0});
  cast("f32[4] {-1, 255.9, 256, nan}", "u8[4]", {0, 255, 255, 0});
  cast("f32[3] {0, -0.5, nan}", "bool[3]", {0, 1, 1});
  cast("i32[3] {300, -1, 128}", "i8[3]", {44, -1, -128});
  cast("i32[2] {16777217, -16777219}", "f32[2]", {16777216, -16777220});
  cast("u64[1] {18446744073709551615}", "f64[1]", {18446744073709551616.0});
  cast("f32[5] {65504, 65520, 1e-8, 2049, 1.00048828125}", "f16[5]", {65504, kInf, 0, 2048, 1});
  cast("f32[2] {257, 3.0e38}", "bf16[2]", {256, 0x1.c4p+127});
  cast("f64[2] {1e300, 5e-324}", "i64[2]", {9223372036854775807.0, 0});
  cast("f32[5] {448, 1000, 0.0625, -inf, 1.0625}", "f8e4m3[5]", {448, 448, 0.0625, -448, 1});
}

TEST_P(SeedTraps, bitcast_resize) {
  expect("%x = constant u8[2,4] {1, 0, 0, 0, 255, 255, 255, 127}\n%y = bitcast %x : u32[2,1]\nreturn y = %y",
         {1, 2147483647});
  expect("%x = constant f32[1] {1}\n%y = bitcast %x : u8[4]\nreturn y = %y", {0, 0, 128, 63});
  expect("%x = constant f32[] {-0.0}\n%y = bitcast %x : i32[]\nreturn y = %y", {-2147483648.0});
}

TEST_P(SeedTraps, contiguous_after_permute) {
  expect(kSix + "%1 = permute %x {1, 0} : f32[3,2]\n%y = contiguous %1 : f32[3,2]\nreturn y = %y",
         {1, 4, 2, 5, 3, 6});
}

// Whether the tile divides the sizes or not: unrolling changes no result.
TEST_P(SeedTraps, unroll_balanced) {
  for (int k = 1; k <= 9; ++k) {
    std::vector<double> a, b, wanted;
    for (int i = 0; i < 5 * k; ++i) a.push_back(i % 4 - 1);
    for (int i = 0; i < k * 7; ++i) b.push_back(i % 3 - 1);
    for (int i = 0; i < 5; ++i)
      for (int j = 0; j < 7; ++j) {
        double sum = 0;
        for (int r = 0; r < k; ++r) sum += a[i * k + r] * b[r * 7 + j];
        wanted.push_back(sum);
      }
    std::string n = std::to_string(k);
    Graph graph = graph_of("graph @g(%a: f32[5," + n + "], %b: f32[" + n +
                           ",7]) {\n%y = contract %a, %b axes(m: 5, n: 7 | k: " + n +
                           ") a[m, k] b[k, n] out[m, n] acc f32 : f32[5,7]\nreturn y = %y\n}");
    expect_equal(run(graph, {tensor_of(DType::kF32, {5, k}, a), tensor_of(DType::kF32, {k, 7}, b)}), wanted,
                 n);
  }
}

TEST_P(SeedTraps, contract_matmul) {
  expect(
      "%a = constant f32[2,3] {1, 2, 3, 4, 5, 6}\n%b = constant f32[3,2] {1, 2, 3, 4, 5, 6}\n"
      "%y = contract %a, %b axes(m: 2, n: 2 | k: 3) a[m, k] b[k, n] out[m, n] acc f32 : f32[2,2]\nreturn y = "
      "%y",
      {22, 28, 49, 64});
}

TEST_P(SeedTraps, cat_three_inputs) {
  std::string parts =
      "%a = constant f32[1,2] {1, 2}\n%b = constant f32[1,2] {3, 4}\n%c = constant f32[1,2] {5, 6}\n";
  expect(parts + "%y = cat %a, %b, %c {0} : f32[3,2]\nreturn y = %y", {1, 2, 3, 4, 5, 6});
  expect(parts + "%y = cat %a, %b, %c {1} : f32[1,6]\nreturn y = %y", {1, 2, 3, 4, 5, 6});
}

TEST_P(SeedTraps, threefry_known_answers) {
  // Word 0 is the low half; the words of each answer.
  expect(
      "%k = constant u64[3] {0, 18446744073709551615, 247824715720788526}\n"
      "%c = constant u64[3] {0, 18446744073709551615, 9629550131187509896}\n%r = threefry2x32 %k, %c : "
      "u64[3]\n"
      "%y = bitcast %r : u32[6]\nreturn y = %y",
      {0x6b200159, 0x99ba4efe, 0x1cb996fc, 0xbb002be7, 0xc4923a9c, 0x483df7a0});
}

TEST_P(SeedTraps, gather_both_conventions) {
  std::string x = "%x = constant f32[3,2] {1, 2, 3, 4, 5, 6}\n";
  expect(x + "%i = constant i64[2] {2, 0}\n%y = take %x, %i {0} : f32[2,2]\nreturn y = %y", {5, 6, 1, 2});
  expect(x + "%i = constant i64[1,2] {2, 0}\n%y = gather_elements %x, %i {0} : f32[1,2]\nreturn y = %y",
         {5, 2});
}

TEST_P(SeedTraps, scatter_set_add_duplicates) {
  auto scatter = [&](const std::string& mode, const std::vector<double>& wanted) {
    expect(
        "%x = constant f32[3] {1, 2, 3}\n%i = constant i64[4] {1, 1, 0, 1}\n%u = constant f32[4] {10, 20, "
        "30, 40}\n"
        "%y = scatter_elements %x, %i, %u {0} " +
            mode + " : f32[3]\nreturn y = %y",
        wanted);
  };
  scatter("set", {30, 40, 3});
  scatter("add", {31, 72, 3});
  scatter("mul", {30, 16000, 3});
  scatter("max", {30, 40, 3});
  scatter("min", {1, 2, 3});
}

TEST_P(SeedTraps, noop_passthrough) {
  Graph graph = graph_of("graph @g(%x: f32[2]) {\nreturn y = %x, z = %x\n}");
  expect_equal(run(graph, {tensor_of(DType::kF32, {2}, {1, 2})}), {1, 2, 1, 2}, "the input itself");
}

TEST_P(SeedTraps, many_buffers) {
  Graph graph;
  GraphBuilder build(graph);
  std::vector<Tensor> inputs;
  std::vector<double> wanted(19, 0);
  ValueId sum = kNoValue;
  for (int i = 0; i < 24; ++i) {
    std::vector<double> values;
    for (int j = 0; j < 19; ++j) values.push_back(i * 19 + j), wanted[j] += values.back();
    inputs.push_back(tensor_of(DType::kF32, {19}, values));
    ValueId x = graph.add_input("x" + std::to_string(i), {DType::kF32, {19}});
    sum = i == 0 ? x : build.binary(BinaryOp::k_add, sum, x);
    graph.outputs.push_back({"y" + std::to_string(i), sum});
  }
  std::vector<double> found = run(graph, inputs);
  ASSERT_EQ(found.size(), 24u * 19);
  expect_equal({found.end() - 19, found.end()}, wanted, "24 inputs and 24 outputs");
}

TEST_P(SeedTraps, tail_guard) {
  expect("%x = constant f32[1027] {2 ...}\n%y = mul %x, %x : f32[1027]\nreturn y = %y",
         std::vector<double>(1027, 4));
  expect("%x = constant f32[] {3}\n%y = mul %x, %x : f32[]\nreturn y = %y", {9});
  expect("%x = constant f32[2,0] {}\n%y = exp %x : f32[2,0]\nreturn y = %y", {});
}

// Around the sizes at which a grid gets another workgroup: every element once, nothing behind the last.
TEST_P(SeedTraps, grid_units) {
  for (int64_t n : {1, 15, 16, 63, 64, 65, 127, 128, 129, 1023, 1025, 4097, 70001, 300007}) {
    std::string type = "i32[" + std::to_string(n) + "]";
    Graph graph = graph_of("graph @g(%x: " + type + ") {\n%y = add %x, %x : " + type + "\nreturn y = %y\n}");
    Expected<CompiledGraph> compiled = compile(graph);
    ASSERT_TRUE(compiled) << to_string(compiled.errors());
    std::vector<int32_t> x(static_cast<size_t>(n)), y(static_cast<size_t>(n) + 64, -7);
    std::iota(x.begin(), x.end(), 1);
    qnl_tensor tensor = {"x", QNL_I32, 1, {n}, static_cast<uint64_t>(n) * 4, x.data()};
    ASSERT_EQ(compiled->session().set_input(tensor), QNL_OK);
    tensor = {"y", QNL_I32, 1, {n}, static_cast<uint64_t>(n) * 4, y.data()};
    ASSERT_EQ(compiled->session().bind_output(tensor), QNL_OK);
    ASSERT_EQ(compiled->session().run(), QNL_OK);
    for (size_t i = 0; i < y.size(); ++i)
      ASSERT_EQ(y[i], i < x.size() ? 2 * x[i] : -7) << n << ", element " << i;
  }
}

TEST_P(SeedTraps, deep_chain) {
  Graph graph;
  GraphBuilder build(graph);
  ValueId v = graph.add_input("x", {DType::kI32, {33}});
  for (int i = 0; i < 2000; ++i) v = i % 2 ? build.flip(v, {0}) : build.binary(BinaryOp::k_add, v, 1.0);
  graph.outputs.push_back({"y", v});
  std::vector<double> x(33), wanted(33);
  std::iota(x.begin(), x.end(), 0);
  std::iota(wanted.begin(), wanted.end(), 1000);
  expect_equal(run(graph, {tensor_of(DType::kI32, {33}, x)}), wanted, "2000 nodes");
}

INSTANTIATE_TEST_SUITE_P(Devices, SeedTraps, ::testing::ValuesIn(devices()), device_name);

}  // namespace
}  // namespace quernel::testing
