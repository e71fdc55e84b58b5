#include "choose/compare_devices.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "choose/compare_tensors.h"
#include "core/bundle.h"

namespace quernel::runtime {
namespace {

// As a share of an output's largest element, and of each: other orders of adding, of narrow floats, too.
constexpr double kTolerance = 1e-2;
constexpr int64_t kTypicalSize = 64;

uint64_t next_random(uint64_t* state) {  // SplitMix64 (Steele, Lea, Flood, 2014)
  uint64_t z = (*state += UINT64_C(0x9E3779B97F4A7C15));
  z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
  return z ^ (z >> 31);
}

// Element bits: floats of magnitudes below 1, integers from 0 to 7.
uint64_t random_element(qnl_dtype dtype, uint64_t random) {
  double unit = static_cast<double>(random >> 40) * 0x1p-23 - 1;
  switch (dtype) {
    case QNL_F32:
      return __builtin_bit_cast(uint32_t, static_cast<float>(unit));
    case QNL_F64:
      return __builtin_bit_cast(uint64_t, unit);
    case QNL_F16:
      return (random & 0x8000) | (random >> 16) % 0x3C00;
    case QNL_BF16:
      return __builtin_bit_cast(uint32_t, static_cast<float>(unit)) >> 16;
    case QNL_F8E4M3:
      return (random & 0x80) | (random >> 8) % 0x38;
    case QNL_F8E5M2:
      return (random & 0x80) | (random >> 8) % 0x3C;
    case QNL_BOOL:
      return random >> 63;
    case QNL_I4:
    case QNL_U4:
      return (random >> 61) * 17;
    default:
      return random >> 61;
  }
}

void fill_random(const qnl_tensor& tensor, uint64_t* state) {
  uint64_t size = qnl_dtype_bytes(tensor.dtype, 1);
  auto* data = static_cast<char*>(tensor.data);
  for (uint64_t at = 0; at + size <= tensor.bytes; at += size) {
    uint64_t bits = random_element(tensor.dtype, next_random(state));
    memcpy(data + at, &bits, size);
  }
}

double largest_of(const qnl_tensor& tensor) {
  double largest = 0;
  uint64_t count = 1;
  for (uint32_t d = 0; d < tensor.rank; ++d) count *= static_cast<uint64_t>(tensor.shape[d]);
  for (uint64_t i = 0; i < count; ++i) {
    double size = fabs(element_value(tensor.dtype, tensor.data, i));
    if (isfinite(size) && size > largest) largest = size;
  }
  return largest;
}

int64_t typical_value(const qnl_symbol_info& symbol) {
  int64_t value = kTypicalSize < symbol.min   ? symbol.min
                  : kTypicalSize > symbol.max ? symbol.max
                                              : kTypicalSize;
  int64_t multiple = value - value % symbol.multiple_of;
  return multiple >= symbol.min ? multiple : multiple + symbol.multiple_of;
}

bool has_value(const qnl_session_options& options, const char* name) {
  for (uint32_t i = 0; i < options.symbol_count; ++i)
    if (strcmp(options.symbols[i].name, name) == 0) return true;
  return false;
}

}  // namespace

DeviceComparison::DeviceComparison(const qnl_bundle* bundle, const qnl_session_options& options)
    : bundle_(bundle), options_(options) {
  qnl_entry_info entry;
  for (uint32_t i = 0; qnl_bundle_get_entry(bundle, i, &entry) == QNL_OK; ++i)
    if (options.entry_point != nullptr && strcmp(options.entry_point, entry.name) == 0) entry_ = i;
}

DeviceComparison::~DeviceComparison() {
  qnl_session_destroy(trusted_);
  qnl_session_destroy(session_);
}

qnl_status DeviceComparison::create(qnl_device* device, qnl_session** session, qnl_error* error) const {
  qnl_symbol_value values[kMaxSymbols];
  qnl_session_options options = options_;
  uint32_t count = 0;
  for (; count < options_.symbol_count && count < kMaxSymbols; ++count)
    values[count] = options_.symbols[count];
  qnl_symbol_info symbol;
  for (uint32_t i = 0; count < kMaxSymbols && qnl_bundle_get_symbol(bundle_, i, &symbol) == QNL_OK; ++i)
    if (symbol.runtime == 0 && !has_value(options_, symbol.name))
      values[count++] = {symbol.name, typical_value(symbol)};
  options.symbols = values;
  options.symbol_count = count;
  return qnl_session_create(bundle_, device, &options, session, error);
}

qnl_status DeviceComparison::fill_inputs(qnl_error* error) const {
  qnl_tensor tensor;
  uint64_t state = 1;
  for (uint32_t i = 0; qnl_bundle_get_tensor(bundle_, entry_, QNL_INPUT, i, &tensor) == QNL_OK; ++i) {
    qnl_status status = qnl_session_get(trusted_, QNL_INPUT, tensor.name, &tensor, error);
    if (status != QNL_OK) return status;
    fill_random(tensor, &state);
  }
  return QNL_OK;
}

qnl_status DeviceComparison::copy_inputs(qnl_error* error) const {
  qnl_tensor tensor;
  for (uint32_t i = 0; qnl_bundle_get_tensor(bundle_, entry_, QNL_INPUT, i, &tensor) == QNL_OK; ++i) {
    qnl_status status = qnl_session_get(trusted_, QNL_INPUT, tensor.name, &tensor, error);
    if (status == QNL_OK) status = qnl_session_set_input(session_, &tensor, error);
    if (status != QNL_OK) return status;
  }
  return QNL_OK;
}

bool DeviceComparison::run_trusted(qnl_device* device) {
  qnl_error error;
  return create(device, &trusted_, &error) == QNL_OK && fill_inputs(&error) == QNL_OK &&
         qnl_session_run(trusted_, &error) == QNL_OK;
}

qnl_status DeviceComparison::run(qnl_device* device, bool* same, char* text, uint64_t bytes) {
  qnl_error error = {};
  qnl_status status = create(device, &session_, &error);
  if (status == QNL_OK) status = copy_inputs(&error);
  if (status == QNL_OK) status = qnl_session_run(session_, &error);
  if (status == QNL_OK)
    *same = same_outputs(text, bytes);
  else
    snprintf(text, bytes, "%.300s", error.text);
  return status;
}

bool DeviceComparison::same_outputs(char* text, uint64_t bytes) const {
  qnl_tensor signature, found;
  qnl_error error;
  for (uint32_t i = 0; qnl_bundle_get_tensor(bundle_, entry_, QNL_OUTPUT, i, &signature) == QNL_OK; ++i) {
    qnl_test_tensor expected = {};
    char reason[300] = "it has no result";
    if (qnl_session_get(trusted_, QNL_OUTPUT, signature.name, &expected.tensor, &error) == QNL_OK &&
        qnl_session_get(session_, QNL_OUTPUT, signature.name, &found, &error) == QNL_OK) {
      expected.role = QNL_OUTPUT;
      expected.rtol = kTolerance;
      expected.atol = kTolerance * largest_of(expected.tensor);
      expected.mean_atol = -1;
      if (compare_tensors(expected, found, reason, sizeof reason)) continue;
    }
    snprintf(text, bytes, "output '%s': %s", signature.name, reason);
    return false;
  }
  return true;
}

}  // namespace quernel::runtime
