// Reductions across the invocations of a workgroup, in its memory and by its subgroups, on the machine's
// Vulkan device against the interpreter: lengths around those of subgroups and workgroups, all dtypes, NaNs
// and infinities at many places.
#include <algorithm>
#include <cmath>
#include <limits>

#include "on_vulkan.h"
#include "pipeline/pipeline.h"
#include "schemas/kernel_abi.h"
#include "shader_text.h"

namespace quernel::testing {
namespace {

constexpr int64_t kRows = 7;

Graph parsed(const std::string& text) {
  Expected<Graph> graph = parse_graph(text, "test");
  EXPECT_TRUE(graph) << to_string(graph.errors()) << text;
  return *graph;
}

class VulkanReduce : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    std::string why;
    if (!has_device(&why)) GTEST_SKIP() << why;
    options_.targets = {GetParam()};
    if (GetParam() != "vulkan" && !has_features(QNL_SPIRV_SUBGROUPS))
      GTEST_SKIP() << "the device has no subgroup operations";
  }

  // Runs the graph twice with each of `inputs`. It is compiled once: the driver takes most of the time.
  void compare(const Graph& graph, const std::vector<Tensor>& inputs, double rtol, double atol,
               const std::string& what) {
    qnl_vulkan_options vulkan = {};
    Expected<CompiledGraph> compiled = CompiledGraph::make(graph, options_, 1, {}, &vulkan);
    ASSERT_TRUE(compiled) << what << to_string(compiled.errors());
    for (const Tensor& input : inputs) {
      Expected<std::vector<Tensor>> want = interpret(graph, {input});
      ASSERT_TRUE(want) << to_string(want.errors());
      for (int run = 0; run < 2; ++run) {
        Expected<std::vector<Tensor>> got = compiled->run({input});
        ASSERT_TRUE(got) << what << to_string(got.errors());
        for (size_t i = 0; i < want->size(); ++i)
          EXPECT_EQ(difference((*got)[i], (*want)[i], rtol, atol), "")
              << what << ", output " << graph.outputs[i].name << ", input " << &input - inputs.data();
      }
    }
  }

  // Those of subgroups are of no consequence without them. Floats of 32 bits are reduced with all lengths, other dtypes
  // with rows shorter and longer than a workgroup.
  static std::vector<int64_t> lengths(DType dtype = DType::kF32) {
    const bool in_memory = GetParam() == "vulkan";
    if (dtype != DType::kF32)
      return in_memory ? std::vector<int64_t>{9, 260} : std::vector<int64_t>{9, 65, 260};
    if (in_memory) return {33, 64, 129, 515};
    return {2, 5, 8, 9, 31, 33, 63, 64, 65, 96, 127, 129, 260, 515, 1000, 2100};
  }

  CompileOptions options_;
};

// Row r of a float tensor: 0 and 1 are numbers, the others have infinities and NaNs at places that move with
// r.
Tensor values(DType dtype, int64_t length, bool special) {
  int64_t n = kRows * length;
  std::vector<uint8_t> bytes(static_cast<size_t>(byte_size(dtype, n)));
  for (int64_t i = 0; i < n; ++i) {
    int64_t r = i / length, c = i % length;
    if (!is_float(dtype)) {
      store_i64(dtype, bytes.data(), i,
                dtype == DType::kBool ? (r < 3 ? c % 5 != r : r % 2) : i * 7919 % 251 - 120);
      continue;
    }
    // Products of all of them are still numbers.
    double x = (i * 7919 % 2003 < 1001 ? -1 : 1) + static_cast<double>(i * 6007 % 2011 - 1005) / 5000;
    bool here = c == (r * 37) % length, there = c == (r * 53 + length / 2) % length;
    constexpr double kInf = std::numeric_limits<double>::infinity();
    if (special && (r == 2 || r == 4) && here) x = kInf;
    if (special && (r == 3 || r == 4) && there) x = -kInf;
    if (special && r == 5 && here) x = std::nan("");
    if (special && r == 6) x = there ? -std::nan("") : -kInf;
    store_f64(dtype, bytes.data(), i, x);
  }
  return {dtype, {kRows, length}, Bytes::own(std::move(bytes))};
}

TEST_P(VulkanReduce, every_dtype_and_length) {
  for (DType dtype :
       {DType::kF32, DType::kF16, DType::kBF16, DType::kF64, DType::kI8, DType::kU8, DType::kI16, DType::kU16,
        DType::kI32, DType::kU32, DType::kI64, DType::kU64, DType::kBool})
    for (int64_t length : lengths(dtype)) {
      std::string d(to_string(dtype)), in = d + "[7," + std::to_string(length) + "]";
      std::string text = "graph @g(%x: " + in + ") {\n", results;
      auto reduce = [&](const std::string& op, const std::string& more, const std::string& to) {
        text += "  %" + op + " = " + op + " %x {1}" + more + " : " + to + "[7]\n";
        results += (results.empty() ? "" : ", ") + op + " = %" + op;
      };
      bool narrow = is_float(dtype) && bit_width(dtype) == 16;
      reduce("reduce_max", "", d);
      reduce("reduce_min", "", d);
      reduce("reduce_argmax", "", "i64");
      if (dtype != DType::kBool) {
        reduce("reduce_sum", " acc " + std::string(narrow ? "f32" : d), d);
        reduce("reduce_prod", " acc " + std::string(narrow ? "f32" : d), d);
      }
      if (!is_float(dtype)) {
        reduce("reduce_and", "", d);
        reduce("reduce_or", "", d);
      }
      Graph graph = parsed(text + "  return " + results + "\n}\n");
      double tolerance = dtype == DType::kBF16 ? 2e-2 : narrow ? 2e-3 : 2e-5;
      std::vector<Tensor> inputs{values(dtype, length, false)};
      if (is_float(dtype)) inputs.push_back(values(dtype, length, true));
      compare(graph, inputs, tolerance, tolerance, in);
    }
}

// A softmax; or that, and its rows less their means over their deviations.
Graph softmax(int64_t length, bool and_normalisation) {
  std::string n = std::to_string(length), x = "f32[7," + n + "]", row = "f32[7,1]";
  std::string text = "graph @g(%x: " + x + ") {\n";
  text += "  %a = reduce_max %x {1} keepdims : " + row + "\n  %ae = expand %a : " + x + "\n";
  text += "  %s = sub %x, %ae : " + x + "\n  %e = exp %s : " + x + "\n";
  text += "  %z = reduce_sum %e {1} keepdims acc f32 : " + row + "\n  %ze = expand %z : " + x + "\n";
  text += "  %y = div %e, %ze : " + x + "\n";
  if (!and_normalisation) return parsed(text + "  return y = %y\n}\n");
  text += "  %c = constant f32[1,1] {" + n + "}\n  %n = expand %c : " + row + "\n";
  text += "  %m = reduce_sum %y {1} keepdims acc f32 : " + row + "\n  %d = div %m, %n : " + row + "\n";
  text += "  %de = expand %d : " + x + "\n  %t = sub %y, %de : " + x + "\n  %q = mul %t, %t : " + x + "\n";
  text += "  %v = reduce_sum %q {1} keepdims acc f32 : " + row + "\n  %w = rsqrt %v : " + row + "\n";
  text += "  %we = expand %w : " + x + "\n  %o = mul %t, %we : " + x + "\n  return o = %o\n}\n";
  return parsed(text);
}

// Reductions that follow one another within a kernel, for several rows of a workgroup.
TEST_P(VulkanReduce, softmax_and_normalisation) {
  for (int64_t length : lengths()) {
    if (length < 16) continue;
    Graph graph = softmax(length, true);
    std::string x = "rows of " + std::to_string(length);
    compare(graph, {values(DType::kF32, length, false), values(DType::kF32, length, true)}, 1e-4, 1e-5, x);
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, VulkanReduce, ::testing::Values("vulkan", "vulkan+subgroups"),
                         [](const auto& info) {
                           return info.param == "vulkan" ? std::string("memory") : std::string("subgroups");
                         });

// A row of a few vectors is read from memory once and never leaves the registers; a longer one lies in
// workgroup memory, where each invocation goes back to what it wrote, so that nobody waits.
TEST(VulkanRows, are_in_registers_where_they_fit) {
  auto shader_of = [](const Graph& graph) {
    Folder folder;
    CompileOptions options;
    options.targets = {"vulkan+subgroups"};
    options.dump_dir = folder.path();
    Expected<CompileReport> report = compile_graphs({graph}, folder.path() + "/m.qnl", options);
    EXPECT_TRUE(report) << to_string(report.errors());
    return dumped(folder);
  };
  std::string text = shader_of(softmax(300, true));
  EXPECT_EQ(count(text, "void main"), 1u) << text;
  EXPECT_EQ(count(text, "shared float row"), 0u) << text;
  EXPECT_EQ(count(text.substr(text.find("void main")), " in1("), 5u) << text;  // 300 = 4 * 64 + 44
  text = shader_of(softmax(2100, false));
  EXPECT_EQ(count(text, "shared float row"), 1u) << text;
  EXPECT_EQ(count(text, "void main"), 1u) << text;
  EXPECT_EQ(count(text.substr(text.find("void main")), "barrier();"), 0u) << text;
}

std::string description(CompiledGraph& compiled) {
  const qnl_session* session = compiled.session().get();
  std::string text(qnl_session_describe(session, QNL_JSON, nullptr, 0), '\0');
  qnl_session_describe(session, QNL_JSON, text.data(), text.size());
  return text;
}

// A bundle of both variants runs on devices with and without subgroup operations, alike but for rounding.
TEST(VulkanSubgroups, a_device_without_them_takes_the_other_variant) {
  if (!has_features(QNL_SPIRV_SUBGROUPS)) GTEST_SKIP() << "no device with subgroup operations";
  Graph graph = parsed(
      "graph @g(%x: f32[7,300]) {\n  %s = reduce_sum %x {1} acc f32 : f32[7]\n"
      "  %m = reduce_max %x {1} : f32[7]\n  return s = %s, m = %m\n}\n");
  std::vector<Tensor> inputs = {values(DType::kF32, 300, false)};
  Expected<std::vector<Tensor>> want = interpret(graph, inputs);
  ASSERT_TRUE(want);
  CompileOptions options;
  options.targets = {"vulkan", "vulkan+subgroups"};
  for (bool has : {true, false}) {
    qnl_vulkan_options vulkan = {};
    if (!has) vulkan.feature_mask = ~QNL_SPIRV_SUBGROUPS;
    Expected<CompiledGraph> compiled = CompiledGraph::make(graph, options, 1, {}, &vulkan);
    ASSERT_TRUE(compiled) << to_string(compiled.errors());
    EXPECT_NE(description(*compiled).find(has ? "\"vulkan+subgroups\"" : "\"vulkan\""), std::string::npos)
        << description(*compiled);
    Expected<std::vector<Tensor>> got = compiled->run(inputs);
    ASSERT_TRUE(got) << to_string(got.errors());
    EXPECT_EQ(difference((*got)[0], (*want)[0], 1e-5, 1e-5), "");
    EXPECT_EQ(difference((*got)[1], (*want)[1], 0, 0), "");
  }
  options.targets = {"vulkan+subgroups"};
  qnl_vulkan_options without = {};
  without.feature_mask = ~QNL_SPIRV_SUBGROUPS;
  Expected<CompiledGraph> refused = CompiledGraph::make(graph, options, 1, {}, &without);
  ASSERT_FALSE(refused);
  EXPECT_NE(to_string(refused.errors()).find("vulkan+subgroups: spirv (vulkan-1.1 subgroups)"),
            std::string::npos)
      << to_string(refused.errors());
}

}  // namespace
}  // namespace quernel::testing
