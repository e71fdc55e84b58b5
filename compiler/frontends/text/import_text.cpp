#include "frontends/text/import_text.h"

#include "graph/text.h"
#include "graph/verify.h"
#include "support/file.h"

namespace quernel {

Expected<Graph> import_text(const std::string& path) {
  std::string reason = "it has no bytes";
  std::optional<std::string> text = read_file(path, &reason);
  if (!text || text->empty())
    return invalid_input("cannot read the file, or it is empty: " + reason, {path},
                         "check the path and its permissions");
  QUERNEL_TRY(Graph graph, parse_graph(*text, path));
  Status status = verify(graph);
  if (!status) {
    Diagnostic d = status.take_errors().front();
    d.kind = DiagnosticKind::kInvalidInput;
    d.hint.clear();
    if (d.place.file.empty()) d.place.file = path;
    return d;
  }
  return graph;
}

}  // namespace quernel
