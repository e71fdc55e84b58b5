// Runs a graph the way a user does: through the whole compiler, a bundle file and the runtime.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "graph/interpret.h"
#include "graph/ir.h"
#include "quernel/compiler.h"
#include "quernel/runtime.hpp"

namespace quernel::testing {

// A compiled graph, loaded and ready to run, again and again. Failures of the runtime become diagnostics,
// too.
class CompiledGraph {
 public:
  // custom: of the graph's custom ops, called through the runtime's C interface. vulkan: of the device where
  // the first target is a GPU; null: the defaults.
  static Expected<CompiledGraph> make(const Graph& graph, const CompileOptions& options, unsigned threads,
                                      const CustomFunctions& custom = {},
                                      const qnl_vulkan_options* vulkan = nullptr);
  // Inputs and outputs in the order of the graph's, without those of states.
  Expected<std::vector<Tensor>> run(const std::vector<Tensor>& inputs);

  Session& session() { return session_; }
  const Device& device() const { return device_; }

 private:
  std::vector<std::string> inputs_, outputs_;
  struct Registered;
  std::vector<std::shared_ptr<Registered>> registered_;
  Bundle bundle_;
  Device host_, device_;
  Session session_;
};

// Compiles and runs once.
Expected<std::vector<Tensor>> run_compiled(const Graph& graph, const std::vector<Tensor>& inputs,
                                           const CompileOptions& options, unsigned threads,
                                           const CustomFunctions& custom = {});

// Where and by how much two tensors differ most beyond |got - want| <= atol + rtol |want|; empty when they
// agree. NaN equals NaN; infinities must match; integers and bool exactly.
std::string difference(const Tensor& got, const Tensor& want, double rtol, double atol);

// The largest difference of a tensor's elements as a share of its largest one, of the worst tensor; infinite
// where there is a NaN.
double largest_error(const std::vector<Tensor>& got, const std::vector<Tensor>& want);

// How far an output of a random graph may be off: by the narrowest float that it is computed from.
struct Tolerance {
  double rtol, atol;
};
Tolerance tolerance_of(const Graph& graph, ValueId output);
// A line for each output of a random graph that is further off than that; empty when all agree.
std::string differences(const Graph& graph, const std::vector<Tensor>& got, const std::vector<Tensor>& want);

// First seed and count of a test with random graphs, `count` from 0 on, or QUERNEL_FUZZ_SEEDS=FIRST:COUNT.
std::pair<uint64_t, uint64_t> fuzz_seeds(uint64_t count);

}  // namespace quernel::testing
