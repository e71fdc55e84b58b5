#include "list_bundle.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include <cmath>

#include "schemas/printable.h"

namespace quernel::run {

std::string type_text(const qnl_tensor& t) {
  std::string text = qnl_dtype_name(t.dtype);
  text += '[';
  for (uint32_t d = 0; d < t.rank; ++d) text += (d == 0 ? "" : ",") + std::to_string(t.shape[d]);
  return text + "]";
}

std::string json_string(const char* text) { return json_literal(text); }
std::string shown(const char* text) { return printable(text); }

std::string json_number(double value) {
  if (!std::isfinite(value)) return "null";
  char text[32];
  snprintf(text, sizeof text, "%.9g", value);
  return text;
}

std::string json_tensor(const qnl_tensor& t) {
  std::string out =
      "{\"name\": " + json_string(t.name) + ", \"dtype\": \"" + qnl_dtype_name(t.dtype) + "\", \"shape\": [";
  for (uint32_t d = 0; d < t.rank; ++d) out += (d == 0 ? "" : ", ") + std::to_string(t.shape[d]);
  return out + "], \"bytes\": " + std::to_string(t.bytes) + "}";
}

namespace {

const char* arch_text(qnl_arch arch) {
  constexpr const char* kNames[] = {"none", "x86-64", "aarch64", "arm", "riscv64", "riscv32", "spirv"};
  return static_cast<uint32_t>(arch) < 7 ? kNames[arch] : "unknown";
}

constexpr qnl_tensor_role kRoles[] = {QNL_INPUT, QNL_OUTPUT, QNL_STATE};
constexpr const char* kRoleNames[] = {"input", "output", "state"};

}  // namespace

// "batch" or "64"; the tensor is one of a signature.
std::string dim_text(const quernel::Bundle& bundle, uint32_t entry, qnl_tensor_role role, uint32_t index,
                     uint32_t dim) {
  char text[512] = "";
  (void)!qnl_bundle_get_dim_text(bundle.get(), entry, role, index, dim, text, sizeof text);
  return text;
}

namespace {

template <class Visit>
void each_tensor(const quernel::Bundle& bundle, uint32_t entry, qnl_tensor_role role, Visit visit) {
  qnl_tensor tensor;
  for (uint32_t i = 0; qnl_bundle_get_tensor(bundle.get(), entry, role, i, &tensor) == QNL_OK; ++i)
    visit(tensor);
}

}  // namespace

void list_text(const quernel::Bundle& bundle) {
  qnl_bundle_info info = bundle.info();
  printf("producer %s, schema %u, file %" PRIu64 " bytes, weights %" PRIu64 ", code %" PRIu64 "\n",
         shown(info.producer).c_str(), info.schema_version, info.file_bytes, info.constants_bytes,
         info.code_bytes);
  qnl_entry_info entry;
  for (uint32_t e = 0; qnl_bundle_get_entry(bundle.get(), e, &entry) == QNL_OK; ++e) {
    printf("entry point %s\n", shown(entry.name).c_str());
    for (qnl_tensor_role role : kRoles)
      each_tensor(bundle, e, role, [&, index = 0u](const qnl_tensor& t) mutable {
        std::string dims;
        for (uint32_t d = 0; d < t.rank; ++d)
          dims += (d == 0 ? "" : ",") + dim_text(bundle, e, role, index, d);
        ++index;
        printf("  %-6s %s  %s[%s]\n", kRoleNames[role], shown(t.name).c_str(), qnl_dtype_name(t.dtype),
               shown(dims.c_str()).c_str());
      });
  }
  qnl_symbol_info symbol;
  for (uint32_t i = 0; qnl_bundle_get_symbol(bundle.get(), i, &symbol) == QNL_OK; ++i) {
    if (symbol.runtime != 0) continue;
    std::string to = symbol.max == INT64_MAX ? "up" : "to " + std::to_string(symbol.max);
    if (symbol.multiple_of != 1) to += ", a multiple of " + std::to_string(symbol.multiple_of);
    printf("symbol %s: %" PRId64 " %s\n", shown(symbol.name).c_str(), symbol.min, to.c_str());
  }
  qnl_variant_info variant;
  for (uint32_t v = 0; qnl_bundle_get_variant(bundle.get(), v, &variant) == QNL_OK; ++v)
    printf("variant %s: %s, %u kernels, %" PRIu64 " bytes of code\n", shown(variant.target).c_str(),
           arch_text(variant.arch), variant.kernel_count, variant.code_bytes);
}

void list_json(const quernel::Bundle& bundle) {
  qnl_bundle_info info = bundle.info();
  printf("{\"producer\": %s, \"schema_version\": %u, \"file_bytes\": %" PRIu64
         ", \"constants_bytes\": %" PRIu64 ", \"code_bytes\": %" PRIu64 ", \"entry_points\": [",
         json_string(info.producer).c_str(), info.schema_version, info.file_bytes, info.constants_bytes,
         info.code_bytes);
  qnl_entry_info entry;
  for (uint32_t e = 0; qnl_bundle_get_entry(bundle.get(), e, &entry) == QNL_OK; ++e) {
    printf("%s{\"name\": %s", e == 0 ? "" : ", ", json_string(entry.name).c_str());
    for (qnl_tensor_role role : kRoles) {
      std::string tensors;
      each_tensor(bundle, e, role, [&, index = 0u](const qnl_tensor& t) mutable {
        tensors += (tensors.empty() ? "" : ", ") + json_tensor(t);
        std::string dims;
        for (uint32_t d = 0; d < t.rank; ++d)
          dims += (d == 0 ? "" : ", ") + json_string(dim_text(bundle, e, role, index, d).c_str());
        ++index;
        bool symbolic = false;
        for (uint32_t d = 0; d < t.rank; ++d) symbolic = symbolic || t.shape[d] < 0;
        if (!symbolic) return;
        tensors.pop_back();
        tensors += ", \"dims\": [" + dims + "]}";
      });
      printf(", \"%ss\": [%s]", kRoleNames[role], tensors.c_str());
    }
    printf("}");
  }
  printf("], \"symbols\": [");
  qnl_symbol_info symbol;
  bool first = true;
  for (uint32_t i = 0; qnl_bundle_get_symbol(bundle.get(), i, &symbol) == QNL_OK; ++i) {
    if (symbol.runtime != 0) continue;
    printf("%s{\"name\": %s, \"min\": %" PRId64 ", \"max\": %" PRId64 ", \"multiple_of\": %" PRId64 "}",
           first ? "" : ", ", json_string(symbol.name).c_str(), symbol.min, symbol.max, symbol.multiple_of);
    first = false;
  }
  printf("], \"variants\": [");
  qnl_variant_info variant;
  for (uint32_t v = 0; qnl_bundle_get_variant(bundle.get(), v, &variant) == QNL_OK; ++v)
    printf("%s{\"target\": %s, \"arch\": \"%s\", \"kernels\": %u, \"code_bytes\": %" PRIu64 "}",
           v == 0 ? "" : ", ", json_string(variant.target).c_str(), arch_text(variant.arch),
           variant.kernel_count, variant.code_bytes);
  printf("]}\n");
}

std::vector<qnl_tensor> tensors_of(const quernel::Bundle& bundle, uint32_t entry, qnl_tensor_role role) {
  std::vector<qnl_tensor> tensors;
  each_tensor(bundle, entry, role, [&](const qnl_tensor& t) { tensors.push_back(t); });
  return tensors;
}

}  // namespace quernel::run
