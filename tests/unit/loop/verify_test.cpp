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

TEST(Verify, RefusesMalformedKernels) {
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
      {"let r: i32x4 = ramp(0i32, 1, 4)", "ramp expected a scalar i64 base"},
      {"{ let a: i64 = 1 }\n%y[a] = 1f32", "variable is not in scope in `a`"},
      {"for i in serial(2) { }\n%y[i] = 1f32", "variable is not in scope in `i`"},
      {"{ alloc %t: f32[1] register }\n%t[0] = 1f32", "store to a buffer that is not declared here"},
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

TEST(Verify, AcceptsConstantIndicesThatMayBeUnreachable) {
  EXPECT_EQ(errors_of(parsed(wrapped("let n: i64 = 3\nif n < 2 { %y[99] = 1f32 }\n%y[99 if false] = 1f32\n"
                                     "for i in serial(n) { %y[99] = %x[99 if false else 0f32] }"))),
            "");
}

TEST(Verify, RefusesNamesDeclaredTwice) {
  Kernel kernel;
  kernel.name = "k";
  Var first = make_var("i"), second = make_var("i");
  Stmt empty = block({});
  kernel.body = block({for_loop(first, const_index(2), AxisKind::kSerial, empty),
                       for_loop(second, const_index(2), AxisKind::kSerial, empty)});
  EXPECT_NE(errors_of(kernel).find("variable 'i' is declared twice"), std::string::npos);
}

TEST(Verify, RefusesBindingsOutOfOrderAndNamesThatDoNotParse) {
  Kernel kernel;
  kernel.name = "k";
  kernel.body = block({});
  BufferNode node{"a b", DType::kF32, 4, Scope::kGlobal, 3, Access::kRead};
  kernel.buffers = {std::make_shared<const BufferNode>(node)};
  std::string errors = errors_of(kernel);
  EXPECT_NE(errors.find("expected binding 0, found 3"), std::string::npos);
  EXPECT_NE(errors.find("'%a b' is not a buffer name"), std::string::npos);
}

TEST(Verify, GridExtentsAreConstantsAndSymbols) {
  Kernel kernel = parsed("kernel @k symbols($n) grid(a: 4, b: $n) {\n}\n");
  EXPECT_EQ(errors_of(kernel), "");
  kernel.grid[1].extent = var_ref(kernel.grid[0].var);
  EXPECT_NE(errors_of(kernel).find("variable is not in scope"), std::string::npos);
  kernel.grid[1].extent = symbol_ref(3);
  EXPECT_NE(errors_of(kernel).find("symbol is not declared"), std::string::npos);
}

}  // namespace
}  // namespace quernel::loop
