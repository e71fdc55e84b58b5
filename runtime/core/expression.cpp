#include "core/expression.h"

namespace quernel::runtime {
namespace {

Opcode opcode(const Expression& expression, uint32_t step) {
  return static_cast<Opcode>(expression.code[2 * step]);
}
int64_t operand(const Expression& expression, uint32_t step) { return expression.code[2 * step + 1]; }

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
      overflow = __builtin_mul_overflow(a, b, result);
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

bool well_formed(const Expression& expression, uint64_t symbol_count) {
  if (expression.steps == 0 || expression.steps > kMaxExpressionSteps) return false;
  uint32_t depth = 0;
  for (uint32_t i = 0; i < expression.steps; ++i) {
    int64_t word = expression.code[2 * i];
    if (word < 0 || word > static_cast<int64_t>(Opcode::kMax)) return false;
    if (opcode(expression, i) > Opcode::kSymbol) {
      if (depth < 2) return false;
      depth -= 1;
      continue;
    }
    // a negative operand is a large one
    if (opcode(expression, i) == Opcode::kSymbol &&
        static_cast<uint64_t>(operand(expression, i)) >= symbol_count)
      return false;
    if (++depth > kMaxExpressionStack) return false;
  }
  return depth == 1;
}

Evaluation evaluate(const Expression& expression, const int64_t* symbols, int64_t* value) {
  int64_t stack[kMaxExpressionStack];
  uint32_t depth = 0;
  for (uint32_t i = 0; i < expression.steps; ++i) {
    switch (opcode(expression, i)) {
      case Opcode::kConstant:
        stack[depth++] = operand(expression, i);
        break;
      case Opcode::kSymbol:
        stack[depth] = symbols[operand(expression, i)];
        if (stack[depth++] == kUnset) return Evaluation::kUnsetSymbol;
        break;
      default: {
        int64_t b = stack[--depth];
        Evaluation result = apply(opcode(expression, i), stack[depth - 1], b, &stack[depth - 1]);
        if (result != Evaluation::kOk) return result;
      }
    }
  }
  *value = stack[0];
  return Evaluation::kOk;
}

int64_t plain_symbol(const Expression& expression) {
  return expression.steps == 1 && opcode(expression, 0) == Opcode::kSymbol ? operand(expression, 0) : -1;
}

}  // namespace quernel::runtime
