// Custom ops of a session: the application's functions behind host callbacks with a signature. Each call is
// stored in the session's block with all arguments of its function. A run fills in only addresses and dims.
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
  qnl_tensor* tensors = nullptr;  // operands, then results; names are null
  const int64_t* dims = nullptr;  // of all tensors, in order
  char message[kCustomMessageBytes] = {};
};

// Finds the item's function in `options` and checks it: QNL_CUSTOM_OP_MISSING, or QNL_CUSTOM_OP_MISMATCH if
// its ABI version or signature differs from the bundle's.
qnl_status find_custom_op(const ItemView& item, const qnl_session_options& options,
                          const qnl_custom_op** found, qnl_error* error);

// Fills in everything that is constant over all runs. tensors: one per binding of the item; dims: one per
// symbol.
void prepare_custom_call(const ItemView& item, const qnl_custom_op& op, qnl_tensor* tensors,
                         const int64_t* dims, CustomCall* call);

// The host callback of every custom op; user is its CustomCall.
int32_t run_custom_call(void* user, void* const* bindings, const uint64_t* bytes, uint32_t count);

}  // namespace quernel::runtime
