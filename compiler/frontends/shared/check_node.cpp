#include "frontends/shared/check_node.h"

#include <algorithm>

namespace quernel {
namespace {

constexpr size_t kMaxDimText = 1 << 14;  // of an expression over free dims

}  // namespace

bool is_sane_shape(const std::vector<int64_t>& dims) {
  int64_t count = 1;
  for (int64_t d : dims)
    if (d < 0 || (d > 0 && (__builtin_mul_overflow(count, d, &count) || count > int64_t{1} << 40)))
      return false;
  return true;
}

Status check_sizes(const Graph& graph, int32_t first_new_value, const Location& place) {
  for (size_t v = static_cast<size_t>(first_new_value); v < graph.values.size(); ++v) {
    const TensorType& type = graph.values[v].type;
    std::vector<int64_t> known;
    for (const Dim& d : type.shape) {
      if (d.is_const())
        known.push_back(d.value());
      else if (to_string(d).size() > kMaxDimText)
        return unsupported("a dim that is an expression of more than " + std::to_string(kMaxDimText) +
                               " characters over free dims",
                           place, "fix free dims with --dim NAME=N");
    }
    if (!is_sane_shape(known))
      return unsupported(
          "a tensor of shape " + to_string(type.shape) + " is larger than the limit of 2^40 elements", place);
  }
  return {};
}

Status check_reshapes(ImportedNode& n, int32_t first_new_value) {
  const Graph& graph = n.build.graph();
  for (size_t v = static_cast<size_t>(first_new_value); v < graph.values.size(); ++v) {
    const Node* node = graph.def(static_cast<ValueId>(v));
    if (!node || node->op != OpKind::k_reshape) continue;
    const Shape &from = graph.shape(node->inputs[0]), &to = graph.shape(node->output);
    if (is_static(from) && is_static(to)) continue;
    QUERNEL_CHECK(n.require_equal(element_count(from), element_count(to),
                                  "the elements of an operand of " + to_string(from)));
  }
  return {};
}

Status why_failed(ImportedNode& n, Status status, ErrorSink& errors) {
  bool free_operand =
      std::any_of(n.inputs.begin(), n.inputs.end(), [&](ValueId v) { return !is_static(n.shape(v)); });
  bool named = !n.free_dims.empty() || !n.ranged_dims.empty();
  if (!free_operand && !named) return status;
  // An importer that says nothing of dims may have failed because of any.
  for (ValueId v : n.inputs) {
    std::vector<Symbol> symbols;
    if (!named)
      for (const Dim& dim : n.shape(v)) dim.collect_symbols(symbols);
    for (const Symbol& s : symbols) n.free_dims.insert(s.name);
  }
  throw NodeFailed{errors.report_free_dims(n.free_dims, n.ranged_dims, status.take_errors().front())};
}

}  // namespace quernel
