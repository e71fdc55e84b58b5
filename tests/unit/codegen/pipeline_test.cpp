// Loop IR as lowering writes it (scalar, with vector and unrolled axes) through the loop passes and this code
// generator, against the loop-IR interpreter: what passes and code generator agree on is checked here
// together.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "host_targets.h"
#include "kernel_maker.h"
#include "loop/interpret.h"
#include "loop/passes.h"
#include "run_image.h"

namespace quernel::test {
namespace {

using namespace loop;

// Small integers, so that every order of summation gives the same.
std::vector<float> small_integers(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> x(count);
  for (float& v : x) v = static_cast<float>(static_cast<int>(random() % 9) - 4);
  return x;
}

// The last buffer is the output; all are f32.
void expect_as_interpreted(const Kernel& kernel, uint64_t workgroups, const std::vector<int64_t>& symbols) {
  std::vector<std::vector<float>> memory;
  for (size_t i = 0; i < kernel.buffers.size(); ++i)
    memory.push_back(small_integers(static_cast<size_t>(kernel.buffers[i]->size), static_cast<unsigned>(i)));
  std::vector<float> untouched = memory.back();
  std::vector<std::span<uint8_t>> spans;
  for (auto& m : memory) spans.emplace_back(reinterpret_cast<uint8_t*>(m.data()), m.size() * sizeof(float));
  Status status = interpret(kernel, spans, symbols);
  ASSERT_TRUE(status) << to_string(status.errors());
  std::vector<float> want = memory.back();
  ASSERT_NE(want, untouched);

  Kernel lowered = kernel;
  simplify(lowered);
  vectorize_loops(lowered);
  unroll_loops(lowered);
  simplify(lowered);
  for (const std::string& target : host_targets()) {
    codegen::Image image = compile_or_fail({lowered}, target);
    if (image.code.empty()) return;
    MappedImage mapped(image.code);
    memory.back() = untouched;
    std::vector<void*> bindings;
    for (auto& m : memory) bindings.push_back(m.data());
    EXPECT_EQ(mapped.call(0, bindings, workgroups, symbols), QNL_KERNEL_OK);
    EXPECT_EQ(memory.back(), want) << target;
  }
}

// A register tile of a matrix product: rows unrolled, columns vectors, one workgroup per row block.
TEST(Pipeline, matrix_product_tile) {
  constexpr int kRows = 4, kColumns = 32, kDepth = 19;
  KernelMaker m("tile");
  Buffer a = m.global(DType::kF32, 2 * kRows * kDepth), b = m.global(DType::kF32, kDepth * kColumns);
  Buffer c = m.output(DType::kF32, 2 * kRows * kColumns),
         acc = m.local(DType::kF32, kRows * kColumns, Scope::kRegister);
  Var block_id = m.grid(const_index(2)), k = m.var();
  auto tile = [&](const std::function<Stmt(Expr, Expr)>& body) {
    Var i = m.var(), j = m.var(), v = m.var();
    Expr column = var_ref(j) * const_index(16) + var_ref(v);
    Stmt inner = for_loop(v, const_index(16), AxisKind::kVector, body(var_ref(i), column));
    return for_loop(i, const_index(kRows), AxisKind::kUnrolled,
                    for_loop(j, const_index(kColumns / 16), AxisKind::kUnrolled, inner));
  };
  auto place = [&](Expr i, Expr j) { return i * const_index(kColumns) + j; };
  auto row = [&](Expr i) { return var_ref(block_id) * const_index(kRows) + i; };
  m.kernel.body = block(
      {alloc(acc), tile([&](Expr i, Expr j) { return store(acc, place(i, j), const_float(DType::kF32, 0)); }),
       for_loop(k, const_index(kDepth), AxisKind::kReduction, tile([&](Expr i, Expr j) {
                  return store(
                      acc, place(i, j),
                      mul_acc(load(a, row(i) * const_index(kDepth) + var_ref(k)),
                              load(b, var_ref(k) * const_index(kColumns) + j), load(acc, place(i, j))));
                })),
       tile([&](Expr i, Expr j) {
         return store(c, place(row(i), j),
                      binary(BinaryOp::k_max, load(acc, place(i, j)), const_float(DType::kF32, 0)));
       })});
  expect_as_interpreted(m.kernel, 2, {});
}

// A 1-D convolution with padding and a symbolic length: guarded loads, predicated stores.
TEST(Pipeline, padded_convolution) {
  constexpr int kTaps = 5, kLargest = 100;
  for (int64_t length : {1, 16, 37, kLargest}) {
    KernelMaker m("convolution");
    Expr n = m.symbol("n");
    Buffer x = m.global(DType::kF32, kLargest), w = m.global(DType::kF32, kTaps),
           y = m.output(DType::kF32, kLargest);
    Buffer acc = m.local(DType::kF32, 16, Scope::kRegister);
    Var chunk = m.grid(const_index(7)), t = m.var();
    auto lanes = [&](const std::function<Stmt(Expr, Expr)>& body) {
      Var v = m.var();
      return for_loop(v, const_index(16), AxisKind::kVector,
                      body(var_ref(v), var_ref(chunk) * const_index(16) + var_ref(v)));
    };
    m.kernel.body =
        block({alloc(acc), lanes([&](Expr v, Expr) { return store(acc, v, const_float(DType::kF32, 0)); }),
               for_loop(t, const_index(kTaps), AxisKind::kReduction, lanes([&](Expr v, Expr i) {
                          Expr source = i + var_ref(t) - const_index(kTaps / 2);
                          Expr inside =
                              binary(BinaryOp::k_and, binary(BinaryOp::k_ge, source, const_index(0)),
                                     binary(BinaryOp::k_lt, source, n));
                          Expr value = load_guarded(x, source, inside, const_float(DType::kF32, 0));
                          return store(acc, v, mul_acc(value, load(w, var_ref(t)), load(acc, v)));
                        })),
               lanes([&](Expr v, Expr i) {
                 return if_then(binary(BinaryOp::k_lt, i, n), store(y, i, load(acc, v)));
               })});
    expect_as_interpreted(m.kernel, 7, {length});
  }
}

// A transposing, flipping copy: strides other than one on both sides, index division.
TEST(Pipeline, transpose_and_flip) {
  constexpr int kRows = 8, kColumns = 48;
  KernelMaker m("transpose");
  Buffer x = m.global(DType::kF32, kRows * kColumns), y = m.output(DType::kF32, kRows * kColumns);
  Var i = m.var(), v = m.var();
  Expr flat = var_ref(i) * const_index(16) + var_ref(v);
  Expr row = binary(BinaryOp::k_fdiv, flat, const_index(kColumns)),
       column = binary(BinaryOp::k_mod, flat, const_index(kColumns));
  Expr target = (const_index(kColumns - 1) - column) * const_index(kRows) + row;
  m.kernel.body = for_loop(i, const_index(kRows * kColumns / 16), AxisKind::kSerial,
                           for_loop(v, const_index(16), AxisKind::kVector, store(y, target, load(x, flat))));
  expect_as_interpreted(m.kernel, 1, {});
}

}  // namespace
}  // namespace quernel::test
