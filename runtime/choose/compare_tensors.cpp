#include "choose/compare_tensors.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

namespace quernel::runtime {
namespace {

// A text in the caller's buffer; what does not fit is cut.
struct Message {
  char* text;
  uint64_t bytes, used = 0;

  __attribute__((format(printf, 2, 3))) Message& print(const char* format, ...) {
    if (used + 1 >= bytes) return *this;
    va_list arguments;
    va_start(arguments, format);
    int written = vsnprintf(text + used, bytes - used, format, arguments);
    va_end(arguments);
    if (written > 0) used += static_cast<uint64_t>(written);
    return *this;
  }
  // "f32[2,3]"
  Message& type(const qnl_tensor& t) {
    print("%s[", qnl_dtype_name(t.dtype));
    for (uint32_t d = 0; d < t.rank; ++d) print(d == 0 ? "%" PRId64 : ",%" PRId64, t.shape[d]);
    return print("]");
  }
  // "[1,2]"
  Message& index(const qnl_tensor& t, uint64_t index) {
    uint64_t places[QNL_MAX_RANK] = {};
    for (uint32_t d = t.rank; d-- > 0; index /= static_cast<uint64_t>(t.shape[d]))
      places[d] = index % static_cast<uint64_t>(t.shape[d]);
    print("[");
    for (uint32_t d = 0; d < t.rank; ++d) print(d == 0 ? "%" PRIu64 : ",%" PRIu64, places[d]);
    return print("]");
  }
  // An element; 64-bit integers without going through a double.
  Message& value(const qnl_tensor& t, uint64_t index) {
    if (t.dtype != QNL_I64 && t.dtype != QNL_U64) return print("%.8g", element_value(t.dtype, t.data, index));
    int64_t value;
    memcpy(&value, static_cast<const char*>(t.data) + index * 8, 8);
    if (t.dtype == QNL_I64) return print("%" PRId64, value);
    return print("%" PRIu64, static_cast<uint64_t>(value));
  }
  // "[1,2]: expected 3, found 4"
  Message& place(const qnl_tensor& expected, const qnl_tensor& found, uint64_t i) {
    return index(expected, i).print(": expected ").value(expected, i).print(", found ").value(found, i);
  }
};

// Small float formats: `exponent` and `mantissa` bits, sign above them. Infinities and NaNs as IEEE 754,
// except for f8e4m3, which has no infinity and one NaN pattern (OCP 8-bit floating point specification, 1.0).
double small_float(uint32_t bits, int exponent, int mantissa, bool finite_only) {
  uint32_t top = (1u << exponent) - 1;
  uint32_t e = bits >> mantissa & top, m = bits & ((1u << mantissa) - 1);
  double sign = (bits >> (exponent + mantissa) & 1) != 0 ? -1.0 : 1.0;
  if (e == top && !finite_only) return m == 0 ? sign * __builtin_inf() : __builtin_nan("");
  if (finite_only && e == top && m == (1u << mantissa) - 1) return __builtin_nan("");
  int bias = (1 << (exponent - 1)) - 1;
  double fraction = static_cast<double>(m) / (1u << mantissa);
  int power = e == 0 ? 1 - bias : static_cast<int>(e) - bias;
  double scale = 1.0;
  for (; power > 0; --power) scale *= 2.0;
  for (; power < 0; ++power) scale *= 0.5;
  return sign * (e == 0 ? fraction : 1.0 + fraction) * scale;
}

template <class T>
T element(const void* data, uint64_t index) {
  T value;
  memcpy(&value, static_cast<const char*>(data) + index * sizeof value, sizeof value);
  return value;
}

bool same_type(const qnl_tensor& a, const qnl_tensor& b) {
  return a.dtype == b.dtype && a.rank == b.rank && memcmp(a.shape, b.shape, a.rank * sizeof a.shape[0]) == 0;
}

bool same_bits(const qnl_tensor& expected, const qnl_tensor& found, uint64_t count, Message& message) {
  bool packed = expected.dtype == QNL_I4 || expected.dtype == QNL_U4;
  uint64_t size = qnl_dtype_bytes(expected.dtype, 1), differ = 0, first = 0;
  const char *e = static_cast<const char*>(expected.data), *f = static_cast<const char*>(found.data);
  for (uint64_t i = 0; i < count; ++i) {
    bool same = packed ? element_value(expected.dtype, e, i) == element_value(expected.dtype, f, i)
                       : memcmp(e + i * size, f + i * size, size) == 0;
    if (!same && differ++ == 0) first = i;
  }
  if (differ == 0) return true;
  message.print("%" PRIu64 " of %" PRIu64 " elements differ, first at ", differ, count)
      .place(expected, found, first);
  return false;
}

// Error beyond what is allowed, in units of what is allowed; <= 1 is fine, infinity where no tolerance
// applies.
double excess(double expected, double found, const qnl_test_tensor& t) {
  if (isnan(expected) || isnan(found)) return isnan(expected) && isnan(found) ? 0 : __builtin_inf();
  if (isinf(expected) || isinf(found)) return expected == found ? 0 : __builtin_inf();
  double error = fabs(found - expected), allowed = t.atol + t.rtol * fabs(expected);
  if (error == 0) return 0;
  return allowed > 0 ? error / allowed : __builtin_inf();
}

bool close_enough(const qnl_test_tensor& t, const qnl_tensor& found, uint64_t count, Message& message) {
  const qnl_tensor& expected = t.tensor;
  uint64_t differ = 0, worst = 0, finite = 0;
  double worst_excess = 0, max_absolute = 0, max_relative = 0, sum = 0;
  for (uint64_t i = 0; i < count; ++i) {
    double e = element_value(expected.dtype, expected.data, i), f = element_value(found.dtype, found.data, i);
    double over = excess(e, f, t);
    differ += over > 1;
    if (over > worst_excess) worst_excess = over, worst = i;
    double error = fabs(f - e);
    if (!isfinite(error)) continue;
    ++finite;
    sum += error;
    if (error > max_absolute) max_absolute = error;
    if (e != 0 && error / fabs(e) > max_relative) max_relative = error / fabs(e);
  }
  if (differ > 0) {
    message
        .print("%" PRIu64 " of %" PRIu64
               " elements beyond rtol %g, atol %g; max abs error %.3g, max rel error %.3g; worst at ",
               differ, count, t.rtol, t.atol, max_absolute, max_relative)
        .place(expected, found, worst);
    return false;
  }
  double mean = finite > 0 ? sum / static_cast<double>(finite) : 0;
  if (t.mean_atol < 0 || mean <= t.mean_atol) return true;
  message.print("mean abs error %.3g beyond %g", mean, t.mean_atol);
  return false;
}

// Values that are equal share the first place.
bool same_top1(const qnl_tensor& expected, const qnl_tensor& found, uint64_t count, Message& message) {
  auto at = [](const qnl_tensor& t, uint64_t i) { return element_value(t.dtype, t.data, i); };
  uint64_t row = expected.rank == 0 ? 1 : static_cast<uint64_t>(expected.shape[expected.rank - 1]);
  for (uint64_t begin = 0; begin < count; begin += row) {
    uint64_t e = begin, f = begin;
    for (uint64_t i = begin; i < begin + row; ++i) {
      if (at(expected, i) > at(expected, e)) e = i;
      if (at(found, i) > at(found, f)) f = i;
    }
    if (at(found, e) == at(found, f) || at(expected, e) == at(expected, f)) continue;
    message.print("top-1 differs: expected ").index(expected, e).print(" (").value(expected, e);
    message.print("), found ").index(expected, f).print(" (").value(found, f).print(")");
    return false;
  }
  return true;
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

double element_value(qnl_dtype dtype, const void* data, uint64_t index) {
  switch (dtype) {
    case QNL_F32:
      return element<float>(data, index);
    case QNL_F64:
      return element<double>(data, index);
    case QNL_F16:
      return small_float(element<uint16_t>(data, index), 5, 10, false);
    case QNL_BF16:
      return __builtin_bit_cast(float, uint32_t{element<uint16_t>(data, index)} << 16);
    case QNL_F8E4M3:
      return small_float(element<uint8_t>(data, index), 4, 3, true);
    case QNL_F8E5M2:
      return small_float(element<uint8_t>(data, index), 5, 2, false);
    case QNL_I8:
      return element<int8_t>(data, index);
    case QNL_U8:
      return element<uint8_t>(data, index);
    case QNL_I16:
      return element<int16_t>(data, index);
    case QNL_U16:
      return element<uint16_t>(data, index);
    case QNL_I32:
      return element<int32_t>(data, index);
    case QNL_U32:
      return element<uint32_t>(data, index);
    case QNL_I64:
      return static_cast<double>(element<int64_t>(data, index));
    case QNL_U64:
      return static_cast<double>(element<uint64_t>(data, index));
    case QNL_BOOL:
      return element<uint8_t>(data, index) != 0;
    case QNL_I4:
    case QNL_U4: {
      int nibble = element<uint8_t>(data, index / 2) >> (index % 2 * 4) & 15;
      return dtype == QNL_I4 && nibble >= 8 ? nibble - 16 : nibble;
    }
  }
  return 0;
}

bool compare_tensors(const qnl_test_tensor& t, const qnl_tensor& found, char* text, uint64_t bytes) {
  const qnl_tensor& expected = t.tensor;
  Message message = {text, bytes};
  if (bytes > 0) text[0] = '\0';
  if (!same_type(expected, found)) {
    message.print("expected ").type(expected).print(", found ").type(found);
    return false;
  }
  uint64_t count = 1;
  for (uint32_t d = 0; d < expected.rank; ++d) count *= static_cast<uint64_t>(expected.shape[d]);
  if (expected.bytes != found.bytes || expected.bytes < qnl_dtype_bytes(expected.dtype, count)) {
    message.print("expected %" PRIu64 " bytes, found %" PRIu64, expected.bytes, found.bytes);
    return false;
  }
  if (!is_float(expected.dtype)) return same_bits(expected, found, count, message);
  return close_enough(t, found, count, message) &&
         (t.top1 == 0 || same_top1(expected, found, count, message));
}

}  // namespace quernel::runtime
