#include "frontends/text/import_text.h"

#include <fstream>
#include <sstream>

#include "graph/text.h"
#include "graph/verify.h"

namespace quernel {

Expected<Graph> import_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  if (!file || !(text << file.rdbuf()))
    return invalid_input("cannot read the file, or it is empty", {path},
                         "check the path and its permissions");
  QUERNEL_TRY(Graph graph, parse_graph(text.str(), path));
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
