// Quantised elements as floats: the difference to the zero point in f32, times the scale in f32.
#include "graph/interpret_parts.h"

namespace quernel::interpreter {

Expected<Tensor> run_dequantize(const Node& node, const Operands& operands, const ResultType& type) {
  const Tensor &x = *operands[0], &scales = *operands[1];
  const Tensor* zeros = operands.size() > 2 ? operands[2] : nullptr;
  const std::vector<int64_t>& groups = node.attributes.ints;
  const int64_t count = type.count(), parameters = scales.count();
  std::vector<double> elements(static_cast<size_t>(count)), scale(static_cast<size_t>(parameters)),
      zero(static_cast<size_t>(parameters), 0);
  load(x, 0, count, elements.data());
  load(scales, 0, parameters, scale.data());
  if (zeros) load(*zeros, 0, parameters, zero.data());
  std::vector<int64_t> place(type.dims.size(), 0);
  for (double& element : elements) {
    int64_t group = 0;
    for (size_t d = 0; d < place.size(); ++d) group = group * scales.dims[d] + place[d] / groups[d];
    const double difference = round_to(DType::kF32, element - zero[static_cast<size_t>(group)]);
    element = difference * scale[static_cast<size_t>(group)];
    for (size_t d = place.size(); d-- > 0;) {
      if (++place[d] < type.dims[d]) break;
      place[d] = 0;
    }
  }
  std::vector<uint8_t> bytes(static_cast<size_t>(byte_size(type.dtype, count)));
  store(type.dtype, bytes.data(), 0, count, elements.data());
  return Tensor{type.dtype, type.dims, Bytes::own(std::move(bytes))};
}

Expected<Tensor> run_dequantize_rows(const Node& node, const Operands& operands, const ResultType& type) {
  const int64_t count = type.count(), group = node.attributes.ints[0];
  const size_t digits = operands.size() - 2;
  std::vector<double> elements(static_cast<size_t>(count), 0), digit(static_cast<size_t>(count)),
      scales(static_cast<size_t>(operands[digits]->count()));
  for (size_t d = 0; d < digits; ++d) {
    load(*operands[d], 0, count, digit.data());
    for (size_t i = 0; i < elements.size(); ++i)
      elements[i] = digit[i] + (d == 0 ? 0 : elements[i] * static_cast<double>(node.attributes.ints[1]));
  }
  const int64_t share = operands[digits + 1]->dtype == DType::kI32 ? type.dims.back() : group;
  load(*operands[digits], 0, static_cast<int64_t>(scales.size()), scales.data());
  for (int64_t i = 0; i < count; ++i)
    elements[static_cast<size_t>(i)] *= scales[static_cast<size_t>(i / share)];
  std::vector<uint8_t> bytes(static_cast<size_t>(byte_size(type.dtype, count)));
  store(type.dtype, bytes.data(), 0, count, elements.data());
  return Tensor{type.dtype, type.dims, Bytes::own(std::move(bytes))};
}

}  // namespace quernel::interpreter
