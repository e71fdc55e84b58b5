// Translates one loop-IR kernel into one LLVM function. Members are split by IR category: emit_kernel.cpp
// (function, grid loop, statements), emit_expr.cpp, emit_integer.cpp, emit_float.cpp, emit_load_store.cpp,
// emit_cast.cpp; the transcendentals are in math_builder.h. SSA values hold bool as i1, narrow floats as
// their bits (i16, i8), vectors as <n x T>; in memory a bool is an i8 that is 0 or 1. The kernel must have
// passed check_kernel.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <map>
#include <optional>
#include <string>
#include <unordered_map>

#include "codegen/llvm/instruction_set.h"
#include "loop/index_ranges.h"
#include "loop/ir.h"

namespace quernel::codegen {

class KernelEmitter {
 public:
  KernelEmitter(llvm::Module& module, const InstructionSet& isa, const loop::Kernel& kernel,
                std::string symbol);
  // Returns the bytes of scratch that the kernel needs.
  uint64_t emit();
  // Emits, instead of the kernel, a separate function that computes a value from scalars.
  llvm::Function* emit_function(const loop::Expr& value, const std::vector<loop::Var>& parameters);

 private:
  using Value = llvm::Value;

  // The lanes of an index vector as base + lane * stride, in the width of addresses.
  struct Affine {
    Value* base;
    int64_t stride;
  };
  // The condition under which an access may touch memory: each member that is set must hold; none is set:
  // always.
  struct Guard {
    Value* uniform = nullptr;  // i1
    Value* lanes = nullptr;    // <n x i1>
    explicit operator bool() const { return uniform || lanes; }
  };
  struct BufferSlot {
    Value* pointer = nullptr;
    llvm::MDNode* alias_scope = nullptr;
    llvm::MDNode* no_alias = nullptr;
  };

  // emit_kernel.cpp
  void bind_arguments();
  void emit_workgroups();
  void decode_grid(Value* workgroup);
  void statement(const loop::StmtNode& s);
  void prefetch(Value* pointer);
  void emit_for(const loop::StmtNode& s);
  void emit_if(const loop::StmtNode& s);
  void emit_alloc(const loop::Buffer& buffer);
  void bind_variable(const loop::Var& var, Value* value);
  llvm::BasicBlock* new_block(const char* name);
  llvm::MDNode* loop_metadata();

  // emit_expr.cpp
  Value* expr(const loop::Expr& e);
  Value* emit_expr(const loop::ExprNode& e);
  Value* constant(const loop::ExprNode& e);
  Value* ramp(Value* base, int64_t stride, int lanes);
  Value* unary(const loop::ExprNode& e);
  Value* binary(const loop::ExprNode& e);
  Value* apply_binary(BinaryOp op, DType dtype, Value* a, Value* b);
  Value* apply_bool(BinaryOp op, Value* a, Value* b);
  Value* shift_of_bytes(const loop::ExprNode& e);
  Value* fraction(const loop::ExprNode& e);
  Value* mul_acc(const loop::ExprNode& e);
  Value* dot(const loop::ExprNode& e);
  Value* dot_2x2(const loop::ExprNode& e);
  Value* dot_by_instruction(Value* a, bool a_signed, Value* b, bool b_signed, Value* sum);
  Value* sum_of_lanes(const loop::ExprNode& e);
  Value* dot_in_halves(Value* a, bool a_signed, Value* b, bool b_signed, Value* sum);
  Value* sum_of_halves(const loop::ExprNode& e);
  Value* sum_of_neighbours(Value* even, Value* odd);
  // Whether vectors of so many 32-bit words have multiply-adds of their bytes and halves (SSSE3 and what extends it).
  bool vectors_of_words(int lanes) const {
    return (lanes == 4 && isa_.ssse3) || (lanes == 8 && isa_.avx2) || (lanes == 16 && isa_.avx512_bw);
  }
  Value* byte_of_word(Value* word, uint64_t i, bool is_signed);
  Value* neon_element(Value* word);
  Value* dot_of_bf16(Value* a, Value* b, Value* sum);
  Value* dot_of_halfwords(Value* a, bool a_signed, Value* b, bool b_signed, Value* sum);
  Value* dot_of_pairs(Value* a, bool a_signed, Value* b, bool b_signed, Value* sum);
  Value* bit_cast(const loop::ExprNode& e);
  Value* reduce_lanes(const loop::ExprNode& e);
  Value* extreme_of_lanes(bool is_max, Value* x);
  Value* fold_lanes(Value* x, llvm::function_ref<Value*(Value*, Value*)> combine);
  llvm::Type* index_type();
  Value* as_index(Value* v);    // to the width of addresses
  Value* from_index(Value* v);  // back to i64
  Value* in_index_width(const loop::ExprNode& e, llvm::ArrayRef<Value*> operands,
                        llvm::function_ref<Value*(llvm::ArrayRef<Value*>)> compute);
  bool fits_index_width(const loop::ExprNode& e);
  std::optional<Affine> affine(const loop::Expr& e);
  // Returns whether an index expression consists of loop variables and non-negative constants only.
  bool is_non_negative(const loop::Expr& e) const;
  llvm::Type* element_type(DType dtype);
  llvm::Type* memory_type(DType dtype);
  llvm::Type* value_type(loop::Type type);
  static int lanes_of(Value* v);
  Value* splat(Value* scalar, int lanes);
  llvm::Constant* int_constant(llvm::Type* type, uint64_t value);
  Value* any_lane(Value* mask);
  Value* all_lanes(Value* mask);

  // emit_integer.cpp
  Value* integer_unary(UnaryOp op, DType dtype, Value* x);
  Value* integer_binary(BinaryOp op, DType dtype, Value* a, Value* b);
  Value* integer_division(BinaryOp op, bool is_signed, Value* a, Value* b);
  Value* integer_power(bool is_signed, Value* base, Value* exponent);
  Value* integer_shift(BinaryOp op, bool is_signed, Value* a, Value* b);
  Value* threefry(Value* key, Value* counter);
  Value* non_negative_division(BinaryOp op, Value* a, Value* b);

  // emit_float.cpp: operands and results are float or double.
  Value* float_unary(UnaryOp op, Value* x);
  Value* float_binary(BinaryOp op, Value* a, Value* b);
  Value* float_compare(BinaryOp op, Value* a, Value* b);
  Value* float_extreme(bool is_max, Value* a, Value* b);
  Value* vector_extreme(bool is_max, Value* x, Value* y);
  Value* float_remainder(BinaryOp op, Value* a, Value* b);
  llvm::Function* remainder_function(llvm::Type* scalar);

  // emit_cast.cpp
  Value* cast(Value* x, DType from, DType to);
  Value* narrow_factor(const loop::Expr& e);
  Value* high_word(const loop::ExprNode& e);
  Value* widen(Value* x, DType dtype);   // narrow floats to f32; f32 and f64 unchanged
  Value* narrow(Value* x, DType dtype);  // the inverse, from f32 or f64, with one rounding
  Value* f8_to_f32(Value* x, DType dtype);
  Value* f32_to_f8(Value* x, DType dtype);
  Value* f16_to_f32(Value* x);
  Value* f32_to_f16(Value* x);
  Value* bf16_to_f32(Value* x);
  Value* f32_to_bf16(Value* x);
  Value* f64_to_f32_odd(Value* x);
  Value* integer_to_float(Value* x, DType from, DType to);
  Value* float_to_integer(Value* x, DType to);
  Value* float_to_narrow_integer(Value* x, DType to);
  Value* neon_narrow(Value* x, DType to);
  Value* apart_from_products(Value* x);

  // emit_load_store.cpp
  Value* load(const loop::ExprNode& e);
  void store(const loop::StmtNode& s);
  Guard guard_of(const loop::Expr& predicate, int lanes);
  Value* load_scalar(const loop::BufferNode& b, Value* index, const Guard& guard, Value* otherwise);
  Value* load_affine(const loop::BufferNode& b, Affine index, int lanes, const Guard& guard,
                     Value* otherwise);
  Value* load_contiguous(const loop::BufferNode& b, Value* base, int lanes, const Guard& guard,
                         Value* otherwise);
  Value* load_strided(const loop::BufferNode& b, Affine index, int lanes, Value* uniform, Value* otherwise);
  Value* load_lanes(const loop::BufferNode& b, llvm::ArrayRef<Value*> pointers, const Guard& guard,
                    Value* otherwise);
  Value* load_general(const loop::BufferNode& b, Value* index, const Guard& guard, Value* otherwise);
  // Null where the load is no lookup of 8-bit indices in a table of bytes, or where the target has no
  // instructions for it.
  Value* look_up_bytes(const loop::BufferNode& table, const loop::ExprNode& index);
  Value* look_up_by_shuffles(llvm::ArrayRef<Value*> parts, Value* x);
  Value* look_up_in_neon_tables(llvm::ArrayRef<Value*> parts, Value* x);
  void store_vector(const loop::BufferNode& b, const loop::Expr& index, Value* value, Value* mask);
  void store_contiguous(const loop::BufferNode& b, Value* base, Value* value, Value* mask);
  void store_lanes(const loop::BufferNode& b, llvm::ArrayRef<Value*> pointers, Value* value, Value* mask);
  std::vector<Value*> lane_pointers(const loop::BufferNode& b, Affine index, int lanes, bool in_bounds);
  std::vector<Value*> lane_pointers(const loop::BufferNode& b, Value* index, bool in_bounds);
  Value* element_pointer(const loop::BufferNode& b, Value* index, bool in_bounds);
  Value* guarded_pointer(Value* condition, Value* pointer, int64_t bytes);
  Value* zeros(int64_t bytes);  // returns the address of that many zero bytes in the image
  Value* load_memory(const loop::BufferNode& b, llvm::Type* type, Value* pointer);
  void store_memory(const loop::BufferNode& b, Value* value, Value* pointer);
  template <class Instruction>
  Instruction* annotate(const loop::BufferNode& b, Instruction* access);
  Value* to_memory(DType dtype, Value* x);
  Value* from_memory(DType dtype, Value* x);
  llvm::Align alignment(const loop::BufferNode& b) const;
  bool masked_access_is_native(const loop::BufferNode& b) const;
  bool gather_is_native(const loop::BufferNode& b) const;
  static bool is_zero(Value* v);

  llvm::Module& module_;
  llvm::LLVMContext& context_;
  const InstructionSet& isa_;
  const loop::Kernel& kernel_;
  std::string symbol_;
  llvm::IRBuilder<> builder_;
  llvm::Function* function_ = nullptr;
  llvm::BasicBlock* entry_ = nullptr;
  std::unordered_map<const loop::BufferNode*, BufferSlot> buffers_;
  std::unordered_map<const loop::VarNode*, Value*> variables_;
  std::unordered_map<const loop::VarNode*, Affine> affine_variables_;
  std::unordered_map<const loop::VarNode*, bool> non_negative_variables_;
  loop::IndexRanges ranges_;
  std::vector<Value*> symbols_;
  BufferSlot scratch_;  // lent by the caller
  uint64_t scratch_bytes_ = 0;
  // Values of the current statement's expressions, so that shared subtrees are emitted once.
  std::unordered_map<const loop::ExprNode*, Value*> emitted_;
  Value* mask_ = nullptr;  // the lanes enabled by enclosing vector conditions
  std::map<int64_t, llvm::GlobalVariable*> zeros_;
};

}  // namespace quernel::codegen
