// Lane reductions of shaders: functions that all invocations of a workgroup call, each with its lane, and
// that give all of them the result. Where there are subgroups each folds its own lanes, and every invocation
// what they have left, however many they are and whether they are full.
#include <functional>
#include <optional>

#include "codegen/spirv/shader_printer.h"
#include "support/diagnostic.h"

namespace quernel::codegen {

using loop::ExprKind;

namespace {

// Floats as integers of the same order: their bits, those of the magnitude inverted where they are negative.
// NaNs come last, on the side that is looked for: what becomes of them is open among floats, not among
// integers.
struct Order {
  int shift;               // to the top of an int
  const char* magnitudes;  // of numbers, in the int: at most this
};
std::optional<Order> order_of(DType dtype) {
  if (dtype == DType::kF32) return Order{0, "0x7f800000"};
  if (dtype == DType::kF16) return Order{16, "0x7c000000"};
  if (dtype == DType::kBF16) return Order{16, "0x7f800000"};
  return std::nullopt;
}

std::string order_functions(DType dtype, BinaryOp op, const std::string& name) {
  Order order = *order_of(dtype);
  std::string type = glsl_type(dtype), shift = std::to_string(order.shift);
  std::string bits = order.shift == 0 ? "floatBitsToInt(x)" : "int(x << " + shift + "u)";
  std::string from = order.shift == 0 ? "intBitsToFloat(x)" : "uint(x) >> " + shift + "u";
  std::string nan = op == BinaryOp::k_max ? "0x7fffffff" : "(-0x7fffffff - 1)";
  return "int to_" + name + "(" + type + " x) {\n  int bits = " + bits +
         ";\n  return (bits & 0x7fffffff) > " + order.magnitudes + " ? " + nan +
         " : bits ^ ((bits >> 31) & 0x7fffffff);\n}\n" + type + " from_" + name +
         "(int x) {\n  x ^= (x >> 31) & 0x7fffffff;\n  return " + from + ";\n}\n";
}

// An operation of subgroups, its identity, and the dtype that it is computed in.
struct SubgroupFold {
  DType dtype;
  std::string operation, identity;
};

// None where Vulkan 1.1 has none: integers of 64 bits are an extension of it.
std::optional<SubgroupFold> subgroup_fold(BinaryOp op, DType dtype) {
  bool extreme = op == BinaryOp::k_max || op == BinaryOp::k_min;
  if (extreme && order_of(dtype)) dtype = DType::kI32;
  bool is_real = is_wide_float(dtype);
  std::string type = glsl_type(dtype);
  if (dtype == DType::kBool) {
    bool any = op == BinaryOp::k_or || op == BinaryOp::k_add || op == BinaryOp::k_max;
    if (!any && op != BinaryOp::k_and && op != BinaryOp::k_mul && op != BinaryOp::k_min) return std::nullopt;
    return SubgroupFold{dtype, any ? "subgroupOr" : "subgroupAnd", any ? "false" : "true"};
  }
  if (!is_real && (!is_integer(dtype) || bit_width(dtype) == 64)) return std::nullopt;
  bool is_signed = type == "int";
  switch (op) {
    case BinaryOp::k_add:
      return SubgroupFold{dtype, "subgroupAdd", is_real ? "-0.0" : type + "(0)"};
    case BinaryOp::k_mul:
      return SubgroupFold{dtype, "subgroupMul", type + "(1)"};
    case BinaryOp::k_max:
      if (is_real) return std::nullopt;
      return SubgroupFold{dtype, "subgroupMax", is_signed ? "(-0x7fffffff - 1)" : "0u"};
    case BinaryOp::k_min:
      if (is_real) return std::nullopt;
      return SubgroupFold{dtype, "subgroupMin", is_signed ? "0x7fffffff" : "0xffffffffu"};
    case BinaryOp::k_and:
      if (is_real) return std::nullopt;
      return SubgroupFold{dtype, "subgroupAnd", is_signed ? "-1" : "0xffffffffu"};
    case BinaryOp::k_or:
      if (is_real) return std::nullopt;
      return SubgroupFold{dtype, "subgroupOr", type + "(0)"};
    default:
      return std::nullopt;
  }
}

std::string precise(const std::string& type) {
  return type == "float" || type == "double" ? "precise " + type : type;
}

}  // namespace

std::string ShaderPrinter::fold(BinaryOp op, DType dtype, const std::string& a, const std::string& b) {
  if (dtype == DType::kBool) return bool_text(spelling_, op, a, b);
  if (const char* infix = operator_text(op, dtype)) {
    std::string text = a + " " + infix + " " + b;
    return is_integer(dtype) ? wrapped(dtype, text) : text;
  }
  if (is_integer(dtype))
    return "(" + a + (op == BinaryOp::k_max ? " > " : " < ") + b + " ? " + a + " : " + b + ")";
  return call(op, dtype, a, b);
}

// Workgroup memory that reductions of one kind share.
std::string ShaderPrinter::lane_array(const std::string& kind, DType dtype, int copies) {
  std::string type = glsl_type(dtype), array = kind + "_" + type;
  if (!lane_arrays_.insert(array).second) return array;
  int elements = copies * distribution_.invocations;
  shared_ += "shared " + type + " " + array + "[" + std::to_string(elements) + "];\n";
  if (copies > 1) shared_ += "int turn_" + type + " = 0;\n";
  shared_bytes_ += int64_t{elements} * (bit_width(dtype) == 64 ? 8 : 4);
  return array;
}

// Halves pairwise; of an odd count the middle lane waits for the next round.
std::string ShaderPrinter::fold_in_memory(const std::string& name, BinaryOp op, DType dtype, int lanes) {
  std::string type = glsl_type(dtype), array = lane_array("lanes", dtype, 1);
  std::string text = type + " " + name + "(" + type +
                     " x) {\n  int lane = int(gl_LocalInvocationIndex);\n  barrier();\n  " + array +
                     "[lane] = x;\n  barrier();\n";
  for (int n = lanes; n > 1;) {
    int half = n / 2, kept = n - half;
    text += "  if (lane < " + std::to_string(half) + ") {\n    " + precise(type) + " folded = " +
            fold(op, dtype, array + "[lane]", array + "[lane + " + std::to_string(kept) + "]") + ";\n    " +
            array + "[lane] = folded;\n  }\n  barrier();\n";
    n = kept;
  }
  return text + "  return " + array + "[0];\n}\n";
}

// The subgroups' results lie in the two halves of an array by turns: who writes to one has waited, in the
// call before, for all who read it in the call before that. So one barrier does.
std::string ShaderPrinter::fold_in_subgroups(const std::string& name, BinaryOp op, DType dtype, int lanes) {
  SubgroupFold inner = *subgroup_fold(op, dtype);
  bool in_order = inner.dtype != dtype;
  std::string array = lane_array("subgroups", inner.dtype, 2), outer_type = glsl_type(dtype);
  std::string type = glsl_type(inner.dtype), turn = "turn_" + type;
  std::string x = in_order ? "to_" + name + "(x)" : "x";
  if (lanes < distribution_.invocations)
    x = "int(gl_LocalInvocationIndex) < " + std::to_string(lanes) + " ? " + x + " : " + inner.identity;
  std::string own = inner.operation + "(" + x + ")";
  if (is_integer(inner.dtype) && bit_width(inner.dtype) < 32) own = wrapped(inner.dtype, own);
  std::string text = in_order ? order_functions(dtype, op, name) : "";
  text += outer_type + " " + name + "(" + outer_type + " x) {\n  " + precise(type) + " folded = " + own +
          ";\n  " + turn + " ^= " + std::to_string(distribution_.invocations) + ";\n  if (subgroupElect()) " +
          array + "[" + turn + " + int(gl_SubgroupID)] = folded;\n  barrier();\n  folded = " + array + "[" +
          turn + "];\n  for (int i = 1; i < int(gl_NumSubgroups); ++i) {\n    " + type + " next = " + array +
          "[" + turn + " + i];\n    folded = " + fold(op, inner.dtype, "folded", "next") + ";\n  }\n";
  return text + "  return " + (in_order ? "from_" + name + "(folded)" : "folded") + ";\n}\n";
}

std::string ShaderPrinter::reduce_lanes(const loop::ExprNode& e) {
  const loop::Expr& x = e.args[0];
  DType dtype = x->type.dtype;
  int lanes = x->type.lanes;
  if (lanes == 1) return lane_value(x);
  std::string name = "fold_" + std::string(to_string(e.binary)) + "_" +
                     std::string(quernel::to_string(dtype)) + "_" + std::to_string(lanes);
  if (reduced_.insert(name).second) {
    bool in_subgroups = target_.has_subgroups && subgroup_fold(e.binary, dtype);
    uses_subgroups_ = uses_subgroups_ || in_subgroups;
    reductions_ += in_subgroups ? fold_in_subgroups(name, e.binary, dtype, lanes)
                                : fold_in_memory(name, e.binary, dtype, lanes);
  }
  std::string result = name + "(" + lane_value(x) + ")";
  return dtype == DType::kI64 ? "int64_t(" + result + ")" : result;
}

void ShaderPrinter::reduce_first(const loop::Expr& root) {
  if (!root) return;
  std::unordered_set<const loop::ExprNode*> seen;
  std::function<void(const loop::Expr&)> visit = [&](const loop::Expr& e) {
    if (!seen.insert(e.get()).second) return;
    for (const loop::Expr& arg : e->args) visit(arg);
    if (e->kind != ExprKind::kReduceLanes || e->args[0]->type.lanes == 1) return;
    (void)atom(e, scalar_place());
    // All have waited, for workgroup memory at least.
    since_barrier_.forget_own();
    since_barrier_.join(of_statement_);
  };
  visit(root);
}

}  // namespace quernel::codegen
