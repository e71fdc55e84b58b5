// One loop-IR kernel as a C99 function that runs its whole grid. Vectors become loops over lanes, or lanes
// one by one where accumulators are involved, so that those become registers. The kernel must have passed
// check_kernel and loop/passes.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "codegen/c/print_kernels.h"
#include "codegen/llvm/elementary_functions.h"
#include "loop/evaluate_scalar.h"
#include "loop/index_ranges.h"
#include "loop/ir.h"
#include "targets/target.h"

namespace quernel::codegen {

class KernelPrinter {
 public:
  KernelPrinter(const loop::Kernel& kernel, ElementaryFunctions& functions, const Target& target);
  // void NAME(bindings in order…, symbols in order…, unsigned char* scratch); the last parameter is there
  // where scratch_bytes() is not 0.
  std::string print(const CFunction& function);
  uint64_t scratch_bytes() const { return scratch_bytes_; }
  // Of the arrays that the function has on the stack at once.
  uint64_t array_bytes() const { return most_array_bytes_; }

 private:
  // Which lane of a vector is meant: a number, or an expression of C.
  struct Lane {
    std::string text;
    int number = -1;
  };
  // Where definitions of repeated expressions go, and their names by node and lane.
  struct Sink {
    std::string* out;
    int indent;
    std::map<std::pair<const loop::ExprNode*, std::string>, std::string> names;
  };

  // kernel_printer.cpp: functions and statements
  void find_used();
  void count_vars(const loop::Expr& e);
  void line(const std::string& text);
  std::string parameters(bool without_overlap);
  void statement(const loop::StmtNode& s);
  void inner(const loop::StmtNode& s);
  void add_array(uint64_t bytes);
  void print_for(const loop::StmtNode& s);
  void print_if(const loop::StmtNode& s);
  void print_let(const loop::StmtNode& s);
  void print_alloc(const loop::BufferNode& b);
  void print_store(const loop::StmtNode& s);
  void store_lanes(const loop::StmtNode& s, const loop::Expr& mask);
  bool reads_other_elements(const loop::Expr& e, const loop::StmtNode& s);
  std::string materialize(const loop::Expr& e, const std::string& prefix);
  void each_lane(int lanes, bool one_by_one, const std::function<void(const Lane&, Sink&)>& body);
  bool touches_registers(const loop::Expr& e);
  std::string declare(const std::string& wanted);
  const std::string& name_of(const loop::BufferNode& b) const { return buffers_.at(&b); }
  void begin_statement(std::initializer_list<loop::Expr> roots);

  // print_expr.cpp
  std::string value(const loop::Expr& e, const Lane& lane, Sink& sink);  // of one lane
  std::string scalar(const loop::Expr& e);                               // lanes == 1
  std::string atom(const loop::Expr& e, const Lane& lane, Sink& sink);   // a name or a number
  std::string print_expr(const loop::Expr& e, const Lane& lane, Sink& sink);
  std::string constant(const loop::ExprNode& e);
  std::string load(const loop::ExprNode& e, const Lane& lane, Sink& sink);
  std::string unary(const loop::ExprNode& e, const Lane& lane, Sink& sink);
  std::string binary(const loop::Expr& e, const Lane& lane, Sink& sink);
  std::string compare(const loop::ExprNode& e, const std::string& a, const std::string& b);
  std::string integer_binary(const loop::Expr& e, const Lane& lane, Sink& sink);
  std::string mul_acc(const loop::ExprNode& e, const Lane& lane, Sink& sink);
  std::string cast(const loop::Expr& e, const Lane& lane, Sink& sink);
  std::string bit_cast(const loop::ExprNode& e, const Lane& lane, Sink& sink);
  std::string ramp(const loop::ExprNode& e, const Lane& lane);
  std::string interleave(const loop::ExprNode& e, const Lane& lane, Sink& sink);
  std::string reduce_lanes(const loop::ExprNode& e);
  std::string wrapped(const loop::ExprNode& e, const char* op, const std::string& a, const std::string& b);
  // A function of ElementaryFunctions on texts of the operands.
  std::string call(const loop::ExprNode& e, const std::vector<std::string>& operands);
  Lane scaled_lane(const Lane& lane, int factor, int offset);
  Lane divided_lane(const Lane& lane, int divisor, int offset);
  std::string define(const std::string& type, const std::string& text, Sink& sink);

  // All values that `e` is computed from fit into int32_t.
  bool fits_32_bits(const loop::Expr& e);
  std::string value_type(const loop::Expr& e);

  static std::string value_type(DType dtype);

  const loop::Kernel& kernel_;
  ElementaryFunctions& functions_;
  bool f32_fused_, f64_fused_;  // products are accumulated by fused multiply-add
  std::string out_;
  int indent_ = 0;
  uint64_t scratch_bytes_ = 0;
  uint64_t array_bytes_ = 0, most_array_bytes_ = 0;  // of arrays in scope
  Sink scalar_sink_{&out_, 0, {}};
  const loop::Expr* mask_ = nullptr;  // of the lanes that the present statement computes
  std::unordered_map<const loop::VarNode*, std::string> vars_;
  std::unordered_map<const loop::BufferNode*, std::string> buffers_;
  std::unordered_map<const loop::VarNode*, loop::Expr> aliases_;  // variables printed as their values
  loop::IndexRanges ranges_;
  std::unordered_map<const loop::ExprNode*, bool> fits_memo_;
  std::vector<std::string> symbols_;
  std::unordered_set<const loop::VarNode*> used_vars_;
  std::unordered_set<const loop::BufferNode*> used_buffers_;
  std::unordered_set<int> used_symbols_;
  std::unordered_set<const loop::ExprNode*> counted_;
  std::unordered_map<const loop::ExprNode*, int> uses_;
  std::unordered_set<std::string> taken_;
  int next_name_ = 0;
};

}  // namespace quernel::codegen
