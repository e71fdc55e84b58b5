// The loop IR: what one kernel computes, as structured loops over buffers. It knows nothing of graphs or
// ONNX. Every code generator reads it. Expressions and statements are immutable trees held by shared
// pointers; sharing is allowed.
//
// A kernel is a grid of independent workgroups (grid[0] slowest, the last axis fastest) and a body that one
// workgroup runs. Index arithmetic is i64. Lowering writes loops with axis kinds. The passes
// `vectorize_loops` and `unroll_loops` turn kVector loops into vector expressions (lanes > 1) and kUnrolled
// loops into copies. Code generators thus see only kSerial and kReduction loops and explicit vectors.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "support/dtype.h"
#include "support/scalar_ops.h"

namespace quernel::loop {

struct Type {
  DType dtype = DType::kF32;
  int lanes = 1;
  bool operator==(const Type&) const = default;
  Type with_lanes(int n) const { return {dtype, n}; }
};
inline constexpr Type kIndexType{DType::kI64, 1};

// ---- buffers
enum class Scope : uint8_t {
  kGlobal,    // a binding of the kernel: bindings[binding] of kernel_abi.h
  kShared,    // shared memory of a workgroup; on a CPU: stack or scratch memory
  kRegister,  // accumulators; after unrolling, indexed by constants only, so they become registers
  kMatrix,  // accumulators of matrix units, zeros at first; only kMultiplyMatrices and kStoreMatrix access them
};
enum class Access : uint8_t { kRead, kWrite, kReadWrite };  // kWrite: no element is stored twice

inline constexpr int64_t kUnknownSize = INT64_MAX;

struct BufferNode {
  std::string name;  // unique in the kernel
  DType dtype = DType::kF32;
  int64_t size = 0;  // elements; kUnknownSize (global buffers): depends on launch-time symbols
  Scope scope = Scope::kGlobal;
  int binding = -1;  // kGlobal: index in the kernel's buffers, the binding index
  Access access = Access::kRead;
  bool overlaps = false;  // kGlobal: shares bytes with others of which this is true
  bool aligned = false;   // kGlobal: the first element is known to lie at a multiple of 16 bytes
  int64_t below = 0;      // kGlobal, integers: all elements are in [0, below), as far as is known; 0: any
};
using Buffer = std::shared_ptr<const BufferNode>;

// ---- expressions
enum class ExprKind : uint8_t {
  kConst,   // type; bits: the element's representation, zero-extended; lanes > 1: a splat
  kVar,     // var: a loop or Let variable
  kSymbol,  // symbol: index in Kernel::symbols of an i64 launch-time symbol
  kLoad,    // buffer[args[0]]; guarded: args[1] is the predicate, args[2] the value if it is false (memory is
            // then not touched)
  kUnary,   // unary(args[0])
  kBinary,  // binary(args[0], args[1]); comparisons give bool with the operands' lanes
  kMulAcc,  // args[0] * args[1] + args[2]; fused if the target has FMA: one rounding or two
  kSelect,  // args[0] (bool) ? args[1] : args[2], lane by lane
  kCast,    // converts the value to `type`; float to integer truncates and saturates, NaN gives 0
  kBitcast,      // same bits, reinterpreted as `type` of the same total width
  kRamp,         // i64 vector: args[0] + lane * stride, `type.lanes` lanes
  kBroadcast,    // the scalar args[0] in every lane
  kReduceLanes,  // scalar: folds the lanes of args[0] by halves; binary: add mul max min and or
  kInterleave,  // vector: alternating lanes of the lower (stride 0) or upper (stride 1) halves of args[0] and
                // args[1]; a transpose of n vectors of n lanes repeats this log2(n) times
  // Per lane: args[2] plus the products of the parts of words args[0] and args[1].
  //   i32: four bytes per word, signed in an i32, unsigned in a u32; the addition wraps
  //   u32: the same bytes; the lower two products are added to the lower half of the word, the upper two to the upper half.
  //        Requires that the sum of two products fits an i16. The additions wrap
  //   f32: two bf16 per u32 word, the upper product first, one rounding per addition; instructions may flush denormals
  kDot,
  // i32x4: args[2] plus the products of two rows by two columns of eight bytes. Words 0 and 1 of args[0] are the first row,
  // words 2 and 3 the second one, those of args[1] likewise the columns; lane 2 i + j is row i by column j. Bytes are
  // signed in an i32, unsigned in a u32; the additions wrap
  kDot2x2,
};

struct VarNode {
  std::string name;  // unique in the kernel
  Type type = kIndexType;
};
using Var = std::shared_ptr<const VarNode>;

struct ExprNode;
using Expr = std::shared_ptr<const ExprNode>;

struct ExprNode {
  ExprKind kind = ExprKind::kConst;
  Type type;
  std::vector<Expr> args;
  uint64_t bits = 0;   // kConst
  Var var;             // kVar
  int symbol = -1;     // kSymbol
  Buffer buffer;       // kLoad
  UnaryOp unary{};     // kUnary
  BinaryOp binary{};   // kBinary, kReduceLanes
  int64_t stride = 0;  // kRamp, kInterleave
};

// Builders. They assert types, and fold constants and identities of index arithmetic (x+0, x*1, x*0, 0/c,
// 0%c).
Expr const_index(int64_t value);
Expr const_int(DType dtype, int64_t value, int lanes = 1);   // integers and bool
Expr const_float(DType dtype, double value, int lanes = 1);  // rounded to the dtype
Expr const_bits(Type type, uint64_t bits);                   // the element's representation
Expr var_ref(const Var& var);
Expr symbol_ref(int symbol);
Expr load(const Buffer& buffer, Expr index, int lanes = 1);  // requires the index's lanes
Expr load_guarded(const Buffer& buffer, Expr index, Expr predicate, Expr otherwise);
Expr unary(UnaryOp op, Expr x);
Expr binary(BinaryOp op, Expr a, Expr b);
Expr mul_acc(Expr a, Expr b, Expr c);
Expr select(Expr condition, Expr a, Expr b);
Expr cast(DType dtype, Expr x);
Expr bitcast(Type type, Expr x);
Expr ramp(Expr base, int64_t stride, int lanes);
Expr broadcast(Expr x, int lanes);
Expr reduce_lanes(BinaryOp op, Expr x);
Expr interleave(bool upper, Expr a, Expr b);
Expr dot(Expr a, Expr b, Expr c);
Expr dot_2x2(Expr a, Expr b, Expr c);
inline Expr operator+(Expr a, Expr b) { return binary(BinaryOp::k_add, std::move(a), std::move(b)); }
inline Expr operator-(Expr a, Expr b) { return binary(BinaryOp::k_sub, std::move(a), std::move(b)); }
inline Expr operator*(Expr a, Expr b) { return binary(BinaryOp::k_mul, std::move(a), std::move(b)); }
// Returns whether an integer expression is a constant, splats included, and stores its value.
bool as_const_int(const Expr& e, int64_t* value);

// ---- statements
enum class AxisKind : uint8_t { kSerial, kReduction, kUnrolled, kVector };

enum class StmtKind : uint8_t {
  kBlock,  // the statements of body, in order
  kFor,    // body for var from 0 to extent-1, by axis kind. kVector and kUnrolled need a constant extent
  kIf,     // if condition (one bool): body[0], else body[1] if present. vectorize_loops turns lane-dependent
           // conditions into predicates
  kLet,    // var = value, visible in the rest of the enclosing block
  kStore,  // buffer[index] = value, in lanes where the optional condition holds; equal lanes of both
  kAlloc,  // buffer (kShared or kRegister), valid to the end of the enclosing block, initially undefined
  kBarrier,  // waits for all invocations of a workgroup; none on a CPU
  // Asks for the cache line of buffer[index], of a global buffer; computes nothing. The index may be past the end.
  kPrefetch,
  // Adds the product of two matrices in memory, of one dtype, to all elements of buffer (kMatrix), row by row: the sum over
  // k of a(i, k) * b(k, j), of floats in any order and with any number of roundings to f32. The buffer's dtype is
  // sums_of_matrices of theirs. A workgroup's invocations do it together.
  kMultiplyMatrices,
  kStoreMatrix,  // copies all elements of buffer (kMatrix) to the place `a`, of the buffer's dtype
};

// A matrix in memory, not kMatrix: element (i, j) is at index + i * row_stride + j * column_stride; one stride is 1.
struct MatrixPlace {
  Buffer buffer;
  Expr index;
  int64_t row_stride = 0, column_stride = 0;
};
// kMultiplyMatrices: a is rows x steps, b is steps x columns. kStoreMatrix: a is rows x columns, steps is 0.
struct MatrixOperands {
  int64_t rows = 0, columns = 0, steps = 0;
  MatrixPlace a, b;
};

// Returns the dtype of sums of products of matrices: f32 of f16 and bf16, i32 of i8 and u8; nullopt: no others are multiplied.
std::optional<DType> sums_of_matrices(DType dtype);

struct StmtNode;
using Stmt = std::shared_ptr<const StmtNode>;

struct StmtNode {
  StmtKind kind = StmtKind::kBlock;
  std::vector<Stmt> body;  // kBlock: statements; kFor: one; kIf: one or two
  Var var;                 // kFor, kLet
  Expr extent;             // kFor
  AxisKind axis = AxisKind::kSerial;
  Expr condition;  // kIf; kStore: optional predicate
  Buffer buffer;   // kStore, kAlloc, kPrefetch, kMultiplyMatrices, kStoreMatrix
  Expr index;      // kStore, kPrefetch
  Expr value;      // kLet, kStore
  std::shared_ptr<const MatrixOperands> matrices;  // kMultiplyMatrices, kStoreMatrix
};

Stmt block(std::vector<Stmt> body);
Stmt for_loop(const Var& var, Expr extent, AxisKind axis, Stmt body);
Stmt if_then(Expr condition, Stmt then, Stmt otherwise = nullptr);
Stmt let(const Var& var, Expr value);
Stmt store(const Buffer& buffer, Expr index, Expr value, Expr predicate = nullptr);
Stmt alloc(const Buffer& buffer);
Stmt barrier();
Stmt prefetch(const Buffer& buffer, Expr index);
Stmt multiply_matrices(const Buffer& sums, MatrixOperands operands);
Stmt store_matrix(const Buffer& sums, MatrixOperands target);

// ---- kernels
struct GridAxis {
  Var var;
  Expr extent;  // workgroups along this axis: constants and symbols only
};

struct Kernel {
  std::string name;
  std::vector<Buffer> buffers;       // global buffers, by binding index
  std::vector<std::string> symbols;  // names of launch-time symbols
  // Whether the last symbol is the most iterations of the loops of one invocation. The kernel does not use it;
  // a device whose driver ends longer loops refuses the run.
  bool counts_iterations = false;
  std::vector<GridAxis> grid;  // empty: one workgroup
  Stmt body;
};

}  // namespace quernel::loop
