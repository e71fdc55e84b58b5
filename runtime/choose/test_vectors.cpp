#include "choose/test_vectors.h"

#include <stdio.h>
#include <string.h>

#include "choose/compare_tensors.h"
#include "core/bundle.h"

namespace quernel::runtime {
namespace {

bool has_symbol(const qnl_symbol_value* values, uint32_t count, const char* name) {
  for (uint32_t i = 0; i < count; ++i)
    if (strcmp(values[i].name, name) == 0) return true;
  return false;
}

bool in_range(const SymbolView& symbol, int64_t value) {
  return value >= symbol.min && value <= symbol.max && value % symbol.multiple_of == 0;
}

}  // namespace

uint32_t shape_symbols(const qnl_bundle* bundle, uint32_t entry, uint32_t input, const int64_t* shape,
                       uint32_t rank, qnl_symbol_value* values, uint32_t count) {
  qnl_tensor signature;
  if (qnl_bundle_get_tensor(bundle, entry, QNL_INPUT, input, &signature) != QNL_OK) return count;
  const BundleReader& reader = bundle->reader;
  for (uint32_t d = 0; d < rank && d < signature.rank; ++d) {
    int32_t expression = reader.dim_expression(entry, QNL_INPUT, input, d);
    int64_t index = expression < 0 ? -1 : plain_symbol(reader.expression(expression));
    if (index < 0) continue;
    SymbolView symbol = reader.symbol(static_cast<uint32_t>(index));
    if (in_range(symbol, shape[d]) && !has_symbol(values, count, symbol.name))
      values[count++] = {symbol.name, shape[d]};
  }
  return count;
}

uint32_t test_symbols(const qnl_bundle* bundle, uint32_t test, qnl_symbol_value* values) {
  qnl_test_info info;
  uint32_t count = 0;
  if (qnl_bundle_get_test(bundle, test, &info) != QNL_OK) return 0;
  qnl_test_tensor t;
  for (uint32_t i = 0; qnl_bundle_get_test_tensor(bundle, test, i, &t) == QNL_OK; ++i)
    if (t.role == QNL_INPUT)
      count = shape_symbols(bundle, info.entry_point, bundle->reader.test_tensor_slot(test, i),
                            t.tensor.shape, t.tensor.rank, values, count);
  return count;
}

qnl_status set_test_inputs(const qnl_bundle* bundle, uint32_t test, qnl_session* session, qnl_error* error) {
  qnl_status status = QNL_OK;
  qnl_test_tensor t;
  for (uint32_t i = 0; status == QNL_OK && qnl_bundle_get_test_tensor(bundle, test, i, &t) == QNL_OK; ++i)
    if (t.role == QNL_INPUT) status = qnl_session_set_input(session, &t.tensor, error);
  return status;
}

bool compare_test_outputs(const qnl_bundle* bundle, uint32_t test, qnl_session* session, char* text,
                          uint64_t bytes) {
  qnl_test_tensor t;
  for (uint32_t i = 0; qnl_bundle_get_test_tensor(bundle, test, i, &t) == QNL_OK; ++i) {
    if (t.role != QNL_OUTPUT) continue;
    qnl_tensor found;
    qnl_error error;
    char reason[400];
    if (qnl_session_get(session, QNL_OUTPUT, t.tensor.name, &found, &error) != QNL_OK)
      snprintf(reason, sizeof reason, "%.*s", static_cast<int>(sizeof reason) - 1, error.text);
    else if (compare_tensors(t, found, reason, sizeof reason))
      continue;
    snprintf(text, bytes, "output '%s': %s", t.tensor.name, reason);
    return false;
  }
  return true;
}

}  // namespace quernel::runtime
