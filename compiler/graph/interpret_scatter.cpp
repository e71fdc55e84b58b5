// Scatters: the template is copied, then each update in row-major order is combined with what stands at its
// place.
#include <cstring>

#include "graph/interpret_parts.h"

namespace quernel::interpreter {
namespace {

int64_t product(const std::vector<int64_t>& dims, size_t first, size_t last) {
  int64_t n = 1;
  for (size_t d = first; d < last; ++d) n *= dims[d];
  return n;
}

// The place of every update: `index` its row-major number. -1: out of range.
class Places {
 public:
  Places(const Node& node, const Tensor& x, const Tensor& indices, const Tensor& updates)
      : node_(node),
        x_(x),
        indices_(indices),
        updates_(updates),
        index_(static_cast<size_t>(indices.count())) {
    load(indices, 0, indices.count(), index_.data());
    strides_ = row_major_strides(x.dims);
  }

  int64_t of(int64_t update) const {
    size_t parameter = static_cast<size_t>(node_.attributes.ints[0]);
    if (node_.op == OpKind::k_scatter_nd) return of_tuple(update, parameter);
    int64_t inner = product(x_.dims, parameter + 1, x_.dims.size());
    if (node_.op == OpKind::k_scatter_rows) {
      int64_t rows = static_cast<int64_t>(index_.size());
      int64_t row = in_range(index_[static_cast<size_t>(update / inner % rows)], x_.dims[parameter]);
      int64_t outer = update / inner / rows;
      return row < 0 ? -1 : (outer * x_.dims[parameter] + row) * inner + update % inner;
    }
    int64_t place = in_range(index_[static_cast<size_t>(update)], x_.dims[parameter]), rest = update;
    if (place < 0) return -1;
    place *= strides_[parameter];
    for (size_t d = x_.dims.size(); d-- > 0; rest /= updates_.dims[d])
      if (d != parameter) place += rest % updates_.dims[d] * strides_[d];
    return place;
  }

 private:
  static int64_t in_range(int64_t index, int64_t dim) {
    if (index < 0) index += dim;
    return index >= 0 && index < dim ? index : -1;
  }

  int64_t of_tuple(int64_t update, size_t batch) const {
    size_t length = static_cast<size_t>(indices_.dims.back());
    int64_t block = product(x_.dims, batch + length, x_.dims.size());
    int64_t tuple = update / block;
    int64_t tuples_per_batch = product(indices_.dims, batch, indices_.dims.size() - 1);
    int64_t place = tuple / tuples_per_batch * product(x_.dims, batch, x_.dims.size()) + update % block;
    for (size_t k = 0; k < length; ++k) {
      int64_t index = in_range(index_[static_cast<size_t>(tuple) * length + k], x_.dims[batch + k]);
      if (index < 0) return -1;
      place += index * strides_[batch + k];
    }
    return place;
  }

  const Node& node_;
  const Tensor &x_, &indices_, &updates_;
  std::vector<int64_t> index_, strides_;
};

template <class T, class Combine>
Tensor scatter(const Places& places, const Tensor& x, const Tensor& updates, Combine combine) {
  std::vector<T> values(static_cast<size_t>(x.count())), with(static_cast<size_t>(updates.count()));
  load(x, 0, x.count(), values.data());
  load(updates, 0, updates.count(), with.data());
  for (int64_t i = 0; i < updates.count(); ++i)
    if (int64_t place = places.of(i); place >= 0) {
      T& value = values[static_cast<size_t>(place)];
      value = combine(value, with[static_cast<size_t>(i)]);
    }
  std::vector<uint8_t> bytes(static_cast<size_t>(byte_size(x.dtype, x.count())));
  store(x.dtype, bytes.data(), 0, x.count(), values.data());
  return {x.dtype, x.dims, Bytes::own(std::move(bytes))};
}

// kSet keeps every bit, of NaNs too.
Tensor set(const Places& places, const Tensor& x, const Tensor& updates) {
  std::vector<uint8_t> bytes(x.bytes.data(), x.bytes.data() + x.bytes.size());
  size_t size = static_cast<size_t>(element_size(x.dtype));
  for (int64_t i = 0; i < updates.count(); ++i)
    if (int64_t place = places.of(i); place >= 0)
      std::memcpy(bytes.data() + static_cast<size_t>(place) * size,
                  updates.bytes.data() + static_cast<size_t>(i) * size, size);
  return {x.dtype, x.dims, Bytes::own(std::move(bytes))};
}

Tensor scatter_floats(ScatterMode mode, const Places& places, const Tensor& x, const Tensor& updates) {
  DType dtype = x.dtype;
  switch (mode) {
    case ScatterMode::kAdd:
      return scatter<double>(places, x, updates, [=](double a, double b) { return round_to(dtype, a + b); });
    case ScatterMode::kMul:
      return scatter<double>(places, x, updates, [=](double a, double b) { return round_to(dtype, a * b); });
    case ScatterMode::kMax:
      return scatter<double>(places, x, updates, maximum);
    default:
      return scatter<double>(places, x, updates, minimum);
  }
}

Tensor scatter_integers(ScatterMode mode, const Places& places, const Tensor& x, const Tensor& updates) {
  DType dtype = x.dtype;
  bool is_signed = is_signed_integer(dtype);
  auto wraps = [&](auto op) {
    return scatter<int64_t>(places, x, updates, [=](int64_t a, int64_t b) {
      return wrap_to(dtype, static_cast<int64_t>(op(static_cast<uint64_t>(a), static_cast<uint64_t>(b))));
    });
  };
  auto less = [=](int64_t a, int64_t b) {
    return is_signed ? a < b : static_cast<uint64_t>(a) < static_cast<uint64_t>(b);
  };
  switch (mode) {
    case ScatterMode::kAdd:
      return wraps([](uint64_t a, uint64_t b) { return a + b; });
    case ScatterMode::kMul:
      return wraps([](uint64_t a, uint64_t b) { return a * b; });
    case ScatterMode::kMax:
      return scatter<int64_t>(places, x, updates, [=](int64_t a, int64_t b) { return less(a, b) ? b : a; });
    default:
      return scatter<int64_t>(places, x, updates, [=](int64_t a, int64_t b) { return less(b, a) ? b : a; });
  }
}

}  // namespace

Expected<Tensor> run_scatter(const Node& node, const Operands& operands, const ResultType&) {
  const Tensor &x = *operands[0], &updates = *operands[2];
  Places places(node, x, *operands[1], updates);
  ScatterMode mode = node.attributes.scatter;
  if (mode == ScatterMode::kSet) return set(places, x, updates);
  return is_float(x.dtype) ? scatter_floats(mode, places, x, updates)
                           : scatter_integers(mode, places, x, updates);
}

}  // namespace quernel::interpreter
