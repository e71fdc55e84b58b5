#include "core/bundle.h"

#include <new>

using quernel::platform::MappedFile;
using quernel::platform::MapResult;
using quernel::runtime::fail;
using quernel::runtime::SymbolView;
using quernel::runtime::TextBuilder;
using quernel::runtime::VariantView;
namespace platform = quernel::platform;

namespace {

constexpr uint64_t kMaxDimText = 512;

qnl_status place_bundle(const qnl_bundle_options* options, qnl_bundle** bundle, qnl_error* error) {
  void* memory = options == nullptr ? nullptr : options->memory;
  bool owns = memory == nullptr;
  if (owns) {
    memory = platform::allocate_pages(sizeof(qnl_bundle));
    if (memory == nullptr) return fail(error, QNL_OUT_OF_MEMORY, "bundle: no memory for it");
  } else if (options->memory_bytes < sizeof(qnl_bundle) || reinterpret_cast<uintptr_t>(memory) % 64 != 0) {
    return fail(error, QNL_MEMORY_TOO_SMALL, "bundle memory: expected {} bytes, 64-byte aligned, found {}",
                uint64_t{sizeof(qnl_bundle)}, options->memory_bytes);
  }
  *bundle = new (memory) qnl_bundle;
  (*bundle)->owns_memory = owns;
  return QNL_OK;
}

qnl_status open_bundle(const MappedFile& file, bool mapped, const qnl_bundle_options* options,
                       qnl_bundle** bundle, qnl_error* error) {
  qnl_bundle* opened = nullptr;
  qnl_status status = place_bundle(options, &opened, error);
  if (status != QNL_OK) {
    if (mapped) platform::unmap_file(file);
    return status;
  }
  if (mapped) opened->file = file;
  status = opened->reader.open(file.data, file.bytes, error);
  if (status == QNL_OK && options != nullptr && options->verify_weights != 0)
    status = opened->reader.verify_weights(error);
  if (status != QNL_OK) {
    qnl_bundle_close(opened);
    return status;
  }
  *bundle = opened;
  return QNL_OK;
}

}  // namespace

extern "C" {

uint64_t qnl_bundle_memory_bytes(void) { return sizeof(qnl_bundle); }

qnl_status qnl_bundle_open_file(const char* path, const qnl_bundle_options* options, qnl_bundle** bundle,
                                qnl_error* error) {
  if (path == nullptr || bundle == nullptr)
    return fail(error, QNL_INVALID_ARGUMENT, "bundle: expected a path and a place for the result");
  *bundle = nullptr;
  MappedFile file;
  const char* reason = "";
  MapResult result = platform::map_file(path, &file, &reason);
  if (result != MapResult::kOk)
    return fail(error, result == MapResult::kNotFound ? QNL_FILE_NOT_FOUND : QNL_FILE_UNREADABLE, "'{}': {}",
                path, reason);
  return open_bundle(file, true, options, bundle, error);
}

qnl_status qnl_bundle_open_memory(const void* data, uint64_t bytes, const qnl_bundle_options* options,
                                  qnl_bundle** bundle, qnl_error* error) {
  if (bundle == nullptr || (data == nullptr && bytes != 0))
    return fail(error, QNL_INVALID_ARGUMENT, "bundle: expected data and a place for the result");
  *bundle = nullptr;
  return open_bundle({data, bytes}, false, options, bundle, error);
}

void qnl_bundle_close(qnl_bundle* bundle) {
  if (bundle == nullptr) return;
  platform::unmap_file(bundle->file);
  bool owns = bundle->owns_memory;
  bundle->~qnl_bundle();
  if (owns) platform::free_pages(bundle, sizeof(qnl_bundle));
}

qnl_status qnl_bundle_verify_weights(const qnl_bundle* bundle, qnl_error* error) {
  return bundle->reader.verify_weights(error);
}

void qnl_bundle_get_info(const qnl_bundle* bundle, qnl_bundle_info* info) {
  const auto& reader = bundle->reader;
  *info = {reader.producer(),   reader.schema_version(),  reader.entry_point_count(), reader.variant_count(),
           reader.file_bytes(), reader.constants_bytes(), reader.code_bytes(),        reader.symbol_count()};
}

qnl_status qnl_bundle_get_entry(const qnl_bundle* bundle, uint32_t entry, qnl_entry_info* info) {
  if (entry >= bundle->reader.entry_point_count()) return QNL_INVALID_ARGUMENT;
  auto view = bundle->reader.entry_point(entry);
  *info = {view.name, view.input_count, view.output_count, view.state_count};
  return QNL_OK;
}

qnl_status qnl_bundle_get_tensor(const qnl_bundle* bundle, uint32_t entry, qnl_tensor_role role,
                                 uint32_t index, qnl_tensor* tensor) {
  if (entry >= bundle->reader.entry_point_count()) return QNL_INVALID_ARGUMENT;
  auto view = bundle->reader.entry_point(entry);
  uint32_t counts[] = {view.input_count, view.output_count, view.state_count};
  if (static_cast<uint32_t>(role) > QNL_STATE || index >= counts[role]) return QNL_INVALID_ARGUMENT;
  bundle->reader.tensor(entry, role, index, tensor, nullptr, nullptr);
  return QNL_OK;
}

qnl_status qnl_bundle_get_dim_text(const qnl_bundle* bundle, uint32_t entry, qnl_tensor_role role,
                                   uint32_t index, uint32_t dim, char* text, uint64_t bytes) {
  qnl_tensor tensor;
  qnl_status status = qnl_bundle_get_tensor(bundle, entry, role, index, &tensor);
  if (status != QNL_OK || dim >= tensor.rank || text == nullptr || bytes == 0) return QNL_INVALID_ARGUMENT;
  TextBuilder written(text, static_cast<uint32_t>(bytes < kMaxDimText ? bytes : kMaxDimText));
  int32_t expression = bundle->reader.dim_expression(entry, role, index, dim);
  if (expression >= 0) {
    bundle->reader.append_expression(written, expression);
  } else {
    written.append_number(tensor.shape[dim]);
  }
  return QNL_OK;
}

qnl_status qnl_bundle_get_symbol(const qnl_bundle* bundle, uint32_t symbol, qnl_symbol_info* info) {
  if (symbol >= bundle->reader.symbol_count()) return QNL_INVALID_ARGUMENT;
  SymbolView view = bundle->reader.symbol(symbol);
  *info = {view.name, view.min, view.max, view.multiple_of, view.runtime ? 1 : 0};
  return QNL_OK;
}

qnl_status qnl_bundle_get_test(const qnl_bundle* bundle, uint32_t test, qnl_test_info* info) {
  if (test >= bundle->reader.test_count()) return QNL_INVALID_ARGUMENT;
  auto view = bundle->reader.test(test);
  *info = {view.name, view.entry, view.tensor_count};
  return QNL_OK;
}

qnl_status qnl_bundle_get_test_tensor(const qnl_bundle* bundle, uint32_t test, uint32_t index,
                                      qnl_test_tensor* tensor) {
  if (test >= bundle->reader.test_count() || index >= bundle->reader.test(test).tensor_count)
    return QNL_INVALID_ARGUMENT;
  bundle->reader.test_tensor(test, index, tensor);
  return QNL_OK;
}

qnl_status qnl_bundle_get_variant(const qnl_bundle* bundle, uint32_t variant, qnl_variant_info* info) {
  if (variant >= bundle->reader.variant_count()) return QNL_INVALID_ARGUMENT;
  VariantView view = bundle->reader.variant(variant);
  *info = {view.target, static_cast<qnl_arch>(view.arch), view.required_features, view.kernel_count,
           view.code_bytes};
  return QNL_OK;
}

}  // extern "C"
