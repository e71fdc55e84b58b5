#include "tensor_file_compare.h"

#include <math.h>

#include <algorithm>

#include "runtime/choose/compare_tensors.h"

namespace quernel::tensor_file {

bool is_float(qnl_dtype dtype) { return runtime::is_float(dtype); }

double largest_of(const HostTensor& tensor) {
  double largest = 0;
  for (uint64_t i = 0; i < tensor_file::element_count(tensor.shape).value_or(0); ++i)
    if (double value = fabs(value_at(tensor, i)); isfinite(value)) largest = std::max(largest, value);
  return largest;
}

Deviation deviation_of(const HostTensor& expected, const HostTensor& found) {
  Deviation result;
  if (!is_float(expected.dtype) || expected.shape != found.shape) return result;
  for (uint64_t i = 0; i < tensor_file::element_count(expected.shape).value_or(0); ++i)
    if (double error = fabs(value_at(found, i) - value_at(expected, i)); isfinite(error))
      result.absolute = std::max(result.absolute, error);
  double largest = largest_of(expected);
  result.share = largest > 0 ? result.absolute / largest : 0;
  return result;
}

namespace {

// Whether few enough integers differ, by little enough.
bool few_differ(const HostTensor& expected, const HostTensor& found, const Tolerance& tolerance) {
  if (is_float(expected.dtype) || expected.dtype != found.dtype || expected.shape != found.shape)
    return false;
  uint64_t count = tensor_file::element_count(expected.shape).value_or(0), differ = 0;
  for (uint64_t i = 0; i < count; ++i) {
    double error = fabs(value_at(found, i) - value_at(expected, i));
    if (error > tolerance.atol) return false;
    differ += error != 0;
  }
  return static_cast<double>(differ) <= tolerance.max_share * static_cast<double>(count);
}

}  // namespace

Error compare(const HostTensor& expected, const HostTensor& found, const Tolerance& tolerance) {
  if (tolerance.max_share > 0 && few_differ(expected, found, tolerance)) return std::nullopt;
  if (expected.shape.size() > QNL_MAX_RANK || found.shape.size() > QNL_MAX_RANK)
    return "expected at most " + std::to_string(QNL_MAX_RANK) + " dims, found " +
           std::to_string(std::max(expected.shape.size(), found.shape.size()));
  qnl_test_tensor wanted = {};
  wanted.tensor = view_of(expected);
  wanted.rtol = tolerance.rtol;
  wanted.atol = tolerance.atol;
  wanted.mean_atol = tolerance.mean_atol.value_or(-1);
  wanted.top1 = tolerance.top1 ? 1 : 0;
  char text[512];
  if (runtime::compare_tensors(wanted, view_of(found), text, sizeof text)) return std::nullopt;
  return std::string(text);
}

}  // namespace quernel::tensor_file
