#include "core/custom_op.h"

#include <string.h>

#include "core/signature.h"

namespace quernel::runtime {
namespace {

Failure& append_item(Failure& failure, const ItemView& item) {
  failure.append("custom op '{}'", item.callback);
  if (item.source_node[0] != '\0') failure.append(" (node '{}')", item.source_node);
  return failure.append(": ");
}

// Shape and bytes of a tensor from its dims; false where they do not fit the memory there is.
bool describe(qnl_tensor* tensor, const int64_t* dims, void* data, uint64_t capacity) {
  uint64_t elements = 1;
  for (uint32_t d = 0; d < tensor->rank; ++d) {
    tensor->shape[d] = dims[d];
    if (!add_dim(dims[d], &elements)) return false;
  }
  tensor->bytes = qnl_dtype_bytes(tensor->dtype, elements);
  tensor->data = data;
  return tensor->bytes <= capacity;
}

}  // namespace

qnl_status find_custom_op(const ItemView& item, const qnl_session_options& options,
                          const qnl_custom_op** found, qnl_error* error) {
  const qnl_custom_op* other = nullptr;  // of that name
  for (uint32_t i = 0; i < options.custom_op_count && options.custom_ops != nullptr; ++i) {
    const qnl_custom_op& op = options.custom_ops[i];
    // Only abi_version is where every version has it.
    if (op.abi_version != QNL_CUSTOM_OP_ABI_VERSION) {
      Failure failure(error, QNL_CUSTOM_OP_MISMATCH);
      return append_item(failure, item)
          .append(
              "expected functions of custom op ABI version {}, found version {} in entry {}; build the "
              "application with this runtime's headers",
              QNL_CUSTOM_OP_ABI_VERSION, op.abi_version, i);
    }
    if (op.name == nullptr || strcmp(op.name, item.callback) != 0) continue;
    other = &op;
    if (op.function == nullptr || op.signature == nullptr || !same_signature(op.signature, item.signature))
      continue;
    *found = &op;
    return QNL_OK;
  }
  Failure failure(error, other == nullptr ? QNL_CUSTOM_OP_MISSING : QNL_CUSTOM_OP_MISMATCH);
  append_item(failure, item).append("expected a function of signature {}", item.signature);
  if (other == nullptr) return failure.append(" in qnl_session_options::custom_ops, found none of that name");
  failure.append(", found {}", other->signature == nullptr ? "none" : other->signature);
  return other->function == nullptr ? failure.append(" without a function") : failure;
}

void prepare_custom_call(const ItemView& item, const qnl_custom_op& op, qnl_tensor* tensors,
                         const int64_t* dims, CustomCall* call) {
  call->function = op.function;
  call->user = op.user;
  call->tensors = tensors;
  call->dims = dims;
  SignatureReader signature(item.signature);
  SignatureType type;
  for (uint32_t i = 0; i < item.binding_count && signature.next(&type); ++i) {
    tensors[i] = {};
    tensors[i].dtype = type.dtype;
    tensors[i].rank = type.rank;
    (type.is_result ? call->call.output_count : call->call.input_count) += 1;
  }
  call->call.inputs = tensors;
  call->call.outputs = tensors + call->call.input_count;
  call->call.attributes = item.attributes;
  call->call.message = call->message;
  call->call.message_bytes = kCustomMessageBytes;
}

int32_t run_custom_call(void* user, void* const* bindings, const uint64_t* bytes, uint32_t count) {
  auto* call = static_cast<CustomCall*>(user);
  const int64_t* dims = call->dims;
  call->message[0] = '\0';
  for (uint32_t i = 0; i < count; ++i) {
    qnl_tensor& tensor = call->tensors[i];
    if (!describe(&tensor, dims, bindings[i], bytes[i])) {
      memcpy(call->message, "its dims do not fit its memory", sizeof "its dims do not fit its memory");
      return -1;
    }
    dims += tensor.rank;
  }
  int32_t code = call->function(call->user, &call->call);
  call->message[kCustomMessageBytes - 1] = '\0';
  return code;
}

}  // namespace quernel::runtime
