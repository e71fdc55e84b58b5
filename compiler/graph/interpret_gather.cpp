// take, gather_elements and gather_nd. An index below zero counts from the end, then indices are clamped into
// range.
#include <algorithm>
#include <cstring>

#include "graph/interpret_parts.h"

namespace quernel::interpreter {
namespace {

int64_t in_range(int64_t index, int64_t dim) {
  return std::clamp<int64_t>(index < 0 ? index + dim : index, 0, dim - 1);
}

std::vector<int64_t> all_indices(const Tensor& indices) {
  std::vector<int64_t> values(indices.count());
  load(indices, 0, indices.count(), values.data());
  return values;
}

int64_t product(const std::vector<int64_t>& dims, size_t first, size_t last) {
  int64_t n = 1;
  for (size_t d = first; d < last; ++d) n *= dims[d];
  return n;
}

// Copies blocks of `block` elements: block i of the result is the source's elements from first_of(i) on.
template <class FirstOf>
std::vector<uint8_t> copy_blocks(const Tensor& x, int64_t blocks, int64_t block, FirstOf first_of) {
  std::vector<uint8_t> unpacked = is_packed(x.dtype) ? unpack(x) : std::vector<uint8_t>();
  const uint8_t* in = is_packed(x.dtype) ? unpacked.data() : x.bytes.data();
  int64_t size = element_size(x.dtype);
  std::vector<uint8_t> out(blocks * block * size);
  if (!out.empty())
    for (int64_t i = 0; i < blocks; ++i)
      std::memcpy(out.data() + i * block * size, in + first_of(i) * size, block * size);
  return is_packed(x.dtype) ? pack(out) : out;
}

std::vector<uint8_t> take(const Node& node, const Tensor& x, const Tensor& indices) {
  size_t axis = node.attributes.ints[0];
  std::vector<int64_t> index = all_indices(indices);
  int64_t outer = product(x.dims, 0, axis), inner = product(x.dims, axis + 1, x.dims.size());
  int64_t n = static_cast<int64_t>(index.size()), dim = x.dims[axis];
  return copy_blocks(x, outer * n, inner,
                     [&](int64_t i) { return (i / n * dim + in_range(index[i % n], dim)) * inner; });
}

std::vector<uint8_t> gather_elements(const Node& node, const Tensor& x, const Tensor& indices) {
  int64_t axis = node.attributes.ints[0];
  std::vector<int64_t> index = all_indices(indices), strides = row_major_strides(x.dims);
  std::vector<int64_t> other = strides;
  other[axis] = 0;
  std::vector<int64_t> first(index.size());
  int64_t next = 0;
  for_each_row(indices.dims, {other}, [&](const int64_t* offsets) {
    for (int64_t i = 0; i < indices.dims.back(); ++i, ++next)
      first[next] = offsets[0] + i * other.back() + in_range(index[next], x.dims[axis]) * strides[axis];
  });
  return copy_blocks(x, static_cast<int64_t>(index.size()), 1, [&](int64_t i) { return first[i]; });
}

std::vector<uint8_t> gather_nd(const Node& node, const Tensor& x, const Tensor& indices) {
  size_t batch = node.attributes.ints[0], length = indices.dims.back();
  std::vector<int64_t> index = all_indices(indices), strides = row_major_strides(x.dims);
  int64_t tuples = product(indices.dims, 0, indices.dims.size() - 1);
  int64_t tuples_per_batch = product(indices.dims, batch, indices.dims.size() - 1);
  int64_t batch_stride = product(x.dims, batch, x.dims.size());
  int64_t block = product(x.dims, batch + length, x.dims.size());
  return copy_blocks(x, tuples, block, [&](int64_t i) {
    int64_t offset = i / tuples_per_batch * batch_stride;
    for (size_t k = 0; k < length; ++k)
      offset += in_range(index[i * length + k], x.dims[batch + k]) * strides[batch + k];
    return offset;
  });
}

}  // namespace

Expected<Tensor> run_gather(const Node& node, const Operands& operands, const ResultType& type) {
  const Tensor &x = *operands[0], &indices = *operands[1];
  std::vector<uint8_t> bytes = node.op == OpKind::k_take              ? take(node, x, indices)
                               : node.op == OpKind::k_gather_elements ? gather_elements(node, x, indices)
                                                                      : gather_nd(node, x, indices);
  return Tensor{type.dtype, type.dims, Bytes::own(std::move(bytes))};
}

}  // namespace quernel::interpreter
