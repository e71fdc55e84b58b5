// Custom ops of a session: functions of the application behind host callbacks that have a signature. Each
// call lies in the session's block with everything its function gets, so that a run only fills in addresses
// and dims.
#pragma once

#include <stdint.h>

#include "core/bundle_reader.h"
#include "core/failure.h"

namespace quernel::runtime {

inline constexpr uint32_t kCustomMessageBytes = 256;

struct CustomCall {
  qnl_custom_fn function = nullptr;
  void* user = nullptr;
  qnl_custom_call call = {};
  qnl_tensor* tensors = nullptr;  // operands, then results; names null
  const int64_t* dims = nullptr;  // of all of them, in order
  char message[kCustomMessageBytes] = {};
};

// The function that `options` has for the item, checked: QNL_CUSTOM_OP_MISSING, or QNL_CUSTOM_OP_MISMATCH
// where calling convention or signature are not those that the bundle needs.
qnl_status find_custom_op(const ItemView& item, const qnl_session_options& options,
                          const qnl_custom_op** found, qnl_error* error);

// Fills in what no run changes. tensors: one per binding of the item; dims: one per symbol.
void prepare_custom_call(const ItemView& item, const qnl_custom_op& op, qnl_tensor* tensors,
                         const int64_t* dims, CustomCall* call);

// The host callback of every custom op; user is its CustomCall.
int32_t run_custom_call(void* user, void* const* bindings, const uint64_t* bytes, uint32_t count);

}  // namespace quernel::runtime
