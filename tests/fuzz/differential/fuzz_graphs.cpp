// Random graphs, interpreted and compiled, many at a time: `fuzz_graphs --first SEED --graphs N`. Batches of
// graphs are compiled as one and each graph's outputs are compared; where a batch fails, its graphs run
// alone. Targets, threads and the pass that is disabled change from batch to batch. run_long.py runs it for
// hours.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>

#include "graph/interpret.h"
#include "graph/text.h"
#include "graph/verify.h"
#include "host_targets.h"
#include "join_graphs.h"
#include "pipeline/pipeline.h"
#include "random_graph/random_graph.h"
#include "run_compiled.h"

namespace quernel::testing {
namespace {

using Sizes = std::map<std::string, int64_t>;
const std::vector<Sizes> kSizes{{{"n", 1}, {"m", 2}}, {{"n", 7}, {"m", 8}}, {{"n", 18}, {"m", 6}}};

// One graph and what the interpreter makes of it, at each size.
struct Case {
  uint64_t seed = 0;
  Graph graph;
  std::vector<std::vector<Tensor>> inputs, want;
};

// Mostly small graphs of small values: they compile fast, so that more of them run.
Graph graph_of(uint64_t seed) {
  Random random(seed);
  RandomGraphOptions options;
  int64_t size = random.below(20);
  if (seed % 16 == 0) return size < 15 ? random_symbolic_graph(seed, 1, 4) : random_symbolic_graph(seed);
  options.min_nodes = 1;
  options.max_nodes = size < 15 ? 3 : size < 19 ? 8 : 25;
  options.max_elements = size < 15 ? 256 : size < 19 ? 1024 : 4096;
  return random_graph(seed, options);
}

Expected<Case> make_case(uint64_t seed) {
  Case made{seed, graph_of(seed), {}, {}};
  QUERNEL_CHECK(verify(made.graph));
  for (const Sizes& sizes : kSizes) {
    bool symbolic = !made.graph.symbols.empty();
    if (!symbolic && !made.inputs.empty()) break;
    made.inputs.push_back(symbolic ? random_inputs_at(made.graph, sizes, seed)
                                   : random_inputs(made.graph, seed));
    QUERNEL_TRY(std::vector<Tensor> want,
                interpret(made.graph, made.inputs.back(), symbolic ? sizes : Sizes{}));
    made.want.push_back(std::move(want));
  }
  return made;
}

struct Configuration {
  std::string target = "native";
  std::vector<std::string> disabled;
  unsigned threads = 1;
};

// Most batches compile without LLVM's optimisation, which costs more than all else; of the others every
// second one runs without one of our passes.
Configuration configuration_of(uint64_t first) {
  static const std::vector<std::string> targets = host_targets();
  static const std::vector<std::string_view> passes = quernel::optional_passes();
  Random random(first * 2 + 1);
  Configuration c;
  c.target = random.pick(targets);
  bool optimized = random.chance(12);
  if (!optimized) c.disabled.emplace_back(kOptimizeCode);
  if (random.chance(50)) c.disabled.emplace_back(random.pick(passes));
  c.threads = random.chance(25) ? 2 : 1;
  return c;
}

// Empty when all outputs are right.
std::string run_cases(const std::vector<Case>& cases, const Configuration& configuration) {
  Graph all;
  for (size_t i = 0; i < cases.size(); ++i) join(all, cases[i].graph, "g" + std::to_string(i) + "_");
  CompileOptions options;
  options.targets = {configuration.target};
  options.threads = 1;
  options.disabled_passes = configuration.disabled;
  Expected<CompiledGraph> compiled = CompiledGraph::make(all, options, configuration.threads);
  if (!compiled) return to_string(compiled.errors());
  size_t sizes = all.symbols.empty() ? 1 : kSizes.size();
  for (size_t s = 0; s < sizes; ++s) {
    std::vector<Tensor> inputs;
    for (const Case& c : cases) {
      const std::vector<Tensor>& from = c.inputs[std::min(s, c.inputs.size() - 1)];
      inputs.insert(inputs.end(), from.begin(), from.end());
    }
    Expected<std::vector<Tensor>> got = compiled->run(inputs);
    if (!got) return to_string(got.errors());
    size_t at = 0;
    for (const Case& c : cases)
      for (size_t i = 0; i < c.graph.outputs.size(); ++i, ++at) {
        bool exact = !c.graph.symbols.empty();
        Tolerance t = exact ? Tolerance{0, 0} : tolerance_of(c.graph, c.graph.outputs[i].value);
        std::string problem =
            difference((*got)[at], c.want[std::min(s, c.want.size() - 1)][i], t.rtol, t.atol);
        if (!problem.empty())
          return "seed " + std::to_string(c.seed) + ", output " + c.graph.outputs[i].name + ": " + problem;
      }
  }
  return {};
}

// What ran: by op and the dtype that it computes in.
class Coverage {
 public:
  void count(const Graph& graph) {
    for (const Node& node : graph.nodes) {
      ValueId subject = node.op == OpKind::k_where ? node.inputs[1]
                        : node.inputs.empty()      ? node.output
                                                   : node.inputs[0];
      ++counts_[{std::string(to_string(node.op)), std::string(to_string(graph.dtype(subject)))}];
    }
  }
  bool write(const std::string& path) const {
    std::ofstream file(path);
    for (const auto& [key, count] : counts_) file << key.first << '\t' << key.second << '\t' << count << '\n';
    return static_cast<bool>(file);
  }

 private:
  std::map<std::pair<std::string, std::string>, uint64_t> counts_;
};

struct Arguments {
  uint64_t first = 1, graphs = 1, batch = 64;
  std::optional<Configuration> configuration;
  std::string coverage, progress;
  bool print = false;
};

std::optional<Arguments> parse(int argc, char** argv) {
  Arguments a;
  auto configured = [&]() -> Configuration& {
    if (!a.configuration) a.configuration.emplace();
    return *a.configuration;
  };
  for (int i = 1; i < argc; ++i) {
    std::string flag = argv[i];
    if (flag == "--print") {
      a.print = true;
      continue;
    }
    if (++i == argc) return {};
    const char* value = argv[i];
    if (flag == "--first")
      a.first = std::strtoull(value, nullptr, 10);
    else if (flag == "--graphs")
      a.graphs = std::strtoull(value, nullptr, 10);
    else if (flag == "--batch")
      a.batch = std::max(1ULL, std::strtoull(value, nullptr, 10));
    else if (flag == "--target")
      configured().target = value;
    else if (flag == "--disable-pass")
      configured().disabled.emplace_back(value);
    else if (flag == "--threads")
      configured().threads = static_cast<unsigned>(std::strtoul(value, nullptr, 10));
    else if (flag == "--coverage")
      a.coverage = value;
    else if (flag == "--progress")
      a.progress = value;
    else
      return {};
  }
  return a;
}

std::string flags_of(const Configuration& c) {
  std::string flags = " --target " + c.target + " --threads " + std::to_string(c.threads);
  for (const std::string& pass : c.disabled) flags += " --disable-pass " + pass;
  return flags;
}

void report(uint64_t first, uint64_t graphs, const Configuration& c, const std::string& problem) {
  std::printf("FAIL --first %llu --graphs %llu --batch %llu%s\n  %s\n",
              static_cast<unsigned long long>(first), static_cast<unsigned long long>(graphs),
              static_cast<unsigned long long>(graphs), flags_of(c).c_str(), problem.c_str());
}

// The number of failures in the batch.
uint64_t run_batch(uint64_t first, uint64_t graphs, const Configuration& c, bool print_graphs,
                   Coverage& coverage) {
  std::vector<Case> cases;
  uint64_t failures = 0;
  for (uint64_t seed = first; seed < first + graphs; ++seed) {
    Expected<Case> made = make_case(seed);
    if (!made) {
      report(seed, 1, c, to_string(made.errors()));
      ++failures;
      continue;
    }
    if (print_graphs) std::printf("%s", print(made->graph, 64).c_str()), std::fflush(stdout);
    cases.push_back(std::move(*made));
  }
  std::string problem = run_cases(cases, c);
  for (const Case& one : cases) coverage.count(one.graph);
  if (problem.empty()) return failures;
  uint64_t before = failures;
  for (size_t i = 0; i < cases.size(); ++i)
    if (std::string alone = run_cases({cases[i]}, c); !alone.empty()) {
      report(cases[i].seed, 1, c, alone);
      ++failures;
    }
  if (failures == before) {
    report(first, graphs, c, "only together: " + problem);
    ++failures;
  }
  return failures;
}

int run(const Arguments& a) {
  auto start = std::chrono::steady_clock::now();
  Coverage coverage;
  uint64_t failures = 0, done = 0;
  for (uint64_t first = a.first; first < a.first + a.graphs; first += a.batch) {
    uint64_t graphs = std::min(a.batch, a.first + a.graphs - first);
    Configuration c = a.configuration ? *a.configuration : configuration_of(first);
    if (!a.progress.empty())
      std::ofstream(a.progress) << "--first " << first << " --graphs " << graphs << flags_of(c) << '\n';
    failures += run_batch(first, graphs, c, a.print, coverage);
    done += graphs;
    std::fflush(stdout);
  }
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!a.coverage.empty() && !coverage.write(a.coverage)) {
    std::fprintf(stderr, "cannot write '%s'\n", a.coverage.c_str());
    return 2;
  }
  std::printf("%llu graphs, %llu failures, %.1f seconds\n", static_cast<unsigned long long>(done),
              static_cast<unsigned long long>(failures), seconds);
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace quernel::testing

int main(int argc, char** argv) {
  std::optional<quernel::testing::Arguments> arguments = quernel::testing::parse(argc, argv);
  if (arguments) return quernel::testing::run(*arguments);
  std::fprintf(
      stderr,
      "usage: fuzz_graphs --first SEED --graphs N [--batch N] [--target NAME] [--disable-pass NAME]\n"
      "         [--threads N] [--coverage FILE] [--progress FILE] [--print]\n");
  return 2;
}
