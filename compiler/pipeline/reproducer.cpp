#include "pipeline/reproducer.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "graph/control.h"
#include "graph/text.h"
#include "loop/print.h"
#include "support/fatal_hook.h"
#include "support/file.h"

namespace quernel {
namespace {

Tensor filled(const Tensor& like) {
  std::vector<uint8_t> bytes(like.bytes.size());
  const size_t element = static_cast<size_t>(std::max(1, element_size(like.dtype)));
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = like.bytes.data()[i % element];
  return {like.dtype, like.dims, Bytes::own(std::move(bytes))};
}

void shrink_constants(Graph& graph) {
  for (Node& node : graph.nodes) {
    if (node.op == OpKind::k_constant && node.attributes.tensor.count() > kMostPrinted)
      node.attributes.tensor = filled(node.attributes.tensor);
    if (!is_control(node.op)) continue;
    auto control = std::make_shared<Control>(*node.attributes.control);
    for (Graph& body : control->bodies) shrink_constants(body);
    node.attributes.control = std::move(control);
  }
}

void write_reproducer(const std::string& dir, std::string_view stage, const std::string& text) {
  std::string path = (std::filesystem::path(dir) / ("quernel-" + std::string(stage) + ".test")).string();
  if (write_file(path, text))
    std::fprintf(stderr, "quernel: wrote '%s', which reproduces this; please attach it to your report\n",
                 path.c_str());
}

}  // namespace

std::string graph_reproducer(std::string_view key, std::string_view stage, const Graph& graph,
                             const Target& target) {
  Graph small = graph;
  shrink_constants(small);
  return "# " + std::string(key) + ": " + std::string(stage) + "\n# target: " + target.name +
         "\n# Reproduces an internal error.\n\n# case: reproducer\n# input\n" + print(small) + "# expect\n";
}

std::string loop_reproducer(std::string_view pass, std::string_view name, const std::string& text) {
  return "# pass: " + std::string(pass) +
         "\n# Reproduces an internal error.\n\n# case: " + std::string(name) + "\n# input\n" + text +
         "# expect\n";
}

std::string code_reproducer(const std::vector<loop::Kernel>& kernels, std::string_view language,
                            const std::string& target) {
  std::string text = "# Reproduces an internal error.\n";
  for (const loop::Kernel& kernel : kernels)
    text += "\n# case: " + kernel.name + "\n# input\n" + loop::to_string(kernel) + "# " +
            std::string(language) + " " + target + "\n";
  return text;
}

Status with_reproducer(const std::string& dir, std::string_view stage,
                       const std::function<std::string()>& text, const std::function<Status()>& work) {
  FatalHook hook([&] { write_reproducer(dir, stage, text()); });
  Status status = work();
  if (!status && std::any_of(status.errors().begin(), status.errors().end(),
                             [](const Diagnostic& d) { return d.kind == DiagnosticKind::kInternal; }))
    write_reproducer(dir, stage, text());
  return status;
}

}  // namespace quernel
