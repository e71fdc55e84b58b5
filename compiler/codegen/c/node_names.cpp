#include "codegen/c/node_names.h"

#include <set>

#include "schemas/printable.h"

namespace quernel::codegen {

std::string node_names_in_comment(const std::string& names) {
  constexpr size_t kMost = 160;
  std::string text = printable(names.size() > kMost ? names.substr(0, kMost) + "..." : names);
  for (char& c : text)
    if (c == '*' || c == '/' || c == '\\' || c == '?') c = '.';
  return text;
}

std::vector<std::vector<std::string>> nodes_of_kernels(const StaticProgram& program) {
  std::vector<std::vector<std::string>> nodes(program.kernels.size());
  std::vector<std::set<std::string>> seen(program.kernels.size());
  for (const StaticEntry& entry : program.entries)
    for (const Step& step : entry.steps) {
      if (step.kind != StepKind::kCall || step.name.empty()) continue;
      std::string text = node_names_in_comment(step.name);
      if (seen[step.kernel].insert(text).second) nodes[step.kernel].push_back(std::move(text));
    }
  return nodes;
}

}  // namespace quernel::codegen
