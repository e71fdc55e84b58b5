// Expressions over symbols: the postfix code of bundle.fbs, checked once when a bundle is opened, then
// evaluated without undefined behaviour on any values.
#pragma once

#include <stdint.h>

namespace quernel::runtime {

inline constexpr uint32_t kMaxSymbols = 1024;  // of one bundle
inline constexpr uint32_t kMaxExpressionSteps = 1024;
inline constexpr uint32_t kMaxExpressionStack = 32;

// A symbol that has no value yet; no symbol's range includes it.
inline constexpr int64_t kUnset = INT64_MIN;

// Opcodes as in bundle.fbs.
enum class Opcode : uint32_t { kConstant, kSymbol, kAdd, kSubtract, kMultiply, kDivide, kModulo, kMin, kMax };

// Two words per step: opcode, operand.
struct Expression {
  const int64_t* code = nullptr;
  uint32_t steps = 0;

  Opcode opcode(uint32_t step) const { return static_cast<Opcode>(code[2 * step]); }
  int64_t operand(uint32_t step) const { return code[2 * step + 1]; }
};

// False where the product does not fit. Shared, because it is long where 64 bits are two words.
bool multiply(uint64_t a, uint64_t b, uint64_t* product);

enum class Evaluation : uint8_t { kOk, kUnsetSymbol, kOverflow, kDivisionByZero };

// Opcodes and symbols are known, the stack never runs empty or over, and one value is left at the end.
bool well_formed(const Expression& expression, uint64_t symbol_count);

// symbols: a value or kUnset per symbol of the bundle. *value is written only when all went well.
Evaluation evaluate(const Expression& expression, const int64_t* symbols, int64_t* value);

// The symbol that the expression is and nothing else; -1 for any other expression.
int64_t plain_symbol(const Expression& expression);

}  // namespace quernel::runtime
