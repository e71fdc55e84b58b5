// Random graphs as C, compiled by a C compiler, against their bundles: the same bits.
// QUERNEL_FUZZ_SEEDS=FIRST:COUNT runs other seeds, for long runs by hand.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <functional>

#include "compiled_c.h"
#include "graph/text.h"
#include "host_targets.h"
#include "join_graphs.h"
#include "long_sums.h"
#include "pipeline/pipeline.h"
#include "random_graph/random_graph.h"
#include "run_compiled.h"

namespace quernel::testing {
namespace {

constexpr uint64_t kBatch = 24;  // graphs in one program: compilers of C are slow

using Run = int32_t(const void* memory, void* const* inputs, void* const* outputs);

// The outputs, at first of random bytes.
std::vector<std::vector<uint8_t>> run_c(const Graph& graph, const std::vector<Tensor>& inputs,
                                        const CompileOptions& options, const std::string& flags) {
  std::string pattern = (std::filesystem::temp_directory_path() / "quernel_c_form_XXXXXX").string();
  if (!mkdtemp(pattern.data())) std::abort();
  CompileOptions as_c = options;
  as_c.emit = Emit::kC;
  Expected<CompileReport> report = compile_graphs({graph}, pattern + "/model", as_c);
  if (!report) {
    ADD_FAILURE() << to_string(report.errors());
    return {};
  }
  std::vector<std::string> files;
  for (const std::string& file : report->program->files)
    if (file.ends_with(".c")) files.push_back(file);
  quernel::test::CompiledC compiled = quernel::test::CompiledC::of_files(files, flags);
  std::filesystem::remove_all(pattern);
  if (!compiled.ok()) return {};
  std::vector<void*> in, out;
  std::vector<std::vector<uint8_t>> results;
  for (const Tensor& t : inputs) in.push_back(const_cast<uint8_t*>(t.bytes.data()));
  for (const Graph::Output& output : graph.outputs) {
    const TensorType& type = graph.values[static_cast<size_t>(output.value)].type;
    int64_t count = 1;
    for (const Dim& d : type.shape) count *= d.value();
    results.emplace_back(static_cast<size_t>(byte_size(type.dtype, count)), 0xcd);
  }
  for (auto& result : results) out.push_back(result.data());
  int32_t code =
      compiled.function<Run>("model_run")(compiled.symbol("model_static_memory"), in.data(), out.data());
  EXPECT_EQ(code, 0);
  return results;
}

// Of the C and of the bundle. `what(i)`: where output i is from.
void expect_same_bits(const Graph& graph, const std::vector<Tensor>& inputs, const std::string& target,
                      const std::string& flags, const std::function<std::string(size_t)>& what) {
  CompileOptions options;
  options.targets = {target};
  options.threads = 1;
  Expected<std::vector<Tensor>> want = run_compiled(graph, inputs, options, 1);
  ASSERT_TRUE(want) << to_string(want.errors());
  std::vector<std::vector<uint8_t>> got = run_c(graph, inputs, options, flags);
  ASSERT_EQ(got.size(), want->size());
  for (size_t i = 0; i < got.size(); ++i) {
    Tensor found = (*want)[i];
    found.bytes = Bytes::own(got[i]);
    ASSERT_EQ(found.bytes.size(), (*want)[i].bytes.size());
    EXPECT_EQ(difference(found, (*want)[i], 0, 0), "") << what(i) << ", output " << graph.outputs[i].name;
  }
}

void compare(uint64_t first, const std::string& target, const std::string& flags) {
  SCOPED_TRACE("seeds from " + std::to_string(first) + " on, " + target);
  Graph all;
  std::vector<Tensor> inputs;
  std::vector<uint64_t> seeds;  // of each output
  for (uint64_t seed = first; seed < first + kBatch; ++seed) {
    RandomGraphOptions options;
    options.max_nodes = seed % 8 == 0 ? 25 : 8;
    options.max_elements = 1024;
    Graph graph = random_graph(seed, options);
    join(all, graph, "g" + std::to_string(seed - first) + "_");
    for (Tensor& t : random_inputs(graph, seed)) inputs.push_back(std::move(t));
    seeds.insert(seeds.end(), graph.outputs.size(), seed);
  }
  expect_same_bits(all, inputs, target, flags, [&](size_t i) { return "seed " + std::to_string(seeds[i]); });
}

bool runs_here(const std::string& target) {
  for (const std::string& name : host_targets())
    if (name == target) return true;
  return false;
}

// With vectors of two widths, with and without fused multiply-add; every other batch watches for undefined
// behaviour.
TEST(CForm, random_graphs) {
  if (std::string missing = test::missing_c_compiler(); !missing.empty()) GTEST_SKIP() << missing;
  auto [first, count] = fuzz_seeds(4 * kBatch);
  for (uint64_t batch = 0; batch * kBatch < count; ++batch) {
    bool fused = batch % 4 >= 2 && runs_here("x86-64-v3");
    std::string flags = fused ? "-O1 -mavx2 -mfma" : "-O1";
    if (batch % 2 == 0) flags += " -fsanitize=undefined -fsanitize-undefined-trap-on-error";
    compare(first + batch * kBatch, fused ? "x86-64-v3" : "x86-64", flags);
  }
}

// long_sums_test.cpp has the bundle's results beside the bound.
TEST(CForm, long_sums) {
  if (std::string missing = test::missing_c_compiler(); !missing.empty()) GTEST_SKIP() << missing;
  Graph all;
  std::vector<Tensor> inputs;
  std::vector<std::string> names;
  for (const SumCase& c : kSumCases) {
    if (!c.symbols.empty()) continue;
    Graph graph = graph_of(c);
    join(all, graph, std::string(c.name) + "_");
    for (Tensor& t : inputs_of(graph, c, Terms::kMixed)) inputs.push_back(std::move(t));
    names.emplace_back(c.name);
  }
  expect_same_bits(all, inputs, "x86-64", "-O1", [&](size_t i) { return names[i]; });
}

}  // namespace
}  // namespace quernel::testing
