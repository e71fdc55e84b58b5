// Expressions over symbols: the postfix code of bundle.fbs. It is checked once when a bundle is opened.
// Evaluating it has no undefined behaviour for any values.
#pragma once

#include <stdint.h>

namespace quernel::runtime {

inline constexpr uint32_t kMaxSymbols = 1024;  // per bundle
inline constexpr uint32_t kMaxExpressionSteps = 1024;
inline constexpr uint32_t kMaxExpressionStack = 32;

// The value of a symbol that has none yet; outside every symbol's range.
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

// Returns false if the product overflows. One function for all callers, because its code is long on machines
// with 32-bit words.
bool multiply(uint64_t a, uint64_t b, uint64_t* product);

enum class Evaluation : uint8_t { kOk, kUnsetSymbol, kOverflow, kDivisionByZero };

// Returns true if all opcodes and symbols are known, the stack never underflows or overflows, and one value
// is left at the end.
bool well_formed(const Expression& expression, uint64_t symbol_count);

// symbols: a value or kUnset per symbol of the bundle. *value is written only if the result is kOk.
Evaluation evaluate(const Expression& expression, const int64_t* symbols, int64_t* value);

// Returns the symbol if the expression is a single symbol, else -1.
int64_t plain_symbol(const Expression& expression);

}  // namespace quernel::runtime
