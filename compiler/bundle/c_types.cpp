#include "bundle/c_types.h"

#include "support/diagnostic.h"

namespace quernel::bundle {

std::string_view c_element_type(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "float";
    case DType::kF64:
      return "double";
    case DType::kF16:
    case DType::kBF16:
    case DType::kU16:
      return "uint16_t";
    case DType::kI8:
      return "int8_t";
    case DType::kI16:
      return "int16_t";
    case DType::kI32:
      return "int32_t";
    case DType::kU32:
      return "uint32_t";
    case DType::kI64:
      return "int64_t";
    case DType::kU64:
      return "uint64_t";
    case DType::kU8:
    case DType::kBool:
    case DType::kI4:
    case DType::kU4:
    case DType::kF8E4M3:
    case DType::kF8E5M2:
      return "uint8_t";
  }
  QUERNEL_UNREACHABLE("a dtype has no type in C");
}

}  // namespace quernel::bundle
