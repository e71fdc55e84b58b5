#include "schedule/winograd/winograd_weights.h"

#include "support/mapped_file.h"
#include "support/winograd_matrices.h"

namespace quernel::schedule {
namespace {

// bf16 is too coarse for transformed weights, whose rounding errors the output's transform adds up.
DType storage_of(DType weights) { return weights == DType::kF16 ? DType::kF16 : DType::kF32; }

int64_t element_count(const WinogradPlan& plan) {
  return plan.groups * plan.panels() * plan.points() * plan.channels * plan.panel_n();
}

}  // namespace

Tensor winograd_weights(const Tensor& data, const WinogradPlan& plan, const OperandStrides& b) {
  const WinogradForm& form = plan.form;
  const winograd::Matrix& g = winograd::weights_transform(plan.tile);
  std::vector<float> wide;  // of weights stored narrower
  if (data.dtype != DType::kF32)
    for (int64_t i = 0; i < data.count(); ++i) wide.push_back(static_cast<float>(element_as_f64(data, i)));
  const float* w =
      (wide.empty() ? reinterpret_cast<const float*>(data.bytes.data()) : wide.data()) + b.offset.value();
  const DType storage = storage_of(data.dtype);
  int64_t side = plan.tile + 2, points = plan.points(), n = plan.panel_n();
  int64_t stride_y = b.axis[form.window_y].value(), stride_x = b.axis[form.window_x].value();
  int64_t stride_c = b.axis[form.channels].value(), stride_n = b.axis[form.columns].value();
  int64_t stride_g = form.group < 0 ? 0 : b.axis[form.group].value();
  const int64_t count = element_count(plan);
  std::vector<uint8_t> bytes(static_cast<size_t>(byte_size(storage, count)), 0);
  std::vector<double> rows(static_cast<size_t>(side * 3));
  for (int64_t group = 0; group < plan.groups; ++group)
    for (int64_t column = 0; column < plan.columns; ++column)
      for (int64_t channel = 0; channel < plan.channels; ++channel) {
        const float* window = w + group * stride_g + column * stride_n + channel * stride_c;
        for (int64_t i = 0; i < side; ++i)
          for (int64_t x = 0; x < 3; ++x)
            rows[i * 3 + x] = g[i][0] * window[x * stride_x] + g[i][1] * window[stride_y + x * stride_x] +
                              g[i][2] * window[2 * stride_y + x * stride_x];
        int64_t panel = group * plan.panels() + column / n;
        for (int64_t i = 0; i < side; ++i)
          for (int64_t j = 0; j < side; ++j) {
            double sum = g[j][0] * rows[i * 3] + g[j][1] * rows[i * 3 + 1] + g[j][2] * rows[i * 3 + 2];
            int64_t at = ((panel * points + i * side + j) * plan.channels + channel) * n + column % n;
            store_f64(storage, bytes.data(), at, sum);
          }
      }
  return {storage, {plan.groups, plan.panels(), points, plan.channels, n}, Bytes::own(std::move(bytes))};
}

PackedConstant packed_winograd_weights(const Tensor& data, const WinogradPlan& plan, const OperandStrides& b,
                                       const std::string& order) {
  PackedConstant result;
  result.dtype = storage_of(data.dtype);
  result.bytes = byte_size(result.dtype, element_count(plan));
  result.recipe = order + "|panels of " + std::to_string(plan.panel_n());
  result.sources = {data};
  result.pack = [data, plan, b](const PackedConstant::Sink& sink) {
    const Tensor packed = winograd_weights(data, plan, b);
    sink({reinterpret_cast<const std::byte*>(packed.bytes.data()), packed.bytes.size()});
    release_pages(data.bytes.data(), data.bytes.size());
  };
  return result;
}

}  // namespace quernel::schedule
