// The loop IR: what one kernel computes, as structured loops over buffers. It knows nothing of graphs or
// ONNX, and every code generator reads it. Expressions and statements are immutable trees held by shared
// pointers; sharing is allowed.
//
// A kernel is a grid of workgroups (independent of each other; grid[0] slowest, the last axis fastest) and a
// body that one workgroup runs. Index arithmetic is i64. Lowering writes scalar code with axis kinds on its
// loops; the passes `vectorize_loops` and `unroll_loops` then turn kVector loops into vector expressions
// (lanes > 1) and kUnrolled loops into copies, so that code generators see kSerial/kReduction loops and
// explicit vectors only.
#pragma once

#include <cstdint>
#include <memory>
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
  kGlobal,    // a binding of the kernel: kernel_abi.h's bindings[binding]
  kShared,    // per workgroup (a CPU keeps it on the stack)
  kRegister,  // accumulators; after unrolling, indexed by constants only, so that it becomes registers
};
enum class Access : uint8_t { kRead, kWrite, kReadWrite };  // kWrite: no element is stored twice

inline constexpr int64_t kUnknownSize = INT64_MAX;

struct BufferNode {
  std::string name;  // unique in the kernel
  DType dtype = DType::kF32;
  int64_t size = 0;  // elements; kUnknownSize: depends on launch-time symbols (global buffers only)
  Scope scope = Scope::kGlobal;
  int binding = -1;  // kGlobal: index into the kernel's buffers, which is the binding index
  Access access = Access::kRead;
};
using Buffer = std::shared_ptr<const BufferNode>;

// ---- expressions
enum class ExprKind : uint8_t {
  kConst,   // type; bits: the element's own representation, zero-extended; with lanes > 1 a splat
  kVar,     // a loop or Let variable: var
  kSymbol,  // i64 launch-time symbol: symbol (index into Kernel::symbols)
  kLoad,    // buffer[args[0]]; with args[1..2]: guarded: predicate, value where it is false (memory is not
            // touched there)
  kUnary,   // unary(args[0])
  kBinary,  // binary(args[0], args[1]); comparisons yield bool with the operands' lanes
  kMulAcc,  // args[0] * args[1] + args[2], fused where the target has FMA (one rounding or two, as the target
            // does)
  kSelect,  // args[0] (bool) ? args[1] : args[2], lane by lane
  kCast,    // value conversion to `type` (CORE_OPS: float->int truncates and saturates, NaN->0; i4.. on load)
  kBitcast,      // same bits, `type` of the same total width
  kRamp,         // i64 vector: args[0] + lane * stride (a constant), `type.lanes` lanes
  kBroadcast,    // scalar args[0] in every lane
  kReduceLanes,  // scalar: binary (add mul max min and or) folded over the lanes of args[0], pairwise halves
  kInterleave,   // vector: lanes of args[0] and args[1] in turns, from their lower halves (stride 0) or upper
                 // ones (stride 1); the step that a transpose of n vectors of n lanes repeats log2(n) times
  kDot,  // lane by lane: args[2] plus the products of the parts of word args[0] with those of word args[1].
         // i32: four bytes, signed in an i32 and unsigned in a u32; the sum wraps. f32: two bf16 of each u32,
         // the upper product first, each added in one rounding; instructions may take denormals for zeros
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

// Builders. They check types with assertions, and fold constants and identities (x+0, x*1, x*0, 0/c, 0%c) of
// index arithmetic.
Expr const_index(int64_t value);
Expr const_int(DType dtype, int64_t value, int lanes = 1);   // integers and bool
Expr const_float(DType dtype, double value, int lanes = 1);  // rounded to the dtype
Expr const_bits(Type type, uint64_t bits);                   // exact representation
Expr var_ref(const Var& var);
Expr symbol_ref(int symbol);
Expr load(const Buffer& buffer, Expr index, int lanes = 1);  // lanes must equal the index's
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
inline Expr operator+(Expr a, Expr b) { return binary(BinaryOp::k_add, std::move(a), std::move(b)); }
inline Expr operator-(Expr a, Expr b) { return binary(BinaryOp::k_sub, std::move(a), std::move(b)); }
inline Expr operator*(Expr a, Expr b) { return binary(BinaryOp::k_mul, std::move(a), std::move(b)); }
// Constant value of an integer expression, if it is one (splats included).
bool as_const_int(const Expr& e, int64_t* value);

// ---- statements
enum class AxisKind : uint8_t { kSerial, kReduction, kUnrolled, kVector };

enum class StmtKind : uint8_t {
  kBlock,  // body in order
  kFor,    // var from 0 to extent-1, body; `axis` says how. kVector and kUnrolled need a constant extent
  kIf,   // condition (one bool): body[0], else body[1] if present. vectorize_loops turns lane-dependent ones
         // into predicates
  kLet,  // var = value, visible in the rest of the enclosing block
  kStore,    // buffer[index] = value; with a condition only where it holds. index lanes == value lanes
  kAlloc,    // buffer (kShared or kRegister) lives to the end of the enclosing block; contents undefined
  kBarrier,  // all invocations of a workgroup; a CPU needs none
};

struct StmtNode;
using Stmt = std::shared_ptr<const StmtNode>;

struct StmtNode {
  StmtKind kind = StmtKind::kBlock;
  std::vector<Stmt> body;  // kBlock: statements; kFor: one; kIf: one or two
  Var var;                 // kFor, kLet
  Expr extent;             // kFor
  AxisKind axis = AxisKind::kSerial;
  Expr condition;  // kIf; kStore: optional predicate
  Buffer buffer;   // kStore, kAlloc
  Expr index;      // kStore
  Expr value;      // kLet, kStore
};

Stmt block(std::vector<Stmt> body);
Stmt for_loop(const Var& var, Expr extent, AxisKind axis, Stmt body);
Stmt if_then(Expr condition, Stmt then, Stmt otherwise = nullptr);
Stmt let(const Var& var, Expr value);
Stmt store(const Buffer& buffer, Expr index, Expr value, Expr predicate = nullptr);
Stmt alloc(const Buffer& buffer);
Stmt barrier();

// ---- kernels
struct GridAxis {
  Var var;
  Expr extent;  // workgroups along this axis: constants and symbols only
};

struct Kernel {
  std::string name;
  std::vector<Buffer> buffers;       // global buffers, by binding index
  std::vector<std::string> symbols;  // names of launch-time symbols
  std::vector<GridAxis> grid;        // empty: one workgroup
  Stmt body;
};

}  // namespace quernel::loop
