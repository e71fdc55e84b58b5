#include "frontends/shared/empty_dims.h"

namespace quernel {
namespace {

// The same nodes, of which `graph` knows every size that `other` knows.
bool is_as_good(const Graph& graph, const Graph& other) {
  if (graph.nodes.size() != other.nodes.size()) return false;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node &node = graph.nodes[i], &like = other.nodes[i];
    const Shape &shape = graph.shape(node.output), &known = other.shape(like.output);
    if (node.op != like.op || shape.size() != known.size()) return false;
    for (size_t d = 0; d < shape.size(); ++d)
      if (known[d].is_const() && !shape[d].is_const()) return false;
    if (!node.attributes.control) continue;
    const std::vector<Graph>&bodies = node.attributes.control->bodies,
          &others = like.attributes.control->bodies;
    for (size_t b = 0; b < bodies.size(); ++b)
      if (b >= others.size() || !is_as_good(bodies[b], others[b])) return false;
  }
  return true;
}

}  // namespace

Expected<ImportedModel> import_with_empty_dims(const ImportAttempt& attempt) {
  constexpr size_t kMostTried = 8;
  std::set<std::string> unranged;
  auto import_with = [&](const std::set<std::string>& never_empty) { return attempt(never_empty, unranged); };
  Expected<ImportedModel> all_empty = import_with({});
  if (unranged.empty()) return all_empty;
  const std::set<std::string> all = unranged;
  Expected<ImportedModel> none_empty = import_with(all);
  auto is_best = [&](const Expected<ImportedModel>& result) {
    return result && (!none_empty || is_as_good(result->graph, none_empty->graph));
  };
  if (is_best(all_empty)) return all_empty;
  if (!none_empty) return none_empty;
  std::set<std::string> never_empty = all, costly;  // costly: could be empty
  if (all.size() == 1 || all.size() > kMostTried) {
    if (all_empty) costly = all;
  } else {
    for (const std::string& name : all) {
      std::set<std::string> others = all;
      others.erase(name);
      Expected<ImportedModel> alone = import_with(others);
      if (is_best(alone)) never_empty.erase(name);
      if (alone && never_empty.count(name)) costly.insert(name);
    }
  }
  if (never_empty.size() < all.size())
    if (Expected<ImportedModel> some = import_with(never_empty); is_best(some)) none_empty = std::move(some);
  for (const std::string& name : costly)
    if (none_empty->graph.find_symbol(name))
      none_empty->notes.push_back("free dim '" + name +
                                  "' is at least 1, which makes other sizes known; --dim " + name +
                                  "=0..N allows 0");
  return none_empty;
}

}  // namespace quernel
