// TfIdfVectorizer of integer tokens: every n-gram of the pool is compared with every window.
#include <algorithm>

#include "frontends/onnx/operators.h"

namespace quernel::onnx_import {
namespace {

// How often each of `grams` [count, length] occurs in the rows of x [N,C], its tokens `distance` apart:
// [N,count].
ValueId occurrences(NodeImport& n, ValueId x, const std::vector<int64_t>& dims, ValueId grams, int64_t count,
                    int64_t length, int64_t distance) {
  int64_t starts = dims[1] - (length - 1) * distance;
  if (starts < 1) return n.full(DType::kF32, make_shape({dims[0], count}), 0);
  IndexMap map;
  map.indices = {IndexExpr::axis(0), IndexExpr::axis(1) + IndexExpr::axis(2) * distance};
  ValueId windows = n.build.view(x, make_shape({dims[0], starts, length}), std::move(map));
  ValueId equal = n.binary(BinaryOp::k_eq, n.reshape(windows, {dims[0], starts, 1, length}), grams);
  ValueId found = n.build.reduce(OpKind::k_reduce_and, equal, {3}, false);
  return n.build.reduce(OpKind::k_reduce_sum, n.build.cast(found, DType::kF32), {1}, false);
}

}  // namespace

Status import_tfidf_vectorizer(NodeImport& n) {
  constexpr int64_t kLimit = 1 << 20;
  int64_t shortest = n.attr_int("min_gram_length", 1), longest = n.attr_int("max_gram_length", 1),
          max_skip = n.attr_int("max_skip_count", 0);
  std::string mode = n.attr_string("mode", "");
  std::vector<int64_t> firsts = n.attr_ints("ngram_counts").value_or(std::vector<int64_t>()),
                       columns = n.attr_ints("ngram_indexes").value_or(std::vector<int64_t>()),
                       pool = n.attr_ints("pool_int64s").value_or(std::vector<int64_t>());
  std::optional<std::vector<double>> weights = n.attr_floats("weights");
  if (n.attribute("pool_strings"))
    return n.refuse("attribute 'pool_strings': only integer tokens are supported");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF")
    return n.invalid("attribute 'mode': expected TF, IDF or TFIDF, found '" + mode + "'");
  ValueId x = n.build.cast(n.in(0), DType::kI64);
  QUERNEL_TRY(std::vector<int64_t> dims, n.dims(x));
  bool one_row = dims.size() == 1;
  if (one_row) dims.insert(dims.begin(), 1);
  if (dims.size() != 2 || shortest < 1 || longest < shortest || max_skip < 0 || max_skip > kLimit ||
      columns.empty() || *std::min_element(columns.begin(), columns.end()) < 0 ||
      *std::max_element(columns.begin(), columns.end()) > kLimit ||
      static_cast<int64_t>(firsts.size()) < longest || static_cast<int64_t>(pool.size()) > kLimit)
    return n.invalid("expected tokens [C] or [N,C] and a pool of n-grams up to length " +
                     std::to_string(longest));
  x = n.reshape(x, dims);
  std::vector<ValueId> counts;
  std::vector<int64_t> gram_of_column(
      static_cast<size_t>(*std::max_element(columns.begin(), columns.end())) + 1, -1);
  int64_t gram = 0;  // in the order of the pool
  for (int64_t length = 1; length <= static_cast<int64_t>(firsts.size()); ++length) {
    size_t next = static_cast<size_t>(length);
    int64_t from = firsts[next - 1],
            to = next < firsts.size() ? firsts[next] : static_cast<int64_t>(pool.size());
    if (from < 0 || to < from || to > static_cast<int64_t>(pool.size()) || (to - from) % length != 0)
      return n.invalid("attribute 'ngram_counts': expected the bounds of whole n-grams in the pool");
    int64_t count = (to - from) / length;
    if (count == 0) continue;
    if (gram + count > static_cast<int64_t>(columns.size()))
      return n.invalid("attribute 'ngram_indexes': expected one per n-gram");
    for (int64_t i = 0; i < count; ++i) {
      int64_t column = columns[static_cast<size_t>(gram + i)];
      if (column < 0 || gram_of_column[static_cast<size_t>(column)] >= 0)
        return n.refuse("attribute 'ngram_indexes': expected a column of its own for each n-gram");
      gram_of_column[static_cast<size_t>(column)] = gram + i;
    }
    gram += count;
    if (length < shortest || length > longest) {
      counts.push_back(n.full(DType::kF32, make_shape({dims[0], count}), 0));
      continue;
    }
    ValueId grams = n.build.constant(i64_tensor({count, length}, {pool.begin() + from, pool.begin() + to}));
    ValueId sum = occurrences(n, x, dims, grams, count, length, 1);
    // A single token has no distance to skip.
    for (int64_t skip = 1; length > 1 && skip <= max_skip && (length - 1) * (skip + 1) < dims[1]; ++skip)
      sum = n.binary(BinaryOp::k_add, sum, occurrences(n, x, dims, grams, count, length, skip + 1));
    counts.push_back(sum);
  }
  if (counts.empty()) return n.invalid("expected a pool of n-grams");
  ValueId all = n.build.cat(counts, 1);
  if (mode == "IDF") all = n.binary(BinaryOp::k_min, all, 1.0);
  if (mode != "TF" && weights) {
    if (static_cast<int64_t>(weights->size()) != gram)
      return n.invalid("attribute 'weights': expected one per n-gram");
    std::vector<float> values(weights->begin(), weights->end());
    all = n.binary(BinaryOp::k_mul, all, n.build.constant(f32_tensor({gram}, values)));
  }
  // A column without an n-gram reads the zero behind the last one.
  for (int64_t& g : gram_of_column)
    if (g < 0) g = gram;
  all = n.build.pad(all, {0, 0}, {0, 1});
  int64_t width = static_cast<int64_t>(gram_of_column.size());
  ValueId y = n.build.take(all, n.build.constant(i64_tensor({width}, gram_of_column)), 1);
  return n.output(one_row ? n.reshape(y, {width}) : y);
}

}  // namespace quernel::onnx_import
