#include "schedule/contraction/pack_blocks.h"

#include <algorithm>
#include <cstring>

#include "schedule/contraction/pack_operand.h"

namespace quernel::schedule {
namespace {

// Element `i` of a constant plus `added`, in the low bits.
uint32_t element_bits(const Tensor& data, int64_t i, int64_t added) {
  const uint8_t byte = data.bytes.data()[is_packed(data.dtype) ? i / 2 : i];
  const int element = is_packed(data.dtype) ? (i % 2 != 0 ? byte >> 4 : byte & 15) : byte;
  return static_cast<uint32_t>(element + static_cast<int>(added));
}

// The place of an element's scale, by the element's offset.
int64_t scale_of(const QuantizedConstant& q, int64_t offset) {
  int64_t place = 0, stride = 1;
  for (size_t d = q.groups->size(); d-- > 0;) {
    const int64_t dim = q.elements->dims[d];
    place += offset % dim / (*q.groups)[d] * stride;
    stride *= q.scales->dims[d];
    offset /= dim;
  }
  return place;
}

std::vector<uint8_t> zeros_of(int64_t count, DType dtype) {
  return std::vector<uint8_t>(static_cast<size_t>(byte_size(dtype, count)), 0);
}

}  // namespace

PackedBlocks pack_blocks(const QuantizedConstant& q, const ContractionPlan& plan) {
  const auto [grid, reduction, column] = packed_offsets(plan);
  const ContractionPlan::Blocks& blocks = *plan.blocks;
  const QuantizedOperand& format = blocks.format;
  const int64_t panels = panel_count(plan).value(), rows = panel_rows(plan).value(), panel_n = plan.panel_n();
  const int64_t last = plan.axes[plan.reduction_axes.back()].extent.value(), per_word = blocks.per_word();
  const int64_t words = (last + per_word - 1) / per_word, per_line = (last + blocks.steps - 1) / blocks.steps;
  const int64_t scale_rows = schedule::scale_rows(plan).value(),
                columns = static_cast<int64_t>(column.size());
  const auto points = static_cast<int64_t>(grid.size());
  std::vector<uint32_t> packed(static_cast<size_t>(points * panels * rows * panel_n),
                               0);  // scales beyond are 0
  const int64_t parameters = points * panels * scale_rows * panel_n;
  std::vector<uint8_t> scales = zeros_of(parameters, q.scales->dtype), zeros;
  if (format.zeros) zeros = zeros_of(parameters, *format.zeros);
  const auto scale_bytes = static_cast<size_t>(element_size(q.scales->dtype));
  const uint32_t mask = (1u << (format.bits - 1) << 1) - 1;
  const int64_t added = (int64_t{1} << (format.bits - 1)) - format.middle;
  const int64_t even_panels = (panels + 1) / 2;
  for (int64_t g = 0; g < points; ++g)
    for (int64_t p = 0; p < panels; ++p) {
      const int64_t place = g * panels + (plan.odd_panels_apart ? p % 2 * even_panels + p / 2 : p);
      for (int64_t n = 0; n < std::min(panel_n, columns - p * panel_n); ++n) {
        const int64_t first = plan.b_offset.value() + grid[static_cast<size_t>(g)] +
                              column[static_cast<size_t>(p * panel_n + n)];
        uint32_t* word = packed.data() + place * rows * panel_n + n;
        const int64_t parameter = place * scale_rows * panel_n + n;
        for (size_t k = 0; k < reduction.size(); ++k) {
          const int64_t step = static_cast<int64_t>(k), line = step / last, of_line = step % last;
          const int64_t of_word = of_line % per_word;
          const uint32_t bits = element_bits(*q.elements, first + reduction[k], added) & mask;
          word[(line * words + of_line / per_word) * panel_n] |=
              bits << (8 * (of_word % 4) + format.bits * (of_word / 4));
          if (of_line % blocks.steps != 0) continue;
          const int64_t from = scale_of(q, first + reduction[k]),
                        to = parameter + (line * per_line + of_line / blocks.steps) * panel_n;
          std::memcpy(scales.data() + static_cast<size_t>(to) * scale_bytes,
                      q.scales->bytes.data() + static_cast<size_t>(from) * scale_bytes, scale_bytes);
          if (!format.zeros) continue;
          const double zero =
              (q.zeros ? element_as_f64(*q.zeros, from) : 0) - static_cast<double>(format.middle);
          if (*format.zeros == DType::kF32)
            store_f64(DType::kF32, zeros.data(), to, zero);
          else
            store_i64(DType::kI8, zeros.data(), to, static_cast<int64_t>(zero));
        }
      }
    }
  const std::vector<int64_t> dims{points, panels, scale_rows, panel_n};
  PackedBlocks result{.elements = make_tensor(DType::kU32, {points, panels, rows, panel_n}, packed),
                      .scales = {q.scales->dtype, dims, Bytes::own(std::move(scales))},
                      .zeros = {}};
  if (format.zeros) result.zeros = Tensor{*format.zeros, dims, Bytes::own(std::move(zeros))};
  return result;
}

}  // namespace quernel::schedule
