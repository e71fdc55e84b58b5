#include "codegen/spirv/cooperative_matrix.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>

#include "schemas/kernel_abi.h"
#include "support/diagnostic.h"

namespace quernel::codegen {
namespace {

constexpr size_t kHeaderWords = 5, kBound = 3;  // the word that is above all ids

// Instructions of SPIR-V 1.3.
enum Op : uint32_t {
  kExtension = 10,
  kCapability = 17,
  kTypeBool = 20,
  kTypeInt = 21,
  kTypeFloat = 22,
  kConstantTrue = 41,
  kConstantFalse = 42,
  kConstant = 43,
  kSpecConstant = 50,
  kDecorate = 71,
  // SPV_KHR_cooperative_matrix
  kTypeMatrix = 4456,
  kMatrixLoad = 4457,
  kMatrixStore = 4458,
  kMatrixMulAdd = 4459,
  // SPV_NV_cooperative_matrix
  kTypeMatrixNV = 5358,
  kMatrixLoadNV = 5359,
  kMatrixStoreNV = 5360,
  kMatrixMulAddNV = 5361,
};
constexpr uint32_t kSpecId = 1, kCapabilityKHR = 6022, kCapabilityNV = 5357;
// SPV_KHR_bfloat16: the type's encoding, and capabilities; without it, the type is of halves.
constexpr uint32_t kBfloat16Encoding = 0, kBfloat16Type = 5116, kBfloat16Matrices = 5118, kFloat16 = 9;
// VkComponentTypeKHR
constexpr uint32_t kF16 = 0, kF32 = 1, kI8 = 3, kI32 = 5, kU8 = 7, kU32 = 9, kBF16 = 1000141000;
constexpr uint32_t kSubgroupScope = 3;

using Instruction = std::vector<uint32_t>;  // without the first word's length

uint32_t op_of(const Instruction& i) { return i[0]; }

bool is_bfloat16(const Instruction& i) { return op_of(i) == kTypeFloat && i.size() == 4; }

// The type of a component of a matrix, without its id.
Instruction type_of_component(uint32_t component) {
  switch (component) {
    case kF16:
      return {kTypeFloat, 16};
    case kF32:
      return {kTypeFloat, 32};
    case kBF16:
      return {kTypeFloat, 16, kBfloat16Encoding};
    case kI8:
      return {kTypeInt, 8, 1};
    case kU8:
      return {kTypeInt, 8, 0};
    case kI32:
      return {kTypeInt, 32, 1};
    default:
      QUERNEL_ASSERT(component == kU32);
      return {kTypeInt, 32, 0};
  }
}

std::vector<Instruction> instructions_of(const std::vector<uint32_t>& words) {
  std::vector<Instruction> result;
  for (size_t at = kHeaderWords; at < words.size(); at += words[at] >> 16) {
    const auto begin = words.begin() + static_cast<ptrdiff_t>(at);
    result.emplace_back(begin, begin + static_cast<ptrdiff_t>(words[at] >> 16));
    result.back()[0] &= 0xffff;
  }
  return result;
}

std::vector<uint32_t> words_of(const std::vector<uint32_t>& header,
                               const std::vector<Instruction>& instructions, uint32_t bound) {
  std::vector<uint32_t> words(header.begin(), header.begin() + kHeaderWords);
  words[kBound] = bound;
  for (const Instruction& i : instructions) {
    words.push_back(static_cast<uint32_t>(i.size()) << 16 | i[0]);
    words.insert(words.end(), i.begin() + 1, i.end());
  }
  return words;
}

bool has_matrices(const std::vector<Instruction>& module) {
  return std::any_of(module.begin(), module.end(),
                     [](const Instruction& i) { return op_of(i) == kTypeMatrix; });
}

// Literal text as an operand: four characters a word, with a zero behind the last one.
Instruction extension(const std::string& name) {
  Instruction i(1 + name.size() / 4 + 1, 0);
  i[0] = kExtension;
  std::memcpy(&i[1], name.data(), name.size());
  return i;
}

}  // namespace

bool has_integer_matrices(const std::vector<uint32_t>& words) {
  std::set<uint32_t> integers;
  for (const Instruction& i : instructions_of(words)) {
    if (op_of(i) == kTypeInt) integers.insert(i[1]);
    if (op_of(i) == kTypeMatrix && integers.contains(i[2])) return true;
  }
  return false;
}

void complete_matrix_types(std::vector<uint32_t>& words) {
  std::vector<Instruction> module = instructions_of(words);
  if (!has_matrices(module)) return;
  uint32_t bound = words[kBound];
  std::unordered_map<uint32_t, uint32_t> special;  // by SpecId: the constant
  std::unordered_map<uint32_t, uint32_t> unsigned_constants;
  std::map<Instruction, uint32_t> numbers;  // ids of types
  uint32_t unsigned_type = 0;
  for (const Instruction& i : module) {
    if (op_of(i) == kDecorate && i[2] == kSpecId) special[i[3]] = i[1];
    if (op_of(i) == kTypeInt && i[2] == 32 && i[3] == 0) unsigned_type = i[1];
    if (op_of(i) == kTypeInt || op_of(i) == kTypeFloat) {
      Instruction type = i;
      type.erase(type.begin() + 1);
      numbers[type] = i[1];
    }
    if (op_of(i) == kConstant && i[1] == unsigned_type && i.size() == 4) unsigned_constants[i[3]] = i[2];
  }
  // Numbers and constants that depend on nothing else come first, so that the types may use any of them.
  std::vector<Instruction> types, constants, result;
  auto constant = [&](uint32_t value) {
    auto [known, is_new] = unsigned_constants.try_emplace(value, bound);
    if (is_new) constants.push_back({kConstant, unsigned_type, bound++, value});
    return known->second;
  };
  auto number_type = [&](uint32_t component) {
    Instruction type = type_of_component(component);
    auto [known, is_new] = numbers.try_emplace(type, bound);
    if (is_new) {
      type.insert(type.begin() + 1, bound++);
      types.push_back(std::move(type));
    }
    return known->second;
  };
  auto shape = [&](uint32_t n) {
    const auto found = special.find(QNL_SPIRV_MATRIX_SHAPE + n);
    QUERNEL_ASSERT(found != special.end());
    return found->second;
  };
  std::optional<size_t> first;  // of types and constants
  for (Instruction& i : module) {
    const uint32_t op = op_of(i);
    const bool number = op == kTypeInt || op == kTypeFloat, scalar = op == kConstant || op == kSpecConstant;
    if (number || scalar || op == kTypeMatrix) {
      if (!first) first = result.size();
    }
    if (op == kTypeMatrix) {
      QUERNEL_ASSERT(i.size() == 4);
      const uint32_t component = number_type(i[2]), use = i[3];
      const uint32_t rows = shape(use == 1 ? 2 : 0), columns = shape(use == 0 ? 2 : 1);
      i = {kTypeMatrix, i[1], component, constant(kSubgroupScope), rows, columns, constant(use)};
    }
    if (number)
      types.push_back(std::move(i));
    else if (scalar)
      constants.push_back(std::move(i));
    else
      result.push_back(std::move(i));
  }
  types.insert(types.end(), constants.begin(), constants.end());
  result.insert(result.begin() + static_cast<ptrdiff_t>(*first), types.begin(), types.end());
  words = words_of(words, result, bound);
}

std::vector<uint32_t> in_terms_of_nv(const std::vector<uint32_t>& words) {
  const std::vector<Instruction> module = instructions_of(words);
  if (!has_matrices(module)) return words;
  uint32_t bound = words[kBound], boolean = 0, halves = 0, bfloats = 0;
  bool has_float16 = false;
  std::unordered_map<uint32_t, uint32_t> values;  // of constants
  for (const Instruction& i : module) {
    if (op_of(i) == kTypeBool) boolean = i[1];
    if (op_of(i) == kTypeFloat && i[2] == 16) (is_bfloat16(i) ? bfloats : halves) = i[1];
    has_float16 |= op_of(i) == kCapability && i[1] == kFloat16;
    if (op_of(i) == kConstant && i.size() == 4) values[i[2]] = i[3];
  }
  std::vector<Instruction> result, constants;
  if (boolean == 0) constants.push_back({kTypeBool, boolean = bound++});
  const uint32_t orders[] = {bound, bound + 1};  // of rows, of columns
  constants.push_back({kConstantFalse, boolean, bound++});
  constants.push_back({kConstantTrue, boolean, bound++});
  const bool has_boolean = constants.size() == 2;
  bool placed = false;
  for (Instruction i : module) {
    switch (op_of(i)) {
      case kCapability:
        if (i[1] == kCapabilityKHR) i[1] = kCapabilityNV;
        if (i[1] == kBfloat16Matrices || (i[1] == kBfloat16Type && has_float16)) continue;
        if (i[1] == kBfloat16Type) i[1] = kFloat16;
        break;
      case kExtension:
        if (i == extension("SPV_KHR_cooperative_matrix")) i = extension("SPV_NV_cooperative_matrix");
        if (i == extension("SPV_KHR_bfloat16")) continue;
        break;
      case kTypeFloat:
        if (is_bfloat16(i) && halves != 0) continue;
        if (is_bfloat16(i)) i.pop_back();
        break;
      case kTypeMatrix:
        if (i[2] == bfloats && halves != 0) i[2] = halves;
        i = {kTypeMatrixNV, i[1], i[2], i[3], i[4], i[5]};
        break;
      case kMatrixLoad:
        i = {kMatrixLoadNV, i[1], i[2], i[3], i[5], orders[values.at(i[4]) != 0], i[6]};
        break;
      case kMatrixStore:
        i = {kMatrixStoreNV, i[1], i[2], i[4], orders[values.at(i[3]) != 0], i[5]};
        break;
      case kMatrixMulAdd:
        i[0] = kMatrixMulAddNV;
        i.resize(6);  // without which integers are signed
        break;
      default:
        break;
    }
    const uint32_t op = op_of(i);
    const bool here = has_boolean ? op == kTypeBool : op == kTypeInt;
    result.push_back(std::move(i));
    if (!here || placed) continue;
    result.insert(result.end(), constants.begin(), constants.end());
    placed = true;
  }
  return words_of(words, result, bound);
}

}  // namespace quernel::codegen
