// Movement ops. Each but view says, for every result dim, which input offset each index contributes or that
// it reads the fill; the element's offset is the sum. This restates the ops' definitions and does not use
// graph/index_map.
#include <algorithm>
#include <cstring>
#include <optional>

#include "graph/interpret_parts.h"

namespace quernel::interpreter {
namespace {

constexpr int64_t kFill = INT64_MIN;                     // instead of an offset: this index reads the fill
using OffsetTables = std::vector<std::vector<int64_t>>;  // [result dim][index]

// One element per byte for packed dtypes, else the tensor's own bytes.
struct Elements {
  std::vector<uint8_t> unpacked;
  const uint8_t* data = nullptr;
  int64_t size = 1;

  explicit Elements(const Tensor& tensor) : size(element_size(tensor.dtype)) {
    if (is_packed(tensor.dtype)) unpacked = unpack(tensor);
    data = is_packed(tensor.dtype) ? unpacked.data() : tensor.bytes.data();
  }
};

Tensor as_result(const ResultType& type, std::vector<uint8_t> elements) {
  if (is_packed(type.dtype)) elements = pack(elements);
  return {type.dtype, type.dims, Bytes::own(std::move(elements))};
}

// The fill as the bytes of one element.
std::vector<uint8_t> fill_element(DType dtype, double fill) {
  std::vector<uint8_t> bytes(8);
  if (is_float(dtype)) {
    store(dtype, bytes.data(), 0, 1, &fill);
  } else {
    int64_t value = dtype == DType::kBool ? fill != 0 : saturate_to(dtype, fill);
    store(dtype, bytes.data(), 0, 1, &value);
  }
  return bytes;
}

template <int64_t kSize>
void move_row(const std::vector<int64_t>& table, int64_t base, const uint8_t* in, const uint8_t* fill,
              uint8_t* out) {
  for (int64_t offset : table) {
    const uint8_t* source = base == kFill || offset == kFill ? fill : in + (base + offset) * kSize;
    std::memcpy(out, source, kSize);
    out += kSize;
  }
}

Tensor move(const Tensor& x, const ResultType& type, const OffsetTables& tables, double fill) {
  Elements in(x);
  std::vector<uint8_t> fill_bytes = fill_element(type.dtype, fill);
  std::vector<uint8_t> out(type.count() * in.size);
  auto move_row_of_size = in.size == 1   ? move_row<1>
                          : in.size == 2 ? move_row<2>
                          : in.size == 4 ? move_row<4>
                                         : move_row<8>;
  const std::vector<int64_t> single(1, 0);
  const std::vector<int64_t>& last = tables.empty() ? single : tables.back();
  std::vector<int64_t> index(tables.size(), 0);
  for (uint8_t* row = out.data(); row < out.data() + out.size(); row += last.size() * in.size) {
    int64_t base = 0;
    for (size_t d = 0; d + 1 < tables.size() && base != kFill; ++d)
      base = tables[d][index[d]] == kFill ? kFill : base + tables[d][index[d]];
    move_row_of_size(last, base, in.data, fill_bytes.data(), row);
    for (size_t d = tables.size() - (tables.empty() ? 0 : 1); d-- > 0;) {
      if (++index[d] < type.dims[d]) break;
      index[d] = 0;
    }
  }
  return as_result(type, std::move(out));
}

// Input coordinate of padded coordinate `i` (counted from the first input element); nullopt reads the fill.
std::optional<int64_t> pad_source(PadMode mode, int64_t i, int64_t dim) {
  if (i >= 0 && i < dim) return i;
  if (dim == 0) return std::nullopt;
  switch (mode) {
    case PadMode::kConstant:
      return std::nullopt;
    case PadMode::kEdge:
      return i < 0 ? 0 : dim - 1;
    case PadMode::kWrap:
      return ((i % dim) + dim) % dim;
    case PadMode::kReflect: {  // … 2 1 0 1 2 … : the ends are not repeated
      if (dim == 1) return 0;
      int64_t period = 2 * (dim - 1);
      int64_t phase = ((i % period) + period) % period;
      return phase < dim ? phase : period - phase;
    }
  }
  return std::nullopt;
}

OffsetTables offset_tables(const Node& node, const Tensor& x, const ResultType& type) {
  const Attributes& at = node.attributes;
  std::vector<int64_t> strides = row_major_strides(x.dims);
  OffsetTables tables(type.dims.size());
  for (size_t d = 0; d < type.dims.size(); ++d) {
    std::vector<int64_t>& table = tables[d];
    table.resize(type.dims[d]);
    bool flipped = node.op == OpKind::k_flip && std::find(at.ints.begin(), at.ints.end(), d) != at.ints.end();
    for (int64_t i = 0; i < type.dims[d]; ++i) {
      switch (node.op) {
        case OpKind::k_permute:
          table[i] = i * strides[at.ints[d]];
          break;
        case OpKind::k_expand:
          table[i] = x.dims[d] == 1 ? 0 : i * strides[d];
          break;
        case OpKind::k_slice:
          table[i] = (at.starts[d].value() + i * at.steps[d]) * strides[d];
          break;
        case OpKind::k_flip:
          table[i] = (flipped ? x.dims[d] - 1 - i : i) * strides[d];
          break;
        case OpKind::k_pad: {
          auto source = pad_source(at.mode, i - at.starts[d].value(), x.dims[d]);
          table[i] = source ? *source * strides[d] : kFill;
          break;
        }
        default:
          QUERNEL_UNREACHABLE("not a movement op");
      }
    }
  }
  return tables;
}

// An index expression along a row of the result: affine ones advance by a constant, others are evaluated at
// each point.
struct RowExpr {
  const IndexExpr* expr;
  std::optional<StaticForm> affine;
  int64_t value = 0;

  RowExpr(const IndexExpr& e, int rank) : expr(&e) {
    if (std::optional<AffineForm> form = as_affine(e, rank)) affine = static_form(*form);
  }
  void start(const std::vector<int64_t>& point) {
    if (!affine) {
      value = evaluate(*expr, point.data());
      return;
    }
    value = affine->offset;
    for (size_t i = 0; i < affine->coefficients.size(); ++i) value += affine->coefficients[i] * point[i];
  }
  void advance(const std::vector<int64_t>& point) {
    if (affine)
      value += affine->coefficients.back();
    else
      value = evaluate(*expr, point.data());
  }
};

Expected<Tensor> run_view(const Node& node, const Tensor& x, const ResultType& type) {
  Elements in(x);
  std::vector<int64_t> strides = row_major_strides(x.dims);
  int rank = static_cast<int>(type.dims.size());
  std::vector<RowExpr> indices, guards;
  for (const IndexExpr& e : node.attributes.map.indices) indices.emplace_back(e, rank);
  for (const IndexGuard& g : node.attributes.map.guards) guards.emplace_back(g.expr, rank);
  std::vector<uint8_t> fill = fill_element(type.dtype, node.attributes.fill);
  std::vector<uint8_t> out(type.count() * in.size);
  std::vector<int64_t> point(std::max(rank, 1), 0);
  int64_t row_length = rank == 0 ? 1 : type.dims.back();
  for (uint8_t* target = out.data(); target < out.data() + out.size();) {
    for (RowExpr& e : indices) e.start(point);
    for (RowExpr& e : guards) e.start(point);
    for (int64_t i = 0; i < row_length; ++i, target += in.size) {
      bool valid = true;
      for (size_t g = 0; g < guards.size(); ++g)
        valid &= guards[g].value >= node.attributes.map.guards[g].lo.value() &&
                 guards[g].value < node.attributes.map.guards[g].hi.value();
      const uint8_t* source = fill.data();
      if (valid) {
        int64_t offset = 0;
        for (size_t d = 0; d < indices.size(); ++d) {
          if (indices[d].value < 0 || indices[d].value >= x.dims[d])
            return internal_error("view reads index " + std::to_string(indices[d].value) + " of dim " +
                                      std::to_string(d) + ", whose size is " + std::to_string(x.dims[d]),
                                  node.location);
          offset += indices[d].value * strides[d];
        }
        source = in.data + offset * in.size;
      }
      std::memcpy(target, source, in.size);
      if (i + 1 == row_length) break;
      ++point[rank - 1];
      for (RowExpr& e : indices) e.advance(point);
      for (RowExpr& e : guards) e.advance(point);
    }
    target += in.size;
    if (rank > 0) point[rank - 1] = 0;
    for (int d = rank - 2; d >= 0; --d) {
      if (++point[d] < type.dims[d]) break;
      point[d] = 0;
    }
  }
  return as_result(type, std::move(out));
}

}  // namespace

Expected<Tensor> run_movement(const Node& node, const Operands& operands, const ResultType& type) {
  const Tensor& x = *operands[0];
  if (node.op == OpKind::k_reshape || node.op == OpKind::k_contiguous)
    return Tensor{type.dtype, type.dims, x.bytes};
  if (node.op == OpKind::k_view) return run_view(node, x, type);
  return move(x, type, offset_tables(node, x, type), node.attributes.fill);
}

Expected<Tensor> run_cat(const Node& node, const Operands& operands, const ResultType& type) {
  int64_t axis = node.attributes.ints[0], outer = 1, inner = 1;
  for (size_t d = 0; d < type.dims.size(); ++d) {
    if (static_cast<int64_t>(d) < axis) outer *= type.dims[d];
    if (static_cast<int64_t>(d) > axis) inner *= type.dims[d];
  }
  // Packed elements stay packed if no line of an operand ends within a byte.
  const bool as_stored = std::all_of(operands.begin(), operands.end(), [&](const Tensor* operand) {
    return !is_packed(type.dtype) || operand->dims[axis] * inner % 2 == 0;
  });
  std::vector<Elements> unpacked;
  std::vector<std::pair<const uint8_t*, int64_t>> lines;  // of each operand: the first one, bytes
  int64_t all = 0;
  for (const Tensor* operand : operands) {
    const int64_t count = operand->dims[axis] * inner;
    if (as_stored)
      lines.emplace_back(operand->bytes.data(), byte_size(type.dtype, count));
    else
      lines.emplace_back(unpacked.emplace_back(*operand).data, count);
    all += lines.back().second;
  }
  std::vector<uint8_t> out(outer * all);
  uint8_t* target = out.data();
  for (int64_t o = 0; o < outer; ++o) {
    for (const auto& [data, length] : lines) {
      if (length == 0) continue;
      std::memcpy(target, data + o * length, length);
      target += length;
    }
  }
  return as_stored ? Tensor{type.dtype, type.dims, Bytes::own(std::move(out))}
                   : as_result(type, std::move(out));
}

}  // namespace quernel::interpreter
