// Products by cooperative matrices against the interpreter: tiles whose rows and columns do not all exist, several tiles of
// each, windows, sums that end within a fetch, and what follows a product in its kernel.
#include "graph/build.h"
#include "on_vulkan.h"
#include "schemas/kernel_abi.h"

namespace quernel::testing {
namespace {

struct Product {
  int rows, columns, steps, places;  // places: of a window that slides along the rows
};

Graph graph_of(const Product& p, DType a, DType b, Random& random) {
  Graph graph;
  GraphBuilder build(graph);
  const DType sums = is_byte(b) ? DType::kI32 : DType::kF32;
  const ValueId input = graph.add_input("x", {a, {p.rows + p.places - 1, p.steps}});
  const ValueId z = graph.add_input("z", {sums, {p.rows, p.columns}});
  const ValueId x = build.add(OpKind::k_add, {input, input});  // whose rows are aligned
  const ValueId w = build.constant(random_tensor(b, {p.columns, p.places, p.steps}, random));
  auto axis = [](int i) { return IndexExpr::axis(i); };
  Contraction c;
  c.axes = {{"m", p.rows, false}, {"n", p.columns, false}, {"i", p.places, true}, {"k", p.steps, true}};
  c.a = {axis(0) + axis(2), axis(3)};
  c.b = {axis(1), axis(2), axis(3)};
  c.out = {axis(0), axis(1)};
  c.accumulator = sums;
  c.unrounded = sums == DType::kF32;
  const ValueId sum = build.add(OpKind::k_add, {build.contract(x, w, c), z});
  graph.outputs.push_back({"y", build.unary(UnaryOp::k_abs, sum)});
  EXPECT_TRUE(build.ok());
  return graph;
}

const std::vector<Product> kProducts = {{64, 64, 32, 1},    {16, 32, 96, 1},  {65, 70, 64, 1},
                                        {130, 200, 256, 1}, {100, 33, 64, 5}, {64, 64, 24, 4}};

void expect_products(uint64_t feature, const std::string& target, DType a, DType b,
                     const std::vector<Product>& products = kProducts) {
  std::string why;
  if (!has_device(&why)) GTEST_SKIP() << why;
  if (!has_features(feature)) GTEST_SKIP() << "the device has no cooperative matrices of " << to_string(b);
  for (const Product& p : products) {
    if (!is_byte(b) && p.steps % 16 != 0) continue;
    SCOPED_TRACE(std::to_string(p.rows) + " x " + std::to_string(p.columns) + " x " +
                 std::to_string(p.steps));
    Random random(static_cast<uint64_t>(p.rows));
    const Graph product = graph_of(p, a, b, random);
    const std::vector<Tensor> inputs = random_inputs(product, 7);
    const Expected<std::vector<Tensor>> want = interpret(product, inputs);
    ASSERT_TRUE(want) << to_string(want.errors());
    CompileOptions options;
    options.targets = {target};
    const qnl_vulkan_options vulkan = {};
    Expected<CompiledGraph> compiled = CompiledGraph::make(product, options, 1, {}, &vulkan);
    ASSERT_TRUE(compiled) << to_string(compiled.errors());
    const Expected<std::vector<Tensor>> got = compiled->run(inputs);
    ASSERT_TRUE(got) << to_string(got.errors());
    if (is_byte(b))
      EXPECT_EQ(differences(product, *got, *want), "");
    else
      EXPECT_LT(largest_error(*got, *want), 1e-5);
  }
}

TEST(VulkanMatrices, products_of_halves) {
  expect_products(QNL_SPIRV_COOPMAT, "vulkan+coopmat", DType::kF16, DType::kF16);
}

TEST(VulkanMatrices, products_of_bf16) {
  expect_products(QNL_SPIRV_COOPMAT_BF16, "vulkan+coopmat-bf16", DType::kBF16, DType::kBF16);
}

// Software drivers take long to compile these kernels: signs that ONNX models rarely have get one product.
TEST(VulkanMatrices, products_of_bytes) {
  const uint64_t feature = QNL_SPIRV_COOPMAT_INT8;
  const std::string target = "vulkan+coopmat-int8";
  expect_products(feature, target, DType::kU8, DType::kI8);
  expect_products(feature, target, DType::kI8, DType::kI8, {{64, 64, 64, 1}, {65, 70, 60, 1}});
  expect_products(feature, target, DType::kI8, DType::kU8, {{65, 70, 60, 1}});
  expect_products(feature, target, DType::kU8, DType::kU8, {{65, 70, 60, 1}});
}

}  // namespace
}  // namespace quernel::testing
