// Contraction by its definition: for each point of the output axes, the sum over the reduction axes of a * b.
// Floats multiply and add in f64 and are rounded to the accumulator dtype at the end; integers wrap in it.
#include <algorithm>
#include <type_traits>

#include "graph/interpret_parts.h"

namespace quernel::interpreter {
namespace {

// Element offset of an operand's access as an affine form of the axes.
StaticForm flatten(const std::vector<IndexExpr>& map, const std::vector<int64_t>& dims, int axes) {
  std::vector<int64_t> strides = row_major_strides(dims);
  StaticForm flat{std::vector<int64_t>(axes, 0), 0};
  for (size_t d = 0; d < map.size(); ++d) {
    std::optional<AffineForm> affine = as_affine(map[d], axes);
    QUERNEL_ASSERT(affine.has_value());
    StaticForm form = static_form(*affine);
    for (int i = 0; i < axes; ++i) flat.coefficients[i] += form.coefficients[i] * strides[d];
    flat.offset += form.offset * strides[d];
  }
  return flat;
}

// Axes of one kind with the three accesses' coefficients.
struct Axes {
  std::vector<int64_t> extents, a, b, out;
  void add(int64_t extent, int64_t ca, int64_t cb, int64_t cout) {
    extents.push_back(extent), a.push_back(ca), b.push_back(cb), out.push_back(cout);
  }
  int64_t count() const {
    int64_t n = 1;
    for (int64_t e : extents) n *= e;
    return n;
  }
};

// The reduction as a list of offset pairs per block; a long reduction has several blocks, one per point of
// its outer axes.
struct Offsets {
  int64_t a = 0, b = 0;
};
constexpr int64_t kBlock = 1 << 16;

std::vector<Offsets> all_points(const Axes& axes) {
  std::vector<Offsets> points;
  if (axes.extents.empty()) return {Offsets{}};
  for_each_row(axes.extents, {axes.a, axes.b}, [&](const int64_t* offsets) {
    for (int64_t i = 0; i < axes.extents.back(); ++i)
      points.push_back({offsets[0] + i * axes.a.back(), offsets[1] + i * axes.b.back()});
  });
  return points;
}

// Integer products and sums are taken modulo 2^64.
double multiply_add(double sum, double a, double b) { return sum + a * b; }
uint64_t multiply_add(uint64_t sum, uint64_t a, uint64_t b) { return sum + a * b; }

template <class T, class Sum>
struct Loops {
  const T* a;
  const T* b;
  const std::vector<Offsets>& outer;
  const std::vector<Offsets>& block;

  // The sums of kWide outputs whose accesses lie step.a and step.b apart: independent chains, each in the
  // defined order.
  template <int kWide>
  void sums(int64_t a0, int64_t b0, Offsets step, Sum* result) const {
    Sum sum[kWide] = {};
    for (const Offsets& o : outer) {
      for (const Offsets& p : block) {
        const T* x = a + (a0 + o.a + p.a);
        const T* y = b + (b0 + o.b + p.b);
        for (int i = 0; i < kWide; ++i)
          sum[i] = multiply_add(sum[i], static_cast<Sum>(x[i * step.a]), static_cast<Sum>(y[i * step.b]));
      }
    }
    for (int i = 0; i < kWide; ++i) result[i] = sum[i];
  }
};

template <class T, class Sum>
std::vector<Sum> contract(const Contraction& c, const Tensor& a, const Tensor& b, const T* a_data,
                          const T* b_data, const ResultType& type) {
  int rank = static_cast<int>(c.axes.size());
  StaticForm fa = flatten(c.a, a.dims, rank), fb = flatten(c.b, b.dims, rank),
             fo = flatten(c.out, type.dims, rank);
  Axes output, outer, block;
  auto extent = [&](int i) { return c.axes[i].extent.value(); };
  for (int i = 0; i < rank; ++i)
    if (!c.axes[i].reduction)
      output.add(extent(i), fa.coefficients[i], fb.coefficients[i], fo.coefficients[i]);
  int64_t reduced = 1;  // the innermost axes that make up a block
  int first_in_block = rank;
  while (first_in_block > 0 && c.axes[first_in_block - 1].reduction &&
         reduced * extent(first_in_block - 1) <= kBlock)
    reduced *= extent(--first_in_block);
  for (int i = 0; i < rank; ++i)
    if (c.axes[i].reduction)
      (i < first_in_block ? outer : block).add(extent(i), fa.coefficients[i], fb.coefficients[i], 0);

  std::vector<Sum> result(type.count());
  if (output.extents.empty()) output.add(1, 0, 0, 0);
  std::vector<Offsets> outer_points = all_points(outer), block_points = all_points(block);
  Loops<T, Sum> loops{a_data, b_data, outer_points, block_points};
  Offsets step{output.a.back(), output.b.back()};
  constexpr int kWide = 4;
  for_each_row(output.extents, {output.a, output.b, output.out}, [&](const int64_t* offsets) {
    int64_t n = output.extents.back();
    for (int64_t i = 0; i < n;) {
      int64_t a0 = fa.offset + offsets[0] + i * step.a, b0 = fb.offset + offsets[1] + i * step.b;
      Sum sums[kWide];
      int width = i + kWide <= n ? kWide : 1;
      width == kWide ? loops.template sums<kWide>(a0, b0, step, sums)
                     : loops.template sums<1>(a0, b0, step, sums);
      for (int k = 0; k < width; ++k, ++i) result[fo.offset + offsets[2] + i * output.out.back()] = sums[k];
    }
  });
  return result;
}

// An operand's elements as T: its own bytes where they are that already, else converted.
template <class T>
class Loaded {
 public:
  explicit Loaded(const Tensor& tensor) {
    using Element = std::conditional_t<std::is_floating_point_v<T>, double, int64_t>;
    constexpr DType kOwn = std::is_same_v<T, float>    ? DType::kF32
                           : std::is_same_v<T, double> ? DType::kF64
                                                       : DType::kI64;
    if (tensor.dtype == kOwn && reinterpret_cast<uintptr_t>(tensor.bytes.data()) % alignof(T) == 0) {
      data_ = reinterpret_cast<const T*>(tensor.bytes.data());
      return;
    }
    constexpr int64_t kChunk = 4096;
    values_.resize(static_cast<size_t>(tensor.count()));
    std::vector<Element> chunk(kChunk);
    for (int64_t first = 0; first < tensor.count(); first += kChunk) {
      int64_t n = std::min(kChunk, tensor.count() - first);
      load(tensor, first, n, chunk.data());
      for (int64_t i = 0; i < n; ++i) values_[first + i] = static_cast<T>(chunk[i]);
    }
    data_ = values_.data();
  }
  const T* data() const { return data_; }

 private:
  std::vector<T> values_;
  const T* data_ = nullptr;
};

template <class T, class Sum>
std::vector<Sum> contract_loaded(const Contraction& c, const Tensor& a, const Tensor& b,
                                 const ResultType& type) {
  Loaded<T> a_data(a), b_data(b);
  return contract<T, Sum>(c, a, b, a_data.data(), b_data.data(), type);
}

}  // namespace

Expected<Tensor> run_contract(const Node& node, const Operands& operands, const ResultType& type) {
  const Contraction& c = node.attributes.contraction;
  const Tensor &a = *operands[0], &b = *operands[1];
  std::vector<uint8_t> bytes(byte_size(type.dtype, type.count()));
  if (is_float(c.accumulator)) {
    bool wide = a.dtype == DType::kF64 || b.dtype == DType::kF64 || !is_float(a.dtype) || !is_float(b.dtype);
    std::vector<double> sums =
        wide ? contract_loaded<double, double>(c, a, b, type)
             : contract_loaded<float, double>(c, a, b, type);  // f32 holds f16 and bf16 exactly
    for (double& v : sums) v = round_to(c.accumulator, v);
    store(type.dtype, bytes.data(), 0, type.count(), sums.data());
  } else {
    std::vector<uint64_t> sums = contract_loaded<int64_t, uint64_t>(c, a, b, type);
    std::vector<int64_t> values(sums.size());
    for (size_t i = 0; i < sums.size(); ++i)
      values[i] = wrap_to(c.accumulator, static_cast<int64_t>(sums[i]));
    store(type.dtype, bytes.data(), 0, type.count(), values.data());
  }
  return Tensor{type.dtype, type.dims, Bytes::own(std::move(bytes))};
}

}  // namespace quernel::interpreter
