// Sparse tensors: a tree of dims in traversal order, of which a sparse one lists the indices that occur. Dims after
// those of the tensor are of blocks: block_map names the dim that each of them divides.
#include <algorithm>
#include <numeric>

#include "frontends/tflite/tensors.h"

namespace quernel::tflite_import {
namespace {

std::vector<int64_t> values_of(const tflite::DimensionMetadata& dim, bool segments) {
  std::vector<int64_t> values;
  auto copy = [&](const auto* vector) {
    if (vector && vector->values()) values.assign(vector->values()->begin(), vector->values()->end());
  };
  tflite::SparseIndexVector type = segments ? dim.array_segments_type() : dim.array_indices_type();
  const void* table = segments ? dim.array_segments() : dim.array_indices();
  if (type == tflite::SparseIndexVector::Int32Vector) copy(static_cast<const tflite::Int32Vector*>(table));
  if (type == tflite::SparseIndexVector::Uint16Vector) copy(static_cast<const tflite::Uint16Vector*>(table));
  if (type == tflite::SparseIndexVector::Uint8Vector) copy(static_cast<const tflite::Uint8Vector*>(table));
  return values;
}

struct Level {
  bool sparse = false;
  int64_t size = 0;
  std::vector<int64_t> segments, indices;
};

// Walks the tree and copies each stored element to its place.
class Densifier {
 public:
  Densifier(const Tensor& stored, std::vector<int64_t> dims, std::vector<Level> levels,
            std::vector<int64_t> order, std::vector<int64_t> block_map)
      : stored_(stored),
        dims_(std::move(dims)),
        levels_(std::move(levels)),
        order_(std::move(order)),
        block_map_(std::move(block_map)),
        at_(levels_.size(), 0),
        bytes_(static_cast<size_t>(
                   std::accumulate(dims_.begin(), dims_.end(), int64_t{1}, std::multiplies<>())) *
               static_cast<size_t>(element_size(stored.dtype))) {}

  // Returns whether the tree fits the elements and the shape.
  bool run() { return walk(0, 0) && next_ == stored_.count(); }
  std::vector<uint8_t> take() { return std::move(bytes_); }

 private:
  bool walk(size_t level, int64_t node) {
    if (level == levels_.size()) return place();
    const Level& l = levels_[level];
    int64_t begin = 0, end = l.size;
    if (l.sparse) {
      if (node + 1 >= static_cast<int64_t>(l.segments.size())) return false;
      begin = l.segments[static_cast<size_t>(node)];
      end = l.segments[static_cast<size_t>(node) + 1];
      if (begin < 0 || end < begin || end > static_cast<int64_t>(l.indices.size())) return false;
    }
    for (int64_t k = begin; k < end; ++k) {
      at_[static_cast<size_t>(order_[level])] = l.sparse ? l.indices[static_cast<size_t>(k)] : k;
      if (!walk(level + 1, l.sparse ? k : node * l.size + k)) return false;
    }
    return true;
  }

  bool place() {
    if (next_ >= stored_.count()) return false;
    int64_t flat = 0;
    for (size_t d = 0; d < dims_.size(); ++d) {
      int64_t index = at_[d];
      for (size_t b = 0; b < block_map_.size(); ++b)
        if (block_map_[b] == static_cast<int64_t>(d)) index = index * block_size(b) + at_[dims_.size() + b];
      if (index < 0 || index >= dims_[d]) return false;
      flat = flat * dims_[d] + index;
    }
    size_t size = static_cast<size_t>(element_size(stored_.dtype));
    std::copy_n(stored_.bytes.data() + static_cast<size_t>(next_++) * size, size,
                bytes_.begin() + flat * static_cast<int64_t>(size));
    return true;
  }

  int64_t block_size(size_t block) const {
    for (size_t level = 0; level < levels_.size(); ++level)
      if (order_[level] == static_cast<int64_t>(dims_.size() + block)) return levels_[level].size;
    return 1;
  }

  const Tensor& stored_;
  std::vector<int64_t> dims_;
  std::vector<Level> levels_;
  std::vector<int64_t> order_, block_map_, at_;
  std::vector<uint8_t> bytes_;
  int64_t next_ = 0;
};

}  // namespace

Expected<Tensor> make_dense(const tflite::SparsityParameters& sparsity, const Tensor& stored,
                            const std::vector<int64_t>& dims, const Location& place) {
  Diagnostic bad = invalid_input("the description of a sparse tensor contradicts its shape or data", place);
  constexpr int64_t kMaxBytes = int64_t{1} << 32;
  std::vector<int64_t> order, block_map;
  for (int32_t d : elements(sparsity.traversal_order())) order.push_back(d);
  for (int32_t d : elements(sparsity.block_map())) block_map.push_back(d);
  std::vector<Level> levels;
  if (sparsity.dim_metadata())
    for (const tflite::DimensionMetadata* dim : *sparsity.dim_metadata()) {
      if (unknown_field(*dim) || dim->format() > tflite::DimensionType::SPARSE_CSR) return bad;
      bool sparse = dim->format() == tflite::DimensionType::SPARSE_CSR;
      levels.push_back({sparse, dim->dense_size(), values_of(*dim, true), values_of(*dim, false)});
    }
  std::vector<int64_t> sorted = order, expected(dims.size() + block_map.size());
  std::sort(sorted.begin(), sorted.end());
  std::iota(expected.begin(), expected.end(), 0);
  bool fits = sorted == expected && levels.size() == order.size();
  for (int64_t d : block_map) fits = fits && d >= 0 && d < static_cast<int64_t>(dims.size());
  // Blocks are dense. No level has more indices than its dim, and ascending segments visit each index once, so that
  // the walk takes no longer than the tensor is large.
  bool empty = std::find(dims.begin(), dims.end(), 0) != dims.end();
  for (size_t i = 0; fits && !empty && i < levels.size(); ++i) {
    size_t level = static_cast<size_t>(order[i]);
    bool block = level >= dims.size();
    int64_t size = dims[block ? static_cast<size_t>(block_map[level - dims.size()]) : level];
    fits = levels[i].sparse ? !block && std::is_sorted(levels[i].segments.begin(), levels[i].segments.end())
                            : levels[i].size > 0 && levels[i].size <= size;
  }
  int64_t bytes = element_size(stored.dtype);
  for (int64_t d : dims) fits = fits && !__builtin_mul_overflow(bytes, d, &bytes) && bytes <= kMaxBytes;
  if (!fits) return bad;
  if (bytes == 0) return Tensor{stored.dtype, dims, Bytes::own({})};
  Densifier densifier(stored, dims, std::move(levels), std::move(order), std::move(block_map));
  if (!densifier.run()) return bad;
  return Tensor{stored.dtype, dims, Bytes::own(densifier.take())};
}

}  // namespace quernel::tflite_import
