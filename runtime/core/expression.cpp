#include "core/expression.h"

namespace quernel::runtime {
namespace {

// Rounds toward negative infinity. -1 is handled apart: the least integer has no negative.
Evaluation divide(int64_t a, int64_t b, bool modulo, int64_t* result) {
  if (b == 0) return Evaluation::kDivisionByZero;
  if (b == -1) {
    *result = 0;
    return !modulo && __builtin_sub_overflow(int64_t{0}, a, result) ? Evaluation::kOverflow : Evaluation::kOk;
  }
  int64_t quotient = a / b, rest = a % b;
  bool down = rest != 0 && (rest < 0) != (b < 0);
  *result = modulo ? rest + (down ? b : 0) : quotient - (down ? 1 : 0);
  return Evaluation::kOk;
}

bool multiply_signed(int64_t a, int64_t b, int64_t* product) {
  auto magnitude = [](int64_t v) { return v < 0 ? 0 - static_cast<uint64_t>(v) : static_cast<uint64_t>(v); };
  uint64_t negative = (a < 0) != (b < 0) ? 1 : 0, result = 0;
  if (!multiply(magnitude(a), magnitude(b), &result) || result > (uint64_t{1} << 63) - 1 + negative)
    return false;
  *product = static_cast<int64_t>(negative != 0 ? 0 - result : result);
  return true;
}

Evaluation apply(Opcode opcode, int64_t a, int64_t b, int64_t* result) {
  bool overflow = false;
  switch (opcode) {
    case Opcode::kAdd:
      overflow = __builtin_add_overflow(a, b, result);
      break;
    case Opcode::kSubtract:
      overflow = __builtin_sub_overflow(a, b, result);
      break;
    case Opcode::kMultiply:
      overflow = !multiply_signed(a, b, result);
      break;
    case Opcode::kDivide:
    case Opcode::kModulo:
      return divide(a, b, opcode == Opcode::kModulo, result);
    case Opcode::kMin:
      *result = a < b ? a : b;
      break;
    case Opcode::kMax:
      *result = a > b ? a : b;
      break;
    case Opcode::kConstant:
    case Opcode::kSymbol:
      break;
  }
  return overflow ? Evaluation::kOverflow : Evaluation::kOk;
}

}  // namespace

bool multiply(uint64_t a, uint64_t b, uint64_t* product) { return !__builtin_mul_overflow(a, b, product); }

bool well_formed(const Expression& expression, uint64_t symbol_count) {
  if (expression.steps == 0 || expression.steps > kMaxExpressionSteps) return false;
  uint32_t depth = 0;
  for (uint32_t i = 0; i < expression.steps; ++i) {
    int64_t word = expression.code[2 * i];
    if (word < 0 || word > static_cast<int64_t>(Opcode::kMax)) return false;
    if (expression.opcode(i) > Opcode::kSymbol) {
      if (depth < 2) return false;
      depth -= 1;
      continue;
    }
    // a negative operand is a large one
    if (expression.opcode(i) == Opcode::kSymbol &&
        static_cast<uint64_t>(expression.operand(i)) >= symbol_count)
      return false;
    if (++depth > kMaxExpressionStack) return false;
  }
  return depth == 1;
}

Evaluation evaluate(const Expression& expression, const int64_t* symbols, int64_t* value) {
  int64_t stack[kMaxExpressionStack];
  int64_t* end = stack;
  for (uint32_t i = 0; i < expression.steps; ++i) {
    Opcode opcode = expression.opcode(i);
    if (opcode > Opcode::kSymbol) {
      end -= 1;
      Evaluation result = apply(opcode, end[-1], end[0], &end[-1]);
      if (result != Evaluation::kOk) return result;
      continue;
    }
    int64_t number = expression.operand(i);
    if (opcode == Opcode::kSymbol) number = symbols[number];
    if (opcode == Opcode::kSymbol && number == kUnset) return Evaluation::kUnsetSymbol;
    *end++ = number;
  }
  *value = stack[0];
  return Evaluation::kOk;
}

int64_t plain_symbol(const Expression& expression) {
  return expression.steps == 1 && expression.opcode(0) == Opcode::kSymbol ? expression.operand(0) : -1;
}

}  // namespace quernel::runtime
