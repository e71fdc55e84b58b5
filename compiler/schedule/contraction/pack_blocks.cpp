#include "schedule/contraction/pack_blocks.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "schedule/contraction/pack_operand.h"
#include "support/mapped_file.h"

namespace quernel::schedule {
namespace {

// The parts of a quantised constant, held beyond its graph.
struct Source {
  Tensor elements, scales;
  std::optional<Tensor> zeros;
  std::vector<int64_t> groups;
};

// Element `i` of a constant plus `added`, in the low bits.
uint32_t element_bits(const Tensor& data, int64_t i, int64_t added) {
  const uint8_t byte = data.bytes.data()[is_packed(data.dtype) ? i / 2 : i];
  const int element = is_packed(data.dtype) ? (i % 2 != 0 ? byte >> 4 : byte & 15) : byte;
  return static_cast<uint32_t>(element + static_cast<int>(added));
}

// The place of an element's scale, by the element's offset.
int64_t scale_of(const Source& q, int64_t offset) {
  int64_t place = 0, stride = 1;
  for (size_t d = q.groups.size(); d-- > 0;) {
    const int64_t dim = q.elements.dims[d];
    place += offset % dim / q.groups[d] * stride;
    stride *= q.scales.dims[d];
    offset /= dim;
  }
  return place;
}

// Panels of all parts of the grid.
int64_t panels_of_grid(const ContractionPlan& plan) {
  int64_t count = panel_count(plan).value();
  for (int axis : plan.grid_axes)
    if (!(plan.axes[axis].b == Dim(0))) count *= plan.axes[axis].extent.value();
  return count;
}

// Calls `column(place of its panel, column of the panel, offset of its first element)` for each column.
void for_columns(const ContractionPlan& plan, const PackedOffsets& offsets,
                 const std::function<void(int64_t panel, int64_t n, int64_t first)>& column) {
  const int64_t panels = panel_count(plan).value(), even_panels = (panels + 1) / 2, panel_n = plan.panel_n();
  const auto columns = static_cast<int64_t>(offsets.column.size());
  for (size_t g = 0; g < offsets.grid.size(); ++g)
    for (int64_t c = 0; c < columns; ++c) {
      const int64_t p = c / panel_n;
      const int64_t place = plan.odd_panels_apart ? p % 2 * even_panels + p / 2 : p;
      column(static_cast<int64_t>(g) * panels + place, c % panel_n,
             plan.b_offset.value() + offsets.grid[g] + offsets.column[static_cast<size_t>(c)]);
    }
}

// The place of step `step` of column `n` of a panel where words are in pairs of columns (ContractionPlan::Blocks::pairs).
struct Place {
  int64_t step = 0, n = 0;
};
Place place_in_pairs(int64_t step, int64_t n) {
  const int64_t of_pair = n % 2, pair = n / 2 % 2, half = step / 4 % 2;
  return {step / 8 * 8 + 4 * pair + step % 4, n / 4 * 4 + 2 * of_pair + half};
}

std::vector<uint32_t> pack_elements(const Source& q, const ContractionPlan& plan) {
  const PackedOffsets offsets = packed_offsets(plan);
  const QuantizedOperand& format = plan.blocks->format;
  const int64_t rows = panel_rows(plan).value(), panel_n = plan.panel_n();
  const int64_t last = plan.axes[plan.reduction_axes.back()].extent.value(),
                per_word = plan.blocks->per_word();
  const int64_t words = (last + per_word - 1) / per_word;
  const uint32_t mask = (1u << (format.bits - 1) << 1) - 1;
  const int64_t half = int64_t{1} << (format.bits - 1);
  const int64_t added = half - format.middle;
  const uint32_t flipped = plan.blocks->signed_elements ? static_cast<uint32_t>(half) : 0;
  std::vector<uint32_t> packed(static_cast<size_t>(panels_of_grid(plan) * rows * panel_n), 0);
  for_columns(plan, offsets, [&](int64_t panel, int64_t n, int64_t first) {
    uint32_t* words_of_panel = packed.data() + panel * rows * panel_n;
    for (size_t k = 0; k < offsets.reduction.size(); ++k) {
      const int64_t step = static_cast<int64_t>(k);
      Place to{step % last, n};
      if (plan.blocks->pairs) to = place_in_pairs(to.step, n);
      const int64_t of_word = to.step % per_word;
      const uint32_t bits = (element_bits(q.elements, first + offsets.reduction[k], added) & mask) ^ flipped;
      words_of_panel[(step / last * words + to.step / per_word) * panel_n + to.n] |=
          bits << (8 * (of_word % 4) + format.bits * (of_word / 4));
    }
  });
  release_pages(q.elements.bytes.data(), q.elements.bytes.size());
  group_columns(plan, {reinterpret_cast<uint8_t*>(packed.data()), packed.size() * sizeof(packed[0])},
                sizeof(packed[0]));
  return packed;
}

// Calls `parameter(its place among the packed ones, its place in the constant)` for the scale of each block and column.
void for_parameters(const Source& q, const ContractionPlan& plan,
                    const std::function<void(int64_t to, int64_t from)>& parameter) {
  const PackedOffsets offsets = packed_offsets(plan);
  const int64_t last = plan.axes[plan.reduction_axes.back()].extent.value(), steps = plan.blocks->steps;
  const int64_t per_line = (last + steps - 1) / steps, panel_n = plan.panel_n();
  const int64_t rows = scale_rows(plan).value();
  for_columns(plan, offsets, [&](int64_t panel, int64_t n, int64_t first) {
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t step = row / per_line * last + row % per_line * steps;
      parameter((panel * rows + row) * panel_n + n,
                scale_of(q, first + offsets.reduction[static_cast<size_t>(step)]));
    }
  });
}

std::vector<uint8_t> pack_scales(const Source& q, const ContractionPlan& plan) {
  const auto size = static_cast<size_t>(element_size(q.scales.dtype));
  std::vector<uint8_t> packed(
      static_cast<size_t>(panels_of_grid(plan) * scale_rows(plan).value() * plan.panel_n()) * size, 0);
  for_parameters(q, plan, [&](int64_t to, int64_t from) {
    std::memcpy(packed.data() + static_cast<size_t>(to) * size,
                q.scales.bytes.data() + static_cast<size_t>(from) * size, size);
  });
  group_columns(plan, packed, static_cast<int>(size));
  return packed;
}

std::vector<uint8_t> pack_zeros(const Source& q, const ContractionPlan& plan) {
  const QuantizedOperand& format = plan.blocks->format;
  const int64_t count = panels_of_grid(plan) * scale_rows(plan).value() * plan.panel_n();
  std::vector<uint8_t> packed(static_cast<size_t>(byte_size(*format.zeros, count)), 0);
  for_parameters(q, plan, [&](int64_t to, int64_t from) {
    const double zero = (q.zeros ? element_as_f64(*q.zeros, from) : 0) - static_cast<double>(format.middle);
    if (*format.zeros == DType::kF32)
      store_f64(DType::kF32, packed.data(), to, zero);
    else
      store_i64(DType::kI8, packed.data(), to, static_cast<int64_t>(zero));
  });
  group_columns(plan, packed, element_size(*format.zeros));
  return packed;
}

}  // namespace

std::vector<PackedConstant> pack_blocks(const QuantizedConstant& data, const ContractionPlan& plan,
                                        const std::string& order) {
  Source source{*data.elements, *data.scales, std::nullopt, *data.groups};
  std::vector<Tensor> sources{source.elements, source.scales};
  if (data.zeros) sources.push_back(source.zeros.emplace(*data.zeros));
  std::string recipe = order + "|panels of " + std::to_string(plan.panel_n()) +
                       (plan.groups_columns ? ", columns of lanes" : "") +
                       (plan.blocks->signed_elements ? ", signed" : "") +
                       (plan.blocks->pairs ? ", in pairs" : "") + ", groups";
  for (int64_t group : source.groups) recipe += " " + std::to_string(group);
  const int64_t panels = panels_of_grid(plan) * plan.panel_n();
  std::vector<PackedConstant> result;
  auto add = [&](DType dtype, const Dim& rows, const char* what, auto pack) {
    PackedConstant constant;
    constant.dtype = dtype;
    constant.bytes = panels * rows.value() * element_size(dtype);
    constant.sources = sources;
    constant.recipe = recipe + "|" + what;
    constant.pack = [source, plan, pack](const PackedConstant::Sink& sink) {
      const auto packed = pack(source, plan);
      sink(std::as_bytes(std::span(packed)));
    };
    result.push_back(std::move(constant));
  };
  add(DType::kU32, panel_rows(plan), "elements", pack_elements);
  add(data.scales->dtype, scale_rows(plan), "scales", pack_scales);
  if (plan.blocks->format.zeros) add(*plan.blocks->format.zeros, scale_rows(plan), "zero points", pack_zeros);
  return result;
}

}  // namespace quernel::schedule
