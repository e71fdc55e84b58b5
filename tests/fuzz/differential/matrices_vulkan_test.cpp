// Products of f16 by cooperative matrices against the interpreter: tiles whose rows and columns do not all exist, several
// tiles of each, windows, and what follows a product in its kernel.
#include "graph/build.h"
#include "on_vulkan.h"
#include "schemas/kernel_abi.h"

namespace quernel::testing {
namespace {

struct Product {
  int rows, columns, steps, places;  // places: of a window that slides along the rows
};

Graph graph_of(const Product& p, Random& random) {
  Graph graph;
  GraphBuilder build(graph);
  const ValueId input = graph.add_input("x", {DType::kF16, {p.rows + p.places - 1, p.steps}});
  const ValueId z = graph.add_input("z", {DType::kF32, {p.rows, p.columns}});
  const ValueId x = build.unary(UnaryOp::k_neg, input);  // whose rows are aligned
  const ValueId w = build.constant(random_tensor(DType::kF16, {p.columns, p.places, p.steps}, random));
  auto axis = [](int i) { return IndexExpr::axis(i); };
  Contraction c;
  c.axes = {{"m", p.rows, false}, {"n", p.columns, false}, {"i", p.places, true}, {"k", p.steps, true}};
  c.a = {axis(0) + axis(2), axis(3)};
  c.b = {axis(1), axis(2), axis(3)};
  c.out = {axis(0), axis(1)};
  c.unrounded = true;
  const ValueId sum = build.add(OpKind::k_add, {build.contract(x, w, c), z});
  graph.outputs.push_back({"y", build.unary(UnaryOp::k_abs, sum)});
  EXPECT_TRUE(build.ok());
  return graph;
}

TEST(VulkanMatrices, products_of_halves) {
  std::string why;
  if (!has_device(&why)) GTEST_SKIP() << why;
  if (!has_features(QNL_SPIRV_COOPMAT)) GTEST_SKIP() << "the device has no cooperative matrices";
  for (const Product& p : {Product{64, 64, 16, 1},
                           {16, 32, 48, 1},
                           {65, 70, 32, 1},
                           {130, 200, 256, 1},
                           {64, 64, 16, 3},
                           {100, 33, 64, 5}}) {
    Random random(static_cast<uint64_t>(p.rows));
    const Graph product = graph_of(p, random);
    const std::vector<Tensor> inputs = random_inputs(product, 7);
    const Expected<std::vector<Tensor>> want = interpret(product, inputs);
    ASSERT_TRUE(want) << to_string(want.errors());
    CompileOptions options;
    options.targets = {"vulkan+coopmat"};
    const qnl_vulkan_options vulkan = {};
    Expected<CompiledGraph> compiled = CompiledGraph::make(product, options, 1, {}, &vulkan);
    ASSERT_TRUE(compiled) << to_string(compiled.errors());
    const Expected<std::vector<Tensor>> got = compiled->run(inputs);
    ASSERT_TRUE(got) << to_string(got.errors());
    EXPECT_LT(largest_error(*got, *want), 1e-5) << p.rows << " x " << p.columns << " x " << p.steps;
  }
}

}  // namespace
}  // namespace quernel::testing
