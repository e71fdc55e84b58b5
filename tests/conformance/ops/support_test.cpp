// The table of ops and dtypes, compiler/ops/SUPPORT.md, is true: every cell compiles and computes what the
// interpreter does, on every target this machine runs, or is refused. QUERNEL_UPDATE_GOLDEN=1 rewrites the
// document.
#include "ops/support.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "graph/control.h"
#include "graph/interpret.h"
#include "graph/text.h"
#include "host_targets.h"
#include "quernel/compiler.h"
#include "random_graph/random_graph.h"
#include "run_compiled.h"
#include "support/file.h"
#include "support/temporary_directory.h"

namespace quernel::testing {
namespace {

const std::vector<OpKind> kOps{
#define QUERNEL_OP(name, family) OpKind::k_##name,
#include "ops/ops.def"
};

// Integer powers of negative exponents and the like are defined; what differs in the last bits is float.
double tolerance_of(OpKind op, DType dtype) {
  std::string_view family = op_info(op).family;
  if (!is_float(dtype) || (family != "unary" && op != OpKind::k_pow && op != OpKind::k_contract &&
                           op != OpKind::k_reduce_sum && op != OpKind::k_reduce_prod &&
                           op != OpKind::k_mulacc && op != OpKind::k_scan_sum && op != OpKind::k_scan_prod))
    return 0;
  switch (dtype) {
    case DType::kF64:
      return 1e-13;
    case DType::kF16:
      return 2e-3;
    case DType::kBF16:
      return 2e-2;
    default:
      return 2e-6;
  }
}

// All nodes of one dtype side by side; casts to every dtype.
struct Cells {
  Graph graph;
  std::vector<std::pair<OpKind, std::string>> outputs;  // op, name of the cell
};

Cells cells_of(DType dtype) {
  Cells cells;
  auto add = [&](OpKind op, const ops::SampleNode& sample, const std::string& name) {
    std::vector<ValueId> operands;
    for (const TensorType& type : sample.inputs)
      operands.push_back(cells.graph.add_input("x" + std::to_string(cells.graph.inputs.size()), type));
    Expected<ValueId> v = cells.graph.add(op, operands, sample.attributes);
    ASSERT_TRUE(v) << name << ": " << to_string(v.errors());
    if (gives_token(op)) {
      GraphBuilder build(cells.graph);
      *v = add_result(build, *v, 0);
      ASSERT_TRUE(build.ok());
    }
    cells.graph.outputs.push_back({"y" + std::to_string(cells.outputs.size()), *v});
    cells.outputs.emplace_back(op, name);
  };
  for (OpKind op : kOps) {
    std::optional<ops::SampleNode> sample = ops::sample_node(op, dtype);
    if (!sample || ops::cpu_support(op, *sample, dtype) == ops::Support::kRefused) continue;
    std::string name = std::string(to_string(op)) + " " + std::string(to_string(dtype));
    add(op, *sample, name);
    if (op != OpKind::k_cast) continue;
    for (int to = 0; to < kDTypeCount; ++to) {
      sample->attributes.dtype = static_cast<DType>(to);
      add(op, *sample, name + " to " + std::string(to_string(static_cast<DType>(to))));
    }
  }
  return cells;
}

// What the sample of the op `custom` computes.
const CustomFunctions kCustom = {
    {"support::Copy",
     [](const CustomOp&, const std::vector<const Tensor*>& x) -> Expected<std::vector<Tensor>> {
       return std::vector<Tensor>{*x[0]};
     }}};

class EveryDType : public ::testing::TestWithParam<int> {};

TEST_P(EveryDType, computes_what_the_table_says) {
  DType dtype = static_cast<DType>(GetParam());
  Cells cells = cells_of(dtype);
  std::vector<Tensor> inputs = random_inputs(cells.graph, 1);
  Expected<std::vector<Tensor>> want = interpret(cells.graph, inputs, {}, kCustom);
  ASSERT_TRUE(want) << to_string(want.errors());
  for (const std::string& target : host_targets()) {
    CompileOptions options;
    options.targets = {target};
    Expected<std::vector<Tensor>> got = run_compiled(cells.graph, inputs, options, 1, kCustom);
    ASSERT_TRUE(got) << target << ": " << to_string(got.errors());
    for (size_t i = 0; i < want->size(); ++i) {
      double tolerance = tolerance_of(cells.outputs[i].first, dtype);
      EXPECT_EQ(difference((*got)[i], (*want)[i], tolerance, tolerance), "")
          << cells.outputs[i].second << " on " << target;
    }
  }
}

TEST_P(EveryDType, refuses_what_the_table_leaves_empty) {
  DType dtype = static_cast<DType>(GetParam());
  for (OpKind op : kOps) {
    std::optional<ops::SampleNode> sample = ops::sample_node(op, dtype);
    if (!sample || ops::cpu_support(op, *sample, dtype) != ops::Support::kRefused) continue;
    Graph graph;
    std::vector<ValueId> operands;
    for (const TensorType& type : sample->inputs)
      operands.push_back(graph.add_input("x" + std::to_string(graph.inputs.size()), type));
    EXPECT_FALSE(graph.add(op, operands, sample->attributes)) << to_string(op) << " " << to_string(dtype);
  }
}

INSTANTIATE_TEST_SUITE_P(Support, EveryDType, ::testing::Range(0, kDTypeCount), [](const auto& info) {
  return std::string(to_string(static_cast<DType>(info.param)));
});

// Functions of floats that were stored as narrower ones, one at a time and in vectors: instruction selection
// sees through the conversion, and of Cortex-M no random graph runs here.
TEST(Support, functions_of_widened_floats_compile_for_microcontrollers) {
  Graph graph;
  GraphBuilder build(graph);
  for (DType narrow : {DType::kF16, DType::kBF16, DType::kF8E4M3, DType::kF8E5M2})
    for (int64_t count : {1, 5})
      for (OpKind op : kOps) {
        if (op_info(op).family != "unary" || !ops::sample_node(op, DType::kF32)) continue;
        ValueId x = graph.add_input("x" + std::to_string(graph.inputs.size()), {narrow, {count}});
        Expected<ValueId> y = graph.add(op, {build.cast(x, DType::kF32)});
        if (y) graph.outputs.push_back({"y" + std::to_string(graph.outputs.size()), *y});
      }
  ASSERT_GT(graph.outputs.size(), 100u);
  TemporaryDirectory folder;
  const std::string model = folder.path() + "/functions.qg";
  ASSERT_TRUE(write_file(model, print(graph)));
  for (const char* target :
       {"cortex-m0", "cortex-m0plus", "cortex-m3", "cortex-m4", "cortex-m4+nofp", "cortex-m7", "cortex-m23",
        "cortex-m33", "cortex-m55", "cortex-m85", "riscv32imc", "riscv32imac", "riscv32imafc"}) {
    CompileOptions options;
    options.emit = Emit::kStatic;
    options.targets = {target};
    Expected<CompileReport> report = compile(model, folder.path() + "/functions", options);
    EXPECT_TRUE(report) << target << ": " << to_string(report.errors());
  }
}

TEST(Support, document_is_up_to_date) {
  const char* path = QUERNEL_SOURCE_DIR "/compiler/ops/SUPPORT.md";
  if (std::getenv("QUERNEL_UPDATE_GOLDEN")) std::ofstream(path) << ops::support_table();
  std::ifstream file(path);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(text, ops::support_table()) << "quernel targets --ops > compiler/ops/SUPPORT.md";
}

}  // namespace
}  // namespace quernel::testing
