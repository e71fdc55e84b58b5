#include <cmath>
#include <cstdio>
#include <cstring>

#include "codegen/c/program_printer.h"
#include "support/diagnostic.h"

namespace quernel::codegen {
namespace {

// Calls `use(place, buffer)` for every binding of every call.
template <class Use>
void for_each_binding(const StaticProgram& program, const std::vector<loop::Kernel>& kernels,
                      const Use& use) {
  for (const StaticEntry& entry : program.entries)
    for (const Step& step : entry.steps)
      if (step.kind == StepKind::kCall)
        for (size_t i = 0; i < step.bindings.size(); ++i)
          use(step.bindings[i], *kernels[step.kernel].buffers[i]);
}

template <class T>
T element_at(const StaticConstant& constant, uint64_t index) {
  T value;
  std::memcpy(&value, constant.bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

template <class T>
bool all_finite(const StaticConstant& constant) {
  for (uint64_t i = 0; i < constant.bytes.size() / sizeof(T); ++i)
    if (!std::isfinite(element_at<T>(constant, i))) return false;
  return true;
}

std::string float_text(double value, const char* suffix) {
  char text[40];
  if (value == std::floor(value) && std::fabs(value) < 1e6)
    std::snprintf(text, sizeof text, "%.1f%s", value, suffix);
  else
    std::snprintf(text, sizeof text, "%a%s", value, suffix);
  return text;
}

std::string element_text(const std::string& type, const StaticConstant& c, uint64_t i) {
  if (type == "float") return float_text(element_at<float>(c, i), "f");
  if (type == "double") return float_text(element_at<double>(c, i), "");
  if (type == "int8_t") return std::to_string(element_at<int8_t>(c, i));
  if (type == "uint8_t") return std::to_string(element_at<uint8_t>(c, i));
  if (type == "int16_t") return std::to_string(element_at<int16_t>(c, i));
  if (type == "uint16_t") return std::to_string(element_at<uint16_t>(c, i));
  if (type == "uint32_t") return std::to_string(element_at<uint32_t>(c, i)) + "u";
  if (type == "uint64_t") return "UINT64_C(" + std::to_string(element_at<uint64_t>(c, i)) + ")";
  if (type == "int32_t") {
    int32_t value = element_at<int32_t>(c, i);
    return value == INT32_MIN ? "INT32_MIN" : std::to_string(value);
  }
  QUERNEL_ASSERT(type == "int64_t");
  int64_t value = element_at<int64_t>(c, i);
  return value == INT64_MIN ? "INT64_MIN" : "INT64_C(" + std::to_string(value) + ")";
}

}  // namespace

std::string c_memory_type(DType dtype) {
  if (dtype == DType::kF32) return "float";
  if (dtype == DType::kF64) return "double";
  return (is_signed_integer(dtype) ? "int" : "uint") + std::to_string(std::max(bit_width(dtype), 8)) + "_t";
}

WeightsPrinter::WeightsPrinter(const StaticProgram& program, const std::vector<loop::Kernel>& kernels)
    : program_(program) {
  for (const StaticConstant& constant : program.constants)
    if (!constant.bytes.empty()) {
      Array& array = arrays_[constant.offset];
      array.name = program.identifier + "_weights_" + std::to_string(arrays_.size() - 1);
      array.constant = &constant;
    }
  for_each_binding(program, kernels, [&](const Place& place, const loop::BufferNode& b) {
    if (place.space != Space::kConstants) return;
    auto it = arrays_.upper_bound(place.offset);
    if (it == arrays_.begin()) return;
    Array& array = std::prev(it)->second;
    auto bytes = static_cast<uint64_t>(element_size(b.dtype));
    if (!array.type.empty() || array.constant->bytes.size() % bytes != 0) return;
    array.type = c_memory_type(b.dtype);
    array.element_bytes = static_cast<int>(bytes);
    // C has no numbers that are infinite.
    if (b.dtype == DType::kF32 && !all_finite<float>(*array.constant)) array.type = "uint32_t";
    if (b.dtype == DType::kF64 && !all_finite<double>(*array.constant)) array.type = "uint64_t";
  });
  for (auto& [offset, array] : arrays_)
    if (array.type.empty()) array.type = "uint8_t";
}

const WeightsPrinter::Array* WeightsPrinter::find(uint64_t offset) const {
  auto it = arrays_.upper_bound(offset);
  if (it == arrays_.begin()) return nullptr;
  const Array& array = std::prev(it)->second;
  return offset - array.constant->offset < array.constant->bytes.size() ? &array : nullptr;
}

std::string WeightsPrinter::declarations() const {
  std::string text, section = program_.macro + "_WEIGHTS_SECTION ";
  for (const auto& [offset, array] : arrays_)
    text += section + "extern const " + array.type + " " + array.name + "[" +
            std::to_string(array.constant->bytes.size() / static_cast<uint64_t>(array.element_bytes)) +
            "];\n";
  return text;
}

std::string WeightsPrinter::definitions() const {
  std::string text;
  for (const auto& [offset, array] : arrays_) {
    uint64_t count = array.constant->bytes.size() / static_cast<uint64_t>(array.element_bytes);
    std::string line = program_.macro + "_WEIGHTS_SECTION const " + array.type + " " + array.name + "[" +
                       std::to_string(count) + "] = {";
    for (uint64_t i = 0; i < count; ++i) {
      std::string element = element_text(array.type, *array.constant, i) + (i + 1 < count ? "," : "");
      if (line.size() + element.size() > 110) {
        text += line + "\n";
        line = "    " + element;
      } else {
        line += (i == 0 ? "" : " ") + element;
      }
    }
    text += line + "};\n";
  }
  return text;
}

std::string WeightsPrinter::pointer(uint64_t offset, const std::string& type) const {
  const Array* array = find(offset);
  if (!array) return "0";  // of an empty tensor
  uint64_t distance = offset - array->constant->offset;
  bool whole = distance % static_cast<uint64_t>(array->element_bytes) == 0;
  if (array->type == type && whole) {
    uint64_t first = distance / static_cast<uint64_t>(array->element_bytes);
    return array->name + (first == 0 ? "" : " + " + std::to_string(first));
  }
  std::string bytes = "(const void*)" + array->name;
  if (distance != 0)
    bytes = "(const void*)((const uint8_t*)" + bytes + " + " + std::to_string(distance) + ")";
  return "(const " + type + "*)" + bytes;
}

// ---- which pointers may be `restrict`

std::vector<std::vector<bool>> buffers_without_overlap(const StaticProgram& program,
                                                       const std::vector<loop::Kernel>& kernels) {
  std::vector<std::vector<bool>> disjoint;
  for (const loop::Kernel& kernel : kernels) disjoint.emplace_back(kernel.buffers.size(), true);
  auto overlap = [](const Place& a, const loop::BufferNode& x, const Place& b, const loop::BufferNode& y) {
    if (a.space != b.space || a.index != b.index) return false;
    if (x.size == loop::kUnknownSize || y.size == loop::kUnknownSize) return true;
    uint64_t a_end = a.offset + static_cast<uint64_t>(byte_size(x.dtype, x.size));
    uint64_t b_end = b.offset + static_cast<uint64_t>(byte_size(y.dtype, y.size));
    // C compilers warn of the same address even where nothing is behind it.
    return a.offset == b.offset || (a.offset < b_end && b.offset < a_end);
  };
  for (const StaticEntry& entry : program.entries)
    for (const Step& step : entry.steps) {
      if (step.kind != StepKind::kCall) continue;
      const std::vector<loop::Buffer>& buffers = kernels[step.kernel].buffers;
      for (size_t i = 0; i < buffers.size(); ++i)
        for (size_t j = 0; j < buffers.size(); ++j)
          if (i != j && buffers[i]->access != loop::Access::kRead &&
              overlap(step.bindings[i], *buffers[i], step.bindings[j], *buffers[j]))
            disjoint[step.kernel][i] = disjoint[step.kernel][j] = false;
    }
  return disjoint;
}

}  // namespace quernel::codegen
