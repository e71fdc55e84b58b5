// Constant operands of contractions in the order in which kernels walk them.
#include <algorithm>
#include <cstring>

#include "schedule/contraction/pack_operand.h"

namespace quernel::schedule {
namespace {
// Offset in b of each position of an axis.
std::vector<int64_t> b_offsets(const ContractionPlan& plan, int axis) {
  const ContractionPlan::Axis& a = plan.axes[axis];
  std::vector<int64_t> offsets(a.extent.value());
  for (int64_t i = 0; i < a.extent.value(); ++i) {
    int64_t rest = i, offset = 0;
    for (size_t m = a.members.size(); m-- > 0;) {
      int64_t extent = plan.member_extents[a.members[m]].value();
      offset += rest % extent * plan.member_b_strides[a.members[m]].value();
      rest /= extent;
    }
    offsets[i] = offset;
  }
  return offsets;
}

// Words of four bytes or two bf16; offsets of the grid points, steps and columns in the operand.
Tensor pack_words(const Tensor& data, const ContractionPlan& plan, const std::vector<int64_t>& grid,
                  const std::vector<int64_t>& reduction, const std::vector<int64_t>& column,
                  const std::vector<const Tensor*>& constants) {
  int64_t panels = panel_count(plan).value(), rows = panel_rows(plan).value(), panel_n = plan.panel_n();
  const int64_t constant_rows = static_cast<int64_t>(constants.size());
  int64_t last = plan.axes[plan.reduction_axes.back()].extent.value();
  int64_t words = (last + plan.dot - 1) / plan.dot, columns = static_cast<int64_t>(column.size());
  int size = element_size(data.dtype);
  std::vector<int32_t> packed(grid.size() * panels * rows * panel_n, 0);
  int32_t* panel = packed.data();
  for (int64_t g : grid)
    for (int64_t p = 0; p < panels; ++p, panel += rows * panel_n)
      for (int64_t n = 0; n < std::min(panel_n, columns - p * panel_n); ++n) {
        const uint8_t* source =
            data.bytes.data() + size * (plan.b_offset.value() + g + column[p * panel_n + n]);
        for (int64_t i = 0; i < constant_rows; ++i)
          panel[(rows - constant_rows + i) * panel_n + n] =
              static_cast<int32_t>(element_as_i64(*constants[i], p * panel_n + n));
        int32_t* first = panel + (plan.dot_shift != 0 ? panel_n : 0) + n;
        for (size_t k = 0; k < reduction.size(); ++k) {
          int64_t step = static_cast<int64_t>(k), row = step / last * words + step % last / plan.dot;
          uint32_t element = 0;  // its bits
          std::memcpy(&element, source + size * reduction[k], static_cast<size_t>(size));
          auto word = static_cast<uint32_t>(first[row * panel_n]);
          first[row * panel_n] =
              static_cast<int32_t>(word | element << (8 * size * (step % last % plan.dot)));
          if (plan.dot_shift != 0)
            panel[n] -= plan.dot_shift *
                        (data.dtype == DType::kI8 ? static_cast<int8_t>(element) : static_cast<int>(element));
        }
      }
  DType dtype = data.dtype == DType::kI8 ? DType::kI32 : DType::kU32;
  group_columns(plan, {reinterpret_cast<uint8_t*>(packed.data()), packed.size() * sizeof(packed[0])},
                element_size(dtype));
  return make_tensor(dtype, {static_cast<int64_t>(grid.size()), panels, rows, panel_n}, packed);
}

// Vectors of plan.dot bytes, the last ones of a sum filled up with zeros, after the bytes of what cancels plan.dot_shift.
Tensor pack_vectors(const Tensor& data, const ContractionPlan& plan, const std::vector<int64_t>& grid,
                    const std::vector<int64_t>& reduction, const std::vector<int64_t>& column) {
  int64_t panels = panel_count(plan).value(), rows = panel_rows(plan).value(), panel_n = plan.panel_n();
  int64_t last = plan.gathers_rows ? static_cast<int64_t>(reduction.size())
                                   : plan.axes[plan.reduction_axes.back()].extent.value();
  int64_t vectors = (last + plan.dot - 1) / plan.dot, columns = static_cast<int64_t>(column.size());
  std::vector<int8_t> packed(grid.size() * panels * rows * panel_n * plan.dot, 0);
  int8_t* panel = packed.data();
  const int64_t first_row = plan.dot_shift != 0 ? 1 : 0;
  constexpr int kBytes = 4;
  for (int64_t g : grid)
    for (int64_t p = 0; p < panels; ++p, panel += rows * panel_n * plan.dot)
      for (int64_t n = 0; n < std::min(panel_n, columns - p * panel_n); ++n) {
        const uint8_t* source = data.bytes.data() + plan.b_offset.value() + g + column[p * panel_n + n];
        int64_t sum = 0;
        for (size_t k = 0; k < reduction.size(); ++k) {
          int64_t step = static_cast<int64_t>(k),
                  row = first_row + step / last * vectors + step % last / plan.dot;
          const auto element = static_cast<int8_t>(source[reduction[k]]);
          panel[(row * panel_n + n) * plan.dot + step % last % plan.dot] = element;
          sum += data.dtype == DType::kI8 ? element : source[reduction[k]];
        }
        const auto cancels = static_cast<uint32_t>(-plan.dot_shift * sum);
        for (int i = 0; plan.dot_shift != 0 && i < kBytes; ++i)
          panel[i * panel_n + n] = static_cast<int8_t>(cancels >> (8 * i));
      }
  return {data.dtype,
          {static_cast<int64_t>(grid.size()), panels, rows, panel_n, plan.dot},
          make_tensor(DType::kI8, {static_cast<int64_t>(packed.size())}, packed).bytes};
}

// Whether the offsets of columns follow one another.
bool are_adjacent(const int64_t* columns, int64_t count) {
  for (int64_t n = 1; n < count; ++n)
    if (columns[n] != columns[0] + n) return false;
  return true;
}

template <class Element>
void copy_elements(uint8_t* target, const uint8_t* source, const int64_t* columns, int64_t count) {
  for (int64_t n = 0; n < count; ++n)
    std::memcpy(target + n * int64_t{sizeof(Element)}, source + columns[n] * int64_t{sizeof(Element)},
                sizeof(Element));
}
void copy_columns(uint8_t* target, const uint8_t* source, const int64_t* columns, int64_t count, int size) {
  switch (size) {
    case 1:
      return copy_elements<uint8_t>(target, source, columns, count);
    case 2:
      return copy_elements<uint16_t>(target, source, columns, count);
    case 4:
      return copy_elements<uint32_t>(target, source, columns, count);
    default:
      QUERNEL_ASSERT(size == 8);
      return copy_elements<uint64_t>(target, source, columns, count);
  }
}

}  // namespace

void group_columns(const ContractionPlan& plan, std::span<uint8_t> rows, int size) {
  const int64_t together = columns_of_lane(plan), lanes = plan.lanes, block = lanes * together * size;
  if (together == 1) return;
  std::vector<uint8_t> from(static_cast<size_t>(block));
  for (size_t at = 0; at < rows.size(); at += from.size()) {
    std::copy_n(rows.begin() + static_cast<ptrdiff_t>(at), block, from.begin());
    for (int64_t v = 0; v < together; ++v)
      for (int64_t l = 0; l < lanes; ++l)
        std::memcpy(rows.data() + at + (l * together + v) * size, from.data() + (v * lanes + l) * size,
                    static_cast<size_t>(size));
  }
}

PackedOffsets packed_offsets(const ContractionPlan& plan) {
  PackedOffsets offsets{.grid = {0}, .reduction = {0}, .column = {}};
  auto outer_product = [](std::vector<int64_t>& outer, const std::vector<int64_t>& inner) {
    std::vector<int64_t> result;
    result.reserve(outer.size() * inner.size());
    for (int64_t o : outer)
      for (int64_t i : inner) result.push_back(o + i);
    outer = std::move(result);
  };
  for (int axis : plan.grid_axes)
    if (!(plan.axes[axis].b == Dim(0))) outer_product(offsets.grid, b_offsets(plan, axis));
  for (int axis : plan.reduction_axes) outer_product(offsets.reduction, b_offsets(plan, axis));
  offsets.column = b_offsets(plan, plan.vector_axis);
  return offsets;
}

Tensor pack_operand(const Tensor& data, const ContractionPlan& plan,
                    const std::vector<const Tensor*>& constants) {
  int64_t panels = panel_count(plan).value(), steps = reduction_count(plan).value(), panel_n = plan.panel_n();
  int64_t columns = plan.axes[plan.vector_axis].extent.value();
  const auto [grid, reduction, column] = packed_offsets(plan);
  if (packs_bytes(plan)) return pack_vectors(data, plan, grid, reduction, column);
  if (plan.dot > 1) return pack_words(data, plan, grid, reduction, column, constants);
  int size = element_size(data.dtype);
  int64_t count = static_cast<int64_t>(grid.size()) * panels * steps * panel_n;
  std::vector<uint8_t> bytes(static_cast<size_t>(count * size), 0);
  const uint8_t* source = data.bytes.data() + plan.b_offset.value() * size;
  uint8_t* target = bytes.data();
  for (int64_t g : grid)
    for (int64_t p = 0; p < panels; ++p) {
      int64_t width = std::min(panel_n, columns - p * panel_n);
      const int64_t* first = column.data() + p * panel_n;
      const bool adjacent = are_adjacent(first, width);
      for (int64_t k : reduction) {
        if (adjacent)
          std::memcpy(target, source + (g + k + first[0]) * size, static_cast<size_t>(width * size));
        else
          copy_columns(target, source + (g + k) * size, first, width, size);
        target += panel_n * size;
      }
    }
  group_columns(plan, bytes, size);
  return {
      data.dtype, {static_cast<int64_t>(grid.size()), panels, steps, panel_n}, Bytes::own(std::move(bytes))};
}

}  // namespace quernel::schedule
