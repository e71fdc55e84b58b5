#include "compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "quernel/runtime.h"

namespace quernel::tools {
namespace {

using tensor_file::HostTensor;

bool is_float(qnl_dtype dtype) {
  switch (dtype) {
    case QNL_F32:
    case QNL_F16:
    case QNL_BF16:
    case QNL_F64:
    case QNL_F8E4M3:
    case QNL_F8E5M2:
      return true;
    default:
      return false;
  }
}

std::string type_text(const HostTensor& t) {
  std::string text = std::string(qnl_dtype_name(t.dtype)) + "[";
  for (size_t d = 0; d < t.shape.size(); ++d) text += (d == 0 ? "" : ",") + std::to_string(t.shape[d]);
  return text + "]";
}

std::string index_text(const HostTensor& t, uint64_t index) {
  std::string text;
  for (size_t d = t.shape.size(); d-- > 0;) {
    uint64_t dim = static_cast<uint64_t>(t.shape[d]);
    text = std::to_string(index % dim) + (text.empty() ? "" : ",") + text;
    index /= dim;
  }
  return "[" + text + "]";
}

// An element as text; 64-bit integers without going through a double.
std::string value_text(const HostTensor& t, uint64_t index) {
  if (t.dtype == QNL_I64 || t.dtype == QNL_U64) {
    int64_t value;
    std::memcpy(&value, t.bytes.data() + index * 8, 8);
    return t.dtype == QNL_I64 ? fmt::format("{}", value) : fmt::format("{}", static_cast<uint64_t>(value));
  }
  return fmt::format("{:.8g}", value_at(t, index));
}

std::optional<std::string> compare_exactly(const HostTensor& expected, const HostTensor& found,
                                           uint64_t count) {
  bool packed = expected.dtype == QNL_I4 || expected.dtype == QNL_U4;
  uint64_t size = qnl_dtype_bytes(expected.dtype, 1), differ = 0, first = 0;
  for (uint64_t i = 0; i < count; ++i) {
    bool same = packed
                    ? value_at(expected, i) == value_at(found, i)
                    : std::memcmp(expected.bytes.data() + i * size, found.bytes.data() + i * size, size) == 0;
    if (!same && differ++ == 0) first = i;
  }
  if (differ == 0) return std::nullopt;
  return fmt::format("{} of {} elements differ, first at {}: expected {}, found {}", differ, count,
                     index_text(expected, first), value_text(expected, first), value_text(found, first));
}

// Error beyond what is allowed, in units of what is allowed; <= 1 is fine, infinity where no tolerance
// applies.
double excess(double expected, double found, const Tolerance& tolerance) {
  if (std::isnan(expected) || std::isnan(found))
    return std::isnan(expected) && std::isnan(found) ? 0 : INFINITY;
  if (std::isinf(expected) || std::isinf(found)) return expected == found ? 0 : INFINITY;
  double error = std::fabs(found - expected), allowed = tolerance.atol + tolerance.rtol * std::fabs(expected);
  if (error == 0) return 0;
  return allowed > 0 ? error / allowed : INFINITY;
}

std::optional<std::string> compare_floats(const HostTensor& expected, const HostTensor& found, uint64_t count,
                                          const Tolerance& tolerance) {
  uint64_t differ = 0, worst = 0, finite = 0;
  double worst_excess = 0, max_absolute = 0, max_relative = 0, sum = 0;
  for (uint64_t i = 0; i < count; ++i) {
    double e = value_at(expected, i), f = value_at(found, i);
    double over = excess(e, f, tolerance);
    differ += over > 1;
    if (over > worst_excess) worst_excess = over, worst = i;
    double error = std::fabs(f - e);
    if (!std::isfinite(error)) continue;
    ++finite;
    sum += error;
    max_absolute = std::max(max_absolute, error);
    if (e != 0) max_relative = std::max(max_relative, error / std::fabs(e));
  }
  if (differ > 0)
    return fmt::format(
        "{} of {} elements beyond rtol {:g}, atol {:g}; max abs error {:.3g}, max rel error {:.3g}; worst at "
        "{}: expected {}, found {}",
        differ, count, tolerance.rtol, tolerance.atol, max_absolute, max_relative,
        index_text(expected, worst), value_text(expected, worst), value_text(found, worst));
  if (double mean = finite > 0 ? sum / static_cast<double>(finite) : 0;
      tolerance.mean_atol && mean > *tolerance.mean_atol)
    return fmt::format("mean abs error {:.3g} beyond {:g}", mean, *tolerance.mean_atol);
  return std::nullopt;
}

// Values that are equal share the first place.
std::optional<std::string> compare_top1(const HostTensor& expected, const HostTensor& found, uint64_t count) {
  uint64_t row = expected.shape.empty() ? 1 : static_cast<uint64_t>(expected.shape.back());
  for (uint64_t begin = 0; begin < count; begin += row) {
    uint64_t e = begin, f = begin;
    for (uint64_t i = begin; i < begin + row; ++i) {
      if (value_at(expected, i) > value_at(expected, e)) e = i;
      if (value_at(found, i) > value_at(found, f)) f = i;
    }
    if (value_at(found, e) == value_at(found, f) || value_at(expected, e) == value_at(expected, f)) continue;
    return fmt::format("top-1 differs: expected {} ({}), found {} ({})", index_text(expected, e),
                       value_text(expected, e), index_text(expected, f), value_text(found, f));
  }
  return std::nullopt;
}

double largest_of(const HostTensor& tensor) {
  double largest = 0;
  for (uint64_t i = 0; i < tensor_file::element_count(tensor.shape).value_or(0); ++i)
    if (double value = std::fabs(value_at(tensor, i)); std::isfinite(value))
      largest = std::max(largest, value);
  return largest;
}

// Shares of an output's largest element that it may be off by with weights in f16 and bf16, whose elements
// are rounded by up to 2^-12 and 2^-9 of themselves; a little more than what the most sensitive networks were
// measured to need (tools/README.md).
constexpr double kF16Share = 5e-2, kBF16Share = 1e-1;

}  // namespace

Tolerance tolerance_of(const Json* file, const std::string& output, qnl_dtype dtype) {
  Tolerance result;
  if (dtype == QNL_F16 || dtype == QNL_BF16) result.rtol = 1e-2, result.atol = 1e-3;
  if (file == nullptr) return result;
  const Json* outputs = file->find("outputs");
  const Json* own = outputs == nullptr ? nullptr : outputs->find(output);
  for (const Json* level : {static_cast<const Json*>(file), own}) {
    if (level == nullptr) continue;
    auto read = [&](const char* name) {
      return level->find(name) == nullptr ? std::nullopt : level->find(name)->number();
    };
    if (std::optional<double> rtol = read("rtol")) result.rtol = *rtol;
    if (std::optional<double> atol = read("atol")) result.atol = *atol;
    if (std::optional<double> mean = read("mean_atol")) result.mean_atol = *mean;
    if (const Json* top1 = level->find("top1")) result.top1 = top1->is_true();
  }
  return result;
}

Tolerance fourier_tolerance_of(const Json* file, const std::string& output, const HostTensor& expected) {
  Tolerance result = tolerance_of(file, output, expected.dtype);
  if (file != nullptr || !is_float(expected.dtype)) return result;
  result.atol = std::max(result.atol, 1e-6 * largest_of(expected));
  return result;
}

Tolerance precision_tolerance_of(const Tolerance& tolerance, DType precision, const HostTensor& expected) {
  Tolerance result = tolerance;
  if (precision == DType::kF32 || !is_float(expected.dtype)) return result;
  result.atol =
      std::max(result.atol, (precision == DType::kF16 ? kF16Share : kBF16Share) * largest_of(expected));
  result.mean_atol.reset();
  return result;
}

Deviation deviation_of(const HostTensor& expected, const HostTensor& found) {
  Deviation result;
  if (!is_float(expected.dtype) || expected.shape != found.shape) return result;
  for (uint64_t i = 0; i < tensor_file::element_count(expected.shape).value_or(0); ++i)
    if (double error = std::fabs(value_at(found, i) - value_at(expected, i)); std::isfinite(error))
      result.absolute = std::max(result.absolute, error);
  double largest = largest_of(expected);
  result.share = largest > 0 ? result.absolute / largest : 0;
  return result;
}

std::optional<std::string> compare(const HostTensor& expected, const HostTensor& found,
                                   const Tolerance& tolerance) {
  if (expected.dtype != found.dtype || expected.shape != found.shape)
    return fmt::format("expected {}, found {}", type_text(expected), type_text(found));
  uint64_t count = tensor_file::element_count(expected.shape).value_or(0);
  if (expected.bytes.size() != found.bytes.size())
    return fmt::format("expected {} bytes, found {}", expected.bytes.size(), found.bytes.size());
  if (!is_float(expected.dtype)) return compare_exactly(expected, found, count);
  if (auto message = compare_floats(expected, found, count, tolerance)) return message;
  return tolerance.top1 ? compare_top1(expected, found, count) : std::nullopt;
}

}  // namespace quernel::tools
