#include <math.h>
#include <stdio.h>
#include <string.h>

#include <algorithm>
#include <cmath>

#include "quernel/runtime.h"
#include "tensor_file_compare.h"

namespace quernel::tensor_file {
namespace {

template <class... Values>
std::string print(const char* format, Values... values) {
  char text[512];
  snprintf(text, sizeof text, format, values...);
  return text;
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
    memcpy(&value, t.bytes.data() + index * 8, 8);
    return t.dtype == QNL_I64 ? std::to_string(value) : std::to_string(static_cast<uint64_t>(value));
  }
  return print("%.8g", value_at(t, index));
}

// "[1,2]: expected 3, found 4"
std::string place_text(const HostTensor& expected, const HostTensor& found, uint64_t index) {
  return index_text(expected, index) + ": expected " + value_text(expected, index) + ", found " +
         value_text(found, index);
}

Error compare_exactly(const HostTensor& expected, const HostTensor& found, uint64_t count) {
  bool packed = expected.dtype == QNL_I4 || expected.dtype == QNL_U4;
  uint64_t size = qnl_dtype_bytes(expected.dtype, 1), differ = 0, first = 0;
  for (uint64_t i = 0; i < count; ++i) {
    bool same = packed ? value_at(expected, i) == value_at(found, i)
                       : memcmp(expected.bytes.data() + i * size, found.bytes.data() + i * size, size) == 0;
    if (!same && differ++ == 0) first = i;
  }
  if (differ == 0) return std::nullopt;
  return std::to_string(differ) + " of " + std::to_string(count) + " elements differ, first at " +
         place_text(expected, found, first);
}

// Error beyond what is allowed, in units of what is allowed; <= 1 is fine, infinity where no tolerance
// applies.
double excess(double expected, double found, const Tolerance& tolerance) {
  if (std::isnan(expected) || std::isnan(found))
    return std::isnan(expected) && std::isnan(found) ? 0 : INFINITY;
  if (std::isinf(expected) || std::isinf(found)) return expected == found ? 0 : INFINITY;
  double error = fabs(found - expected), allowed = tolerance.atol + tolerance.rtol * fabs(expected);
  if (error == 0) return 0;
  return allowed > 0 ? error / allowed : INFINITY;
}

Error compare_floats(const HostTensor& expected, const HostTensor& found, uint64_t count,
                     const Tolerance& tolerance) {
  uint64_t differ = 0, worst = 0, finite = 0;
  double worst_excess = 0, max_absolute = 0, max_relative = 0, sum = 0;
  for (uint64_t i = 0; i < count; ++i) {
    double e = value_at(expected, i), f = value_at(found, i);
    double over = excess(e, f, tolerance);
    differ += over > 1;
    if (over > worst_excess) worst_excess = over, worst = i;
    double error = fabs(f - e);
    if (!std::isfinite(error)) continue;
    ++finite;
    sum += error;
    max_absolute = std::max(max_absolute, error);
    if (e != 0) max_relative = std::max(max_relative, error / fabs(e));
  }
  if (differ > 0)
    return std::to_string(differ) + " of " + std::to_string(count) + " elements beyond rtol " +
           print("%g, atol %g; max abs error %.3g, max rel error %.3g; worst at ", tolerance.rtol,
                 tolerance.atol, max_absolute, max_relative) +
           place_text(expected, found, worst);
  if (double mean = finite > 0 ? sum / static_cast<double>(finite) : 0;
      tolerance.mean_atol && mean > *tolerance.mean_atol)
    return print("mean abs error %.3g beyond %g", mean, *tolerance.mean_atol);
  return std::nullopt;
}

// Values that are equal share the first place.
Error compare_top1(const HostTensor& expected, const HostTensor& found, uint64_t count) {
  uint64_t row = expected.shape.empty() ? 1 : static_cast<uint64_t>(expected.shape.back());
  for (uint64_t begin = 0; begin < count; begin += row) {
    uint64_t e = begin, f = begin;
    for (uint64_t i = begin; i < begin + row; ++i) {
      if (value_at(expected, i) > value_at(expected, e)) e = i;
      if (value_at(found, i) > value_at(found, f)) f = i;
    }
    if (value_at(found, e) == value_at(found, f) || value_at(expected, e) == value_at(expected, f)) continue;
    return "top-1 differs: expected " + index_text(expected, e) + " (" + value_text(expected, e) +
           "), found " + index_text(expected, f) + " (" + value_text(found, f) + ")";
  }
  return std::nullopt;
}

}  // namespace

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

double largest_of(const HostTensor& tensor) {
  double largest = 0;
  for (uint64_t i = 0; i < tensor_file::element_count(tensor.shape).value_or(0); ++i)
    if (double value = fabs(value_at(tensor, i)); std::isfinite(value)) largest = std::max(largest, value);
  return largest;
}

Deviation deviation_of(const HostTensor& expected, const HostTensor& found) {
  Deviation result;
  if (!is_float(expected.dtype) || expected.shape != found.shape) return result;
  for (uint64_t i = 0; i < tensor_file::element_count(expected.shape).value_or(0); ++i)
    if (double error = fabs(value_at(found, i) - value_at(expected, i)); std::isfinite(error))
      result.absolute = std::max(result.absolute, error);
  double largest = largest_of(expected);
  result.share = largest > 0 ? result.absolute / largest : 0;
  return result;
}

Error compare(const HostTensor& expected, const HostTensor& found, const Tolerance& tolerance) {
  if (expected.dtype != found.dtype || expected.shape != found.shape)
    return "expected " + type_text(expected) + ", found " + type_text(found);
  uint64_t count = tensor_file::element_count(expected.shape).value_or(0);
  if (expected.bytes.size() != found.bytes.size())
    return "expected " + std::to_string(expected.bytes.size()) + " bytes, found " +
           std::to_string(found.bytes.size());
  if (!is_float(expected.dtype)) return compare_exactly(expected, found, count);
  if (auto message = compare_floats(expected, found, count, tolerance)) return message;
  return tolerance.top1 ? compare_top1(expected, found, count) : std::nullopt;
}

}  // namespace quernel::tensor_file
