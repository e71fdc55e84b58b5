// The verifier refuses each kind of malformed kernel, and says which.
#include "loop/verify.h"

#include <gtest/gtest.h>

#include "loop/rewrite.h"
#include "run_kernel.h"

namespace quernel::loop {
namespace {

std::string errors_of(const Kernel& kernel) {
  Status status = verify(kernel);
  std::string text;
  for (const Diagnostic& d : status.errors()) text += d.message + "\n";
  return text;
}

std::string wrapped(const std::string& body) {
  return "kernel @k {\n  buffer %x: f32[16] read binding 0\n  buffer %y: f32[16] write binding 1\n" + body +
         "\n}\n";
}

struct BadKernel {
  const char* body;
  const char* message;
};

TEST(Verify, refuses_malformed_kernels) {
  const BadKernel kBad[] = {
      {"%x[0] = 1f32", "store to read-only buffer '%x'"},
      {"%y[0] = %y[1]", "load from write-only buffer '%y'"},
      {"%y[16] = 1f32", "index outside '%y' of 16 elements in `16`"},
      {"%y[-1] = 1f32", "index outside '%y' of 16 elements in `-1`"},
      {"%y[0] = %x[16]", "index outside '%x' of 16 elements"},
      {"%y[ramp(9, 1, 8)] = %x[ramp(0, 1, 8)]", "index outside '%y' of 16 elements in `ramp(9, 1, 8)`"},
      {"%y[0] = 1f16", "expected a value of type f32, found f16"},
      {"%y[0] = %x[ramp(0, 1, 8)]", "expected a value of type f32, found f32x8"},
      {"%y[0i32] = 1f32", "expected an index of type i64"},
      {"%y[0] = %x[0i32]", "expected an index of type i64"},
      {"%y[ramp(0, 1, 8) if true] = splat(1f32, 8)", "expected a predicate of the store's lanes"},
      {"%y[0] = %x[0 if 1 else 0f32]", "expected a predicate of the load's lanes"},
      {"%y[0] = %x[0 if true else 0f64]", "expected an alternative of the load's type"},
      {"%y[0] = and(1f32, 2f32)", "and is not defined on f32"},
      {"%y[0] = cast(f32, exp(3))", "exp is not defined on i64"},
      {"%y[0] = cast(f32, 1i4 + 2i4)", "add is not defined on i4"},
      {"%y[0] = mulacc(1, 2, 3f32)", "mulacc expected operands of its type"},
      {"%y[0] = select(1, 2f32, 3f32)", "select expected a condition of its lanes"},
      {"%y[0] = select(true, 2, 3f32)", "select expected operands of its type"},
      {"%y[0] = bitcast(f32, 1)", "bitcast expected 32 bits, found 64"},
      {"%y[0] = reduce_lanes(sub, splat(1f32, 4))", "reduce_lanes cannot fold with sub"},
      {"%y[0] = reduce_lanes(add, 1f32)", "reduce_lanes expected a vector of its dtype"},
      {"let r: f32x4 = interleave_lower(splat(1f32, 4), splat(1f32, 2))",
       "interleave expected vectors of its type with an even number of lanes"},
      {"let r: f32x3 = interleave_upper(splat(1f32, 3), splat(1f32, 3))",
       "interleave expected vectors of its type with an even number of lanes"},
      {"let r: i32 = dot(1u32, 2i8, 3i32)",
       "dot expected words of four bytes, i32 or u32, and a sum of type i32 or two in a u32, or words of two "
       "bf16, u32, and a sum of type f32, all of its lanes"},
      {"let r: i64 = dot(1u32, 2i32, 3i64)",
       "dot expected words of four bytes, i32 or u32, and a sum of type i32 or two in a u32, or words of two "
       "bf16, u32, and a sum of type f32, all of its lanes"},
      {"let r: f32 = dot(1i32, 2u32, 3f32)",
       "dot expected words of four bytes, i32 or u32, and a sum of type i32 or two in a u32, or words of two "
       "bf16, u32, and a sum of type f32, all of its lanes"},
      {"let r: i32x8 = dot_2x2(splat(1i32, 8), splat(1i32, 8), splat(1i32, 8))",
       "dot_2x2 expected four words of four bytes, i32 or u32, twice, and a sum of type i32x4"},
      {"let r: u32x4 = dot_2x2(splat(1i32, 4), splat(1i32, 4), splat(1u32, 4))",
       "dot_2x2 expected four words of four bytes, i32 or u32, twice, and a sum of type i32x4"},
      {"let r: i32x4 = ramp(0i32, 1, 4)", "ramp expected a scalar i64 base"},
      {"{ let a: i64 = 1 }\n%y[a] = 1f32", "variable is not in scope in `a`"},
      {"for i in serial(2) { }\n%y[i] = 1f32", "variable is not in scope in `i`"},
      {"{ alloc %t: f32[1] register }\n%t[0] = 1f32", "store to a buffer that is not declared here"},
      {"alloc %t: f32[1] register\nprefetch %t[0]",
       "prefetch of '%t', which is no global buffer of the kernel"},
      {"alloc %s: f32[4] matrix\n%s[0] = 1f32", "store of elements to matrix sums '%s'"},
      {"alloc %s: f32[4] matrix\n%y[0] = %s[0]", "load from matrix sums '%s'"},
      {"{ alloc %s: f32[4] matrix }\nstore_matrix(2, 2) %y[0, 2, 1] = %s",
       "matrix sums that are not declared here"},
      {"{ alloc %t: f32[4] shared }\nalloc %s: f32[4] matrix\nstore_matrix(2, 2) %t[0, 2, 1] = %s",
       "a matrix in a buffer that is not declared here"},
      {"alloc %s: f32[0] matrix\nstore_matrix(0, 2) %y[0, 2, 1] = %s", "a matrix without elements"},
      {"alloc %s: f32[4] matrix\nstore_matrix(2, 3) %y[0, 3, 1] = %s",
       "'%s' expected matrix sums of f32 or i32 with 6 elements"},
      {"alloc %s: f64[4] matrix\nstore_matrix(2, 2) %y[0, 2, 1] = %s",
       "'%s' expected matrix sums of f32 or i32 with 4 elements"},
      {"alloc %s: i32[4] matrix\nstore_matrix(2, 2) %y[0, 2, 1] = %s",
       "a matrix in '%y' expected memory of i32"},
      {"alloc %s: f32[4] matrix\nstore_matrix(2, 2) %y[0, 2, 2] = %s",
       "a matrix in '%y' expected strides of which one is 1"},
      {"alloc %s: f32[4] matrix\nstore_matrix(2, 2) %y[-1, 2, 1] = %s", "a matrix reaches outside '%y'"},
      {"alloc %s: f32[4] matrix\nstore_matrix(2, 2) %x[0, 2, 1] = %s",
       "a matrix in '%x', which the kernel does not write"},
      {"alloc %s: f32[4] matrix\nmultiply_matrices(2, 2, 1) %s += %x[0, 1, 1] * %x[0, 2, 1]",
       "a matrix in '%x' expected memory of f16 or bf16"},
      {"alloc %s: i32[4] matrix\nalloc %t: f16[4] shared\nmultiply_matrices(2, 2, 1) %s += %t[0, 1, 1] * "
       "%t[0, 2, 1]",
       "a matrix in '%t' expected memory of i8 or u8"},
      {"alloc %s: i32[4] matrix\nalloc %t: i8[4] shared\nalloc %u: u8[4] shared\nmultiply_matrices(2, 2, 1) "
       "%s += "
       "%t[0, 1, 1] * %u[0, 2, 1]",
       "a matrix in '%t' expected memory of u8"},
      {"prefetch %x[0i32]", "expected an index of type i64"},
      {"let n: i64 = 4\nfor i in vector(n) { }", "vector loop 'i' expected a constant extent"},
      {"let n: i64 = 4\nfor i in unrolled(n) { }", "unrolled loop 'i' expected a constant extent"},
      {"for i in serial(-1) { }", "loop 'i' has a negative extent"},
      {"if splat(true, 4) { }", "expected a condition of type bool"},
  };
  for (const BadKernel& bad : kBad) {
    std::string errors = errors_of(parsed(wrapped(bad.body)));
    EXPECT_NE(errors.find(bad.message), std::string::npos) << bad.body << "\nfound: " << errors;
  }
}

TEST(Verify, accepts_constant_indices_that_may_be_unreachable) {
  EXPECT_EQ(errors_of(parsed(wrapped("let n: i64 = 3\nif n < 2 { %y[99] = 1f32 }\n%y[99 if false] = 1f32\n"
                                     "for i in serial(n) { %y[99] = %x[99 if false else 0f32] }"))),
            "");
}

TEST(Verify, refuses_names_declared_twice) {
  Kernel kernel;
  kernel.name = "k";
  Var first = make_var("i"), second = make_var("i");
  Stmt empty = block({});
  kernel.body = block({for_loop(first, const_index(2), AxisKind::kSerial, empty),
                       for_loop(second, const_index(2), AxisKind::kSerial, empty)});
  EXPECT_NE(errors_of(kernel).find("variable 'i' is declared twice"), std::string::npos);
}

TEST(Verify, refuses_bindings_out_of_order_and_names_that_do_not_parse) {
  Kernel kernel;
  kernel.name = "k";
  kernel.body = block({});
  BufferNode node{"a b", DType::kF32, 4, Scope::kGlobal, 3, Access::kRead};
  kernel.buffers = {std::make_shared<const BufferNode>(node)};
  std::string errors = errors_of(kernel);
  EXPECT_NE(errors.find("expected binding 0, found 3"), std::string::npos);
  EXPECT_NE(errors.find("'%a b' is not a buffer name"), std::string::npos);
}

TEST(Verify, refuses_bounds_of_elements_that_a_kernel_writes_or_that_are_no_small_integers) {
  for (const char* buffer : {"f32[4] read binding 0 below 32", "i32[4] write binding 0 below 32",
                             "i8[4] read binding 0 below 128", "i4[4] read binding 0 below 8"}) {
    Kernel kernel = parsed("kernel @k {\n  buffer %x: " + std::string(buffer) + "\n}");
    EXPECT_NE(errors_of(kernel).find("expected integers that are only read below a number up to 127"),
              std::string::npos)
        << buffer;
  }
  EXPECT_EQ(errors_of(parsed("kernel @k {\n  buffer %x: i8[4] read binding 0 below 127\n}")), "");
}

// What no text can say, only a pass that makes nodes by hand.
TEST(Verify, refuses_malformed_nodes) {
  auto of_value = [](const ExprNode& node) {
    Kernel kernel = parsed(wrapped(""));
    Expr value = std::make_shared<const ExprNode>(node);
    kernel.body = block({let(std::make_shared<const VarNode>(VarNode{"a", node.type}), value)});
    return errors_of(kernel);
  };
  auto node = [](ExprKind kind, Type type, std::vector<Expr> args) {
    ExprNode n;
    n.kind = kind;
    n.type = type;
    n.args = std::move(args);
    return n;
  };
  const Type f32{DType::kF32, 1}, f32x2{DType::kF32, 2};
  Expr one = const_float(DType::kF32, 1);
  Kernel kernel = parsed(wrapped(""));
  ExprNode load = node(ExprKind::kLoad, f32, {one, one});
  load.buffer = kernel.buffers[0];
  auto of_load = [&](const ExprNode& n) {
    Kernel k = kernel;
    k.body = block(
        {let(std::make_shared<const VarNode>(VarNode{"a", n.type}), std::make_shared<const ExprNode>(n))});
    return errors_of(k);
  };
  auto has = [](const std::string& errors, const char* message) {
    EXPECT_NE(errors.find(message), std::string::npos) << message << "\nfound: " << errors;
  };
  const char* const incomplete = "expression without its operands, buffer or variable";
  has(of_load(load), incomplete);
  load.args = {const_index(0)};
  load.type = {DType::kF16, 1};
  has(of_load(load), "load's dtype is not the buffer's");
  has(of_value(node(ExprKind::kLoad, f32, {const_index(0)})), incomplete);
  has(of_value(node(ExprKind::kVar, f32, {})), incomplete);
  load.type = f32;
  load.buffer = std::make_shared<const BufferNode>(*kernel.buffers[0]);
  has(of_load(load), "load from a buffer that is not declared here");
  has(of_value(node(ExprKind::kSelect, f32, {one})), incomplete);
  ExprNode wide = node(ExprKind::kConst, {DType::kI8, 1}, {});
  wide.bits = 1 << 8;
  has(of_value(wide), "constant has bits beyond its dtype");
  has(of_value(node(ExprKind::kConst, {DType::kF32, 0}, {})), "variable 'a' has no lanes");
  ExprNode add = node(ExprKind::kBinary, {DType::kF64, 1}, {one, one});
  add.binary = BinaryOp::k_add;
  has(of_value(add), "binary operation has the wrong type");
  ExprNode mixed = node(ExprKind::kBinary, f32, {one, const_index(1)});
  mixed.binary = BinaryOp::k_add;
  has(of_value(mixed), "expected operands of one type, found f32 and i64");
  ExprNode neg = node(ExprKind::kUnary, {DType::kF64, 1}, {one});
  neg.unary = UnaryOp::k_neg;
  has(of_value(neg), "unary operation has the wrong type");
  has(of_value(node(ExprKind::kCast, f32x2, {one})), "cast changes the lanes");
  has(of_value(node(ExprKind::kBroadcast, f32, {one})), "broadcast expected a scalar of its dtype");
  has(of_value(node(ExprKind::kCast, f32, {nullptr})), "missing expression");
  Expr yes = const_int(DType::kBool, 1);
  has(of_value(node(ExprKind::kMulAcc, yes->type, {yes, yes, yes})), "mulacc is not defined on bool");

  Kernel symbolic = parsed("kernel @k symbols($n) {\n  let a: i64 = $n\n}\n");
  ExprNode symbol = *symbolic.body->body[0]->value;
  symbol.type = f32;
  symbolic.body = block(
      {let(std::make_shared<const VarNode>(VarNode{"a", f32}), std::make_shared<const ExprNode>(symbol))});
  has(errors_of(symbolic), "symbol is not i64");
}

TEST(Verify, refuses_malformed_kernels_and_statements) {
  auto has = [](const Kernel& kernel, const char* message) {
    std::string errors = errors_of(kernel);
    EXPECT_NE(errors.find(message), std::string::npos) << message << "\nfound: " << errors;
  };
  Kernel empty;
  empty.name = "a b";
  has(empty, "'@a b' is not a kernel name");
  has(empty, "kernel has no body");
  Kernel kernel;
  kernel.name = "k";
  kernel.symbols = {"a b", "n", "n"};
  StmtNode statements;
  statements.kind = StmtKind::kBlock;
  statements.body = {nullptr};
  kernel.body = std::make_shared<const StmtNode>(statements);
  kernel.buffers = {std::make_shared<const BufferNode>(
      BufferNode{"x", DType::kF32, -1, Scope::kRegister, 0, Access::kRead})};
  has(kernel, "'$a b' is not a symbol name");
  has(kernel, "symbol '$n' is declared twice");
  has(kernel, "missing statement");
  has(kernel, "buffer '%x' has a negative size");
  has(kernel, "buffer '%x' of the kernel is not global");

  kernel = parsed("kernel @k grid(a: 4) {\n}\n");
  kernel.grid[0].extent = const_int(DType::kI32, 4);
  has(kernel, "grid axis 'a' expected an extent of type i64, found i32");
  kernel.grid.clear();
  Expr four = const_int(DType::kI32, 4);
  Var narrow = std::make_shared<const VarNode>(VarNode{"a b", {DType::kI32, 1}});
  StmtNode loop;
  loop.kind = StmtKind::kFor;
  loop.var = narrow;
  loop.extent = four;
  loop.body = {block({})};
  kernel.body = std::make_shared<const StmtNode>(loop);
  has(kernel, "loop 'a b' expected an extent of type i64");
  has(kernel, "loop variable 'a b' is not i64");
  has(kernel, "'a b' is not a variable name");
  StmtNode global;
  global.kind = StmtKind::kAlloc;
  global.buffer =
      std::make_shared<const BufferNode>(BufferNode{"x", DType::kF32, 1, Scope::kGlobal, 0, Access::kRead});
  kernel.body = std::make_shared<const StmtNode>(global);
  has(kernel, "alloc of global buffer '%x'");
  StmtNode local = global;
  local.buffer = std::make_shared<const BufferNode>(
      BufferNode{"x", DType::kF32, kUnknownSize, Scope::kRegister, 0, Access::kRead});
  kernel.body = std::make_shared<const StmtNode>(local);
  has(kernel, "buffer '%x' expected a known size, as it is local");
}

TEST(Verify, grid_extents_are_constants_and_symbols) {
  Kernel kernel = parsed("kernel @k symbols($n) grid(a: 4, b: $n) {\n}\n");
  EXPECT_EQ(errors_of(kernel), "");
  kernel.grid[1].extent = var_ref(kernel.grid[0].var);
  EXPECT_NE(errors_of(kernel).find("variable is not in scope"), std::string::npos);
  kernel.grid[1].extent = symbol_ref(3);
  EXPECT_NE(errors_of(kernel).find("symbol is not declared"), std::string::npos);
}

}  // namespace
}  // namespace quernel::loop
