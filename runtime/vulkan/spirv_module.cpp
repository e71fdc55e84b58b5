#include "vulkan/spirv_module.h"

#include <string.h>

namespace quernel::runtime::vulkan {

namespace {

// Numbers of the SPIR-V specification, version 1.3, of SPV_KHR_integer_dot_product,
// SPV_KHR_float_controls, SPV_KHR_cooperative_matrix and SPV_KHR_bfloat16.
constexpr uint32_t kMagic = 0x07230203, kNewest = 0x00010300, kHeaderWords = 5;
constexpr uint32_t kOpEntryPoint = 15, kOpExecutionMode = 16, kOpCapability = 17, kOpFunctionEnd = 56;
constexpr uint32_t kOpTypeInt = 21, kOpDecorate = 71, kOpTypeCooperativeMatrix = 4456;
constexpr uint32_t kModelGlCompute = 5, kModeLocalSize = 17, kSpecId = 1;

struct Capability {
  uint32_t number;
  uint64_t features;  // that a device needs for it
};
constexpr Capability kCapabilities[] = {
    {0, 0},                          // Matrix
    {1, 0},                          // Shader
    {9, QNL_SPIRV_FLOAT16},          // Float16
    {10, QNL_SPIRV_FLOAT64},         // Float64
    {11, QNL_SPIRV_INT64},           // Int64
    {22, QNL_SPIRV_INT16},           // Int16
    {39, QNL_SPIRV_INT8},            // Int8
    {61, QNL_SPIRV_SUBGROUPS},       // GroupNonUniform
    {63, QNL_SPIRV_SUBGROUPS},       // GroupNonUniformArithmetic
    {4433, QNL_SPIRV_STORAGE_16},    // StorageBuffer16BitAccess
    {4448, QNL_SPIRV_STORAGE_8},     // StorageBuffer8BitAccess
    {4466, QNL_SPIRV_FLOAT16},       // SignedZeroInfNanPreserve
    {4467, QNL_SPIRV_FLOAT16},       // RoundingModeRTE
    {5345, QNL_SPIRV_COOPMAT},       // VulkanMemoryModel
    {6022, QNL_SPIRV_COOPMAT},       // CooperativeMatrixKHR
    {5116, QNL_SPIRV_COOPMAT_BF16},  // BFloat16TypeKHR
    {5118, QNL_SPIRV_COOPMAT_BF16},  // BFloat16CooperativeMatrixKHR
    {6018, QNL_SPIRV_DOTPROD},       // DotProductInput4x8BitPacked
    {6019, QNL_SPIRV_DOTPROD},       // DotProduct
};

class Module {
 public:
  Module(const char* subject, uint64_t index, qnl_error* error)
      : subject_(subject), index_(index), error_(error) {}

  Failure refuse(qnl_status status = QNL_MALFORMED_IMAGE) const {
    Failure failure(error_, status);
    failure.append("{} {}: ", subject_, index_);
    return failure;
  }

  qnl_status check_capability(uint32_t number, uint64_t features) const {
    for (const Capability& known : kCapabilities) {
      if (known.number != number) continue;
      if ((known.features & ~features) == 0) return QNL_OK;
      Failure failure = refuse();
      failure.append("SPIR-V capability {} needs feature ", number);
      failure.append_features(QNL_ARCH_SPIRV, known.features);
      return failure.append(", which the table does not name");
    }
    return refuse().append("SPIR-V capability {} is none that kernels may have", number);
  }

  qnl_status check_entry(const uint32_t* words, uint32_t count) {
    char name[5] = {};
    if (count >= 5) memcpy(name, words + 3, sizeof name);
    if (count < 5 || words[1] != kModelGlCompute || memcmp(name, "main", 5) != 0 || entry_ != 0)
      return refuse().append("expected one compute entry point 'main'");
    entry_ = words[2];
    return QNL_OK;
  }

  qnl_status check_mode(const uint32_t* words, uint32_t count, uint32_t local_size) {
    if (count < 3 || words[2] != kModeLocalSize) return QNL_OK;
    if (count != 6 || words[1] != entry_ || words[3] != local_size || words[4] != 1 || words[5] != 1)
      return refuse().append("expected a local size of {} by 1 by 1, found another in the module",
                             local_size);
    sized_ = true;
    return QNL_OK;
  }

  // Capabilities do not tell matrices of integers.
  qnl_status check_matrix(const uint32_t* words, uint32_t count, uint64_t features) const {
    if (count != 7) return refuse().append("its SPIR-V is malformed");
    if ((features & QNL_SPIRV_COOPMAT_INT8) != 0) return QNL_OK;
    for (uint32_t i = 0; i < integer_count_; ++i)
      if (integers_[i] == words[2]) {
        Failure failure = refuse();
        failure.append("a matrix of integers needs feature ");
        failure.append_features(QNL_ARCH_SPIRV, QNL_SPIRV_COOPMAT_INT8);
        return failure.append(", which the table does not name");
      }
    return QNL_OK;
  }

  qnl_status check_instruction(const uint32_t* words, uint32_t count, uint32_t local_size,
                               uint64_t features) {
    switch (words[0] & 0xFFFF) {
      case kOpCapability:
        return count == 2 ? check_capability(words[1], features) : refuse().append("its SPIR-V is malformed");
      case kOpEntryPoint:
        return check_entry(words, count);
      case kOpExecutionMode:
        return check_mode(words, count, local_size);
      case kOpTypeInt:
        if (count == 4 && integer_count_ < kMostIntegers) integers_[integer_count_++] = words[1];
        return QNL_OK;
      case kOpTypeCooperativeMatrix:
        return check_matrix(words, count, features);
      case kOpDecorate:
        if (count == 4 && words[2] == kSpecId && words[3] >= QNL_SPIRV_SPLIT &&
            words[3] < QNL_SPIRV_SPLIT + 64)
          split_ |= uint64_t{1} << (words[3] - QNL_SPIRV_SPLIT);
        return QNL_OK;
      default:
        return QNL_OK;
    }
  }

  qnl_status check_end() const {
    return entry_ != 0 && sized_ ? QNL_OK
                                 : refuse().append("expected a compute entry point 'main' with a local size");
  }

  uint64_t split() const { return split_; }

 private:
  const char* subject_;
  uint64_t index_;
  qnl_error* error_;
  uint32_t entry_ = 0;
  bool sized_ = false;
  uint64_t split_ = 0;
  static constexpr uint32_t kMostIntegers = 8;  // types, of four widths
  uint32_t integers_[kMostIntegers] = {}, integer_count_ = 0;
};

}  // namespace

qnl_status verify_module(const uint32_t* words, uint64_t count, uint32_t local_size, uint64_t features,
                         const char* subject, uint64_t index, uint64_t* split, qnl_error* error) {
  Module module(subject, index, error);
  if (count < kHeaderWords || words[0] != kMagic) return module.refuse().append("expected a SPIR-V module");
  if (words[1] > kNewest || words[4] != 0)
    return module.refuse().append("expected SPIR-V 1.3 or older, found version word {}", words[1]);
  uint32_t last = 0;
  for (uint64_t at = kHeaderWords; at < count;) {
    uint32_t length = words[at] >> 16;
    if (length == 0 || length > count - at)
      return module.refuse().append("its SPIR-V ends within an instruction");
    qnl_status status = module.check_instruction(words + at, length, local_size, features);
    if (status != QNL_OK) return status;
    last = words[at] & 0xFFFF;
    at += length;
  }
  if (last != kOpFunctionEnd) return module.refuse().append("its SPIR-V ends within a function");
  *split = module.split();
  return module.check_end();
}

}  // namespace quernel::runtime::vulkan
