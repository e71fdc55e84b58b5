#include "codegen/c/print_program.h"

#include <algorithm>

#include "codegen/c/node_names.h"
#include "codegen/c/print_kernels.h"
#include "codegen/c/program_printer.h"
#include "support/diagnostic.h"

namespace quernel::codegen {
namespace {

std::string first_lines(const StaticProgram& program, const std::string& what) {
  return "/* " + what + " of " + program.identifier + " for " + program.target + ", made by " +
         program.producer + ". */\n";
}

// Where registers are few, GCC displaces accumulators, if nobody stops it: it loads words and vectors long before it
// multiplies them, adds products to one another before the sum, and keeps constant addresses of a function's copy. The
// pragma would also bring back calls of memset, which -ffreestanding ends.
std::string order_of_code(const Target& target) {
  const bool has_few_vectors = target.lane_sums != 0;
  if (!target.registers_are_few() && !has_few_vectors) return "";
  std::string passes = "no-schedule-insns,no-ipa-cp-clone,";
  if (has_few_vectors) passes += "no-tree-ter,";
  if (target.registers_are_few() && target.arch == QNL_ARCH_ARM) passes += "no-tree-reassoc,";
  return "#if defined(__GNUC__) && !defined(__clang__)\n#pragma GCC optimize (\"" + passes +
         "no-tree-loop-distribute-patterns\")\n#endif\n";
}

// The attribute of constants, which who compiles the file may define.
std::string weights_section(const StaticProgram& program) {
  std::string macro = program.macro + "_WEIGHTS_SECTION";
  return "/* Of every array of constants; for example -D'" + macro +
         "=__attribute__((section(\".xip\")))'. */\n#ifndef " + macro + "\n#define " + macro + "\n#endif\n";
}

// Blocks are aligned as well as C99 can say, and to kStaticAlignment where the compiler has a word for it.
std::string static_memory(const StaticProgram& program, const std::string& header) {
  const std::string& id = program.identifier;
  std::string text = first_lines(program, "Static memory") + "#include \"" + header + "\"\n", members;
  text += "#if defined(__GNUC__)\n#define QNL_ALIGNED __attribute__((aligned(" +
          std::to_string(kStaticAlignment) + ")))\n#else\n#define QNL_ALIGNED\n#endif\n";
  auto add = [&](const std::string& member, uint64_t bytes) {
    members += members.empty() ? "" : ", ";
    if (bytes == 0) {
      members += "0";
      return;
    }
    std::string name = id + "_" + member;
    text += "static union {\n  uint64_t alignment;\n  double also;\n  uint8_t bytes[" +
            std::to_string(bytes) + "];\n} " + name + "_block QNL_ALIGNED;\n";
    members += name + "_block.bytes";
  };
  for (const StaticRegion& region : program.regions) add(region.identifier, region.bytes);
  if (program.state_bytes != 0) add("state", program.state_bytes);
  return text + "const " + id + "_memory " + id + "_static_memory = {" + members + "};\n";
}

}  // namespace

Expected<CProgram> print_program(const StaticProgram& program, const std::vector<loop::Kernel>& kernels,
                                 const Target& target, const std::string& header) {
  QUERNEL_ASSERT(program.kernels.size() == kernels.size());
  std::vector<CFunction> functions;
  std::vector<std::vector<bool>> disjoint = buffers_without_overlap(program, kernels);
  for (size_t k = 0; k < kernels.size(); ++k)
    functions.push_back({program.kernels[k].symbol, "static ", disjoint[k]});
  QUERNEL_TRY(CKernels printed, print_kernels(kernels, target, functions));

  WeightsPrinter weights(program, kernels);
  RunPrinter runs(program, kernels, printed, weights);
  std::string run_functions = runs.reset_function();
  for (const StaticEntry& entry : program.entries) run_functions += runs.run_function(entry);

  CProgram result;
  result.program = first_lines(program, "Kernels and run functions") + "#include \"" + header + "\"\n" +
                   order_of_code(target) + printed.prelude;
  std::string declarations = weights.declarations();
  if (!declarations.empty() || program.state_bytes != 0) result.program += weights_section(program);
  result.program += declarations;
  std::vector<std::vector<std::string>> nodes = nodes_of_kernels(program);
  for (size_t k = 0; k < kernels.size(); ++k) {
    for (const std::string& names : nodes[k]) result.program += "/* " + names + " */\n";
    result.program += printed.kernels[k].text;
    result.array_bytes = std::max(result.array_bytes, printed.kernels[k].array_bytes);
  }
  result.program += run_prelude_for(run_functions) + run_functions;
  if (std::string definitions = weights.definitions(); !definitions.empty())
    result.weights = first_lines(program, "Constants") + "#include <stdint.h>\n" + weights_section(program) +
                     declarations + definitions;
  result.memory = static_memory(program, header);
  return result;
}

}  // namespace quernel::codegen
