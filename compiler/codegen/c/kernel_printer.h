// Prints one loop-IR kernel as a C99 function that runs its whole grid. Vectors become loops over lanes.
// Where accumulators are involved, lanes are printed one by one, so that accumulators become registers.
// Requires a kernel that has passed check_kernel and loop/passes.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "codegen/c/print_kernels.h"
#include "codegen/llvm/elementary_functions.h"
#include "codegen/text/c_like_printer.h"
#include "loop/evaluate_scalar.h"
#include "loop/ir.h"
#include "targets/target.h"

namespace quernel::codegen {

class KernelPrinter : private CLikePrinter {
 public:
  KernelPrinter(const loop::Kernel& kernel, ElementaryFunctions& functions, const Target& target);
  // Returns void NAME(bindings in order…, symbols in order…, unsigned char* scratch). The last parameter
  // exists if scratch_bytes() is not 0.
  std::string print(const CFunction& function);
  uint64_t scratch_bytes() const { return scratch_bytes_; }
  // Returns the most bytes of arrays that the function has on the stack at once.
  uint64_t array_bytes() const { return most_array_bytes_; }

 private:
  // kernel_printer.cpp: functions and statements
  void find_used();
  void count_vars(const loop::Expr& e);
  std::string parameters(const std::vector<bool>& without_overlap);
  void inner(const loop::StmtNode& s);
  void add_array(uint64_t bytes);
  void count_references();
  void print_for(const loop::StmtNode& s) override;
  void print_if(const loop::StmtNode& s) override;
  void print_let(const loop::StmtNode& s) override;
  void print_alloc(const loop::BufferNode& b) override;
  void print_store(const loop::StmtNode& s) override;
  void print_barrier() override {}
  void print_matrices(const loop::StmtNode&) override {
    QUERNEL_UNREACHABLE("check_kernel refuses products of matrices");
  }
  void store_lanes(const loop::StmtNode& s, const loop::Expr& mask);
  bool reads_other_elements(const loop::Expr& e, const loop::StmtNode& s);
  std::string materialize(const loop::Expr& e, const std::string& prefix);
  void each_lane(int lanes, bool one_by_one, const std::function<void(const Place&)>& body);
  bool touches_registers(const loop::Expr& e);
  std::string declare(const std::string& wanted);
  const std::string& buffer_name(const loop::BufferNode& b) const { return buffers_.at(&b); }

  // print_expr.cpp
  std::string scalar(const loop::Expr& e);  // lanes == 1
  std::string type_name(DType dtype) const override;
  std::string variable_type(const loop::Expr& e) override { return "const " + value_type(e); }
  bool fits_32_bits(const loop::Expr& e) override;
  std::string constant(const loop::ExprNode& e) override;
  std::string variable(const loop::ExprNode& e, const Place& at) override;
  std::string symbol(int index) override { return symbols_[static_cast<size_t>(index)]; }
  std::string load(const loop::ExprNode& e, const Place& at) override;
  std::string select(const loop::Expr& e, const Place& at) override;
  std::string bit_cast(const loop::ExprNode& e, const Place& at) override;
  std::string ramp(const loop::Expr& e, const Place& at) override;
  std::string reduce_lanes(const loop::ExprNode& e) override;
  std::string fold(const loop::ExprNode& e, const std::string& a, const std::string& b);
  std::string interleave(const loop::ExprNode& e, const Place& at) override;
  std::string dot(const loop::ExprNode& e, const Place& at) override;
  std::string dot_2x2(const loop::ExprNode& e, const Place& at) override;
  std::string never(const std::string& x) override { return "((void)" + x + ", 0)"; }
  std::string complement(DType dtype, const std::string& x) override;
  std::string compare(const loop::ExprNode& e, const std::string& a, const std::string& b) override;
  std::string integer_infix(const loop::Expr& e, const char* op, const Place& at) override;
  std::string integer_extreme(const loop::Expr& e, const Place& at) override;
  std::string integer_form(const loop::Expr& e, const Place& at) override;
  std::string integer_call(const loop::Expr&, const std::string& text) override { return text; }
  bool is_below(const loop::Expr& e, int64_t limit);
  std::string saturation(const loop::ExprNode& e, const Place& at);
  const std::string* bytes_of(const loop::Expr& word) const;
  std::string byte_of(const loop::Expr& word, const std::string& text, int i) const;
  bool let_bytes(const loop::StmtNode& s);
  std::string word_of_bytes(const loop::ExprNode& e, const Place& at);
  std::string fused(DType dtype, const std::string& a, const std::string& b, const std::string& c) override;
  std::string integer_mul_acc(const loop::ExprNode& e, const std::string& a, const std::string& b,
                              const std::string& c) override;
  std::string zero(DType) const override { return "0"; }
  std::string integer_cast(const loop::Expr& e, const std::string& x) override;
  std::string wrapped(DType dtype, const char* op, const std::string& a, const std::string& b);
  std::string name_of(const loop::Expr& operation) override { return functions_.name_of(operation); }
  std::string argument(DType, const std::string& x) override { return x; }
  std::string result(DType dtype, const std::string& text) override;
  Place scaled(const Place& at, int factor, int offset);
  Place divided(const Place& at, int divisor, int offset);

  // print_vectors.cpp
  std::string vector_type(loop::Type type) const;
  loop::Expr without_alias(const loop::Expr& e) const;
  bool is_vector(const loop::Expr& e);
  std::string address(const std::string& pointer, const loop::Expr& index);
  loop::Expr before_saturation(const loop::Expr& e) const;
  std::string loaded_vector(loop::Type type, const std::string& pointer);
  std::string vector(const loop::Expr& e);
  std::string vector_text(const loop::Expr& e);
  std::string shifted(const loop::Expr& e, const std::string& x);
  std::string sum_of_lanes(const loop::ExprNode& e);
  bool let_vector(const loop::StmtNode& s);  // false: the vector is none of these, here and below
  bool store_vector(const loop::StmtNode& s);
  void find_vector_buffers();
  std::string lane_of(loop::Type type, const std::string& text, const Place& at);

  ElementaryFunctions& functions_;
  bool has_few_registers_, has_dot_pairs_;
  bool has_vectors_;            // the target's vectors have functions in the prelude
  bool f32_fused_, f64_fused_;  // the target has fused multiply-add, which accumulates products
  uint64_t scratch_bytes_ = 0;
  uint64_t array_bytes_ = 0, most_array_bytes_ = 0;  // of arrays in scope
  const loop::Expr* mask_ = nullptr;                 // the lanes that the current statement computes
  std::unordered_map<const loop::VarNode*, loop::Expr> aliases_;  // variables printed as their values
  std::unordered_map<const loop::VarNode*, loop::Expr> values_;   // of the variables that lets define
  std::unordered_map<const loop::VarNode*, int> dot_references_;  // of these, as words of a dot product
  std::unordered_map<const loop::VarNode*, std::string> words_as_bytes_;  // names of the bytes, less a number
  std::unordered_map<const loop::VarNode*, int> references_;  // expressions and statements with the variable
  std::unordered_set<const loop::VarNode*> vector_vars_;
  std::unordered_set<const loop::BufferNode*> vector_buffers_;  // arrays of vectors
  std::unordered_set<const loop::BufferNode*>
      constant_buffers_;                                       // only read, and overlap none that is written
  std::unordered_map<std::string, std::string> vector_texts_;  // names of vectors that stay the same, by text
  std::vector<loop::Expr> made_;                               // while the kernel is printed
  std::vector<std::string> symbols_;
  std::unordered_set<const loop::VarNode*> used_vars_;
  std::unordered_set<const loop::BufferNode*> used_buffers_;
  std::unordered_set<int> used_symbols_;
  std::unordered_set<const loop::ExprNode*> counted_;
};

}  // namespace quernel::codegen
