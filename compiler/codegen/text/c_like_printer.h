// Prints statements and expressions of a loop-IR kernel in a C-like language: names for repeated or long
// expressions, operators, the choice between an operator and a function. A printer overrides what its
// language does differently. Printing an operand may define names, so operands are printed one after another.
#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "codegen/text/language.h"
#include "loop/index_ranges.h"
#include "loop/ir.h"

namespace quernel::codegen {

class CLikePrinter {
 public:
  CLikePrinter(const CLikePrinter&) = delete;
  CLikePrinter& operator=(const CLikePrinter&) = delete;

 protected:
  // Destination of expressions' definitions, and the names of defined expressions, by node and lane.
  struct Sink {
    std::string* out;
    int indent;
    std::map<std::pair<const loop::ExprNode*, std::string>, std::string> names;
  };
  // A vector's lane, as text and, if known, as a number, and the sink of its definitions.
  struct Place {
    std::string lane;
    int number = -1;
    Sink* sink = nullptr;
  };

  // `longest`: characters of the longest expression without a name. `scalar_lane`: Place::lane of scalars.
  CLikePrinter(const loop::Kernel& kernel, TextLanguage language, size_t longest, std::string scalar_lane);
  virtual ~CLikePrinter() = default;

  // ---- lines of the function's body
  void line(const std::string& text);
  void open(const std::string& head);  // `head {`, and one level deeper
  void close();
  static std::string margin(int indent) { return std::string(static_cast<size_t>(2 * indent), ' '); }
  // Returns `wanted`, or, if it is taken, `wanted` with `separator` and a number.
  std::string free_name(const std::string& wanted, const std::string& separator);

  // ---- statements
  //
  // Call before each statement, with its expressions: their common subexpressions get names.
  void begin_statement(std::initializer_list<loop::Expr> roots = {});
  void statement(const loop::StmtNode& s);
  virtual void print_for(const loop::StmtNode& s) = 0;
  virtual void print_if(const loop::StmtNode& s) = 0;
  virtual void print_let(const loop::StmtNode& s) = 0;
  virtual void print_store(const loop::StmtNode& s) = 0;
  virtual void print_alloc(const loop::BufferNode& b) = 0;
  virtual void print_barrier() = 0;
  virtual void print_matrices(const loop::StmtNode& s) = 0;  // kMultiplyMatrices, kStoreMatrix

  // ---- expressions
  Place scalar_place() { return {scalar_lane_, -1, &own_}; }
  std::string value(const loop::Expr& e, const Place& at);
  std::string atom(const loop::Expr& e, const Place& at);  // a name or a number
  std::string define(const std::string& type, const std::string& text, Sink& sink);
  virtual std::string type_name(DType dtype) const = 0;        // of values
  virtual std::string variable_type(const loop::Expr& e) = 0;  // of a name for `e`
  virtual bool fits_32_bits(const loop::Expr& e) = 0;          // an index computed in 32 bits
  std::string value_type(const loop::Expr& e) {
    return fits_32_bits(e) ? spelling_.index_type : type_name(e->type.dtype);
  }

  virtual std::string constant(const loop::ExprNode& e) = 0;
  virtual std::string variable(const loop::ExprNode& e, const Place& at) = 0;
  virtual std::string symbol(int index) = 0;
  virtual std::string load(const loop::ExprNode& e, const Place& at) = 0;
  virtual std::string select(const loop::Expr& e, const Place& at) = 0;
  virtual std::string bit_cast(const loop::ExprNode& e, const Place& at) = 0;
  virtual std::string ramp(const loop::Expr& e, const Place& at) = 0;
  virtual std::string reduce_lanes(const loop::ExprNode& e) = 0;
  virtual std::string interleave(const loop::ExprNode& e, const Place& at) = 0;
  virtual std::string dot(const loop::ExprNode& e, const Place& at) = 0;
  virtual std::string dot_2x2(const loop::ExprNode& e, const Place& at) = 0;

  // Returns false for any `x`: a predicate of floats on another type.
  virtual std::string never(const std::string& x) = 0;
  virtual std::string complement(DType dtype, const std::string& x) = 0;
  virtual std::string compare(const loop::ExprNode& e, const std::string& a, const std::string& b) = 0;
  // For integers: an operator of the language; the larger or smaller one; the result of a function.
  virtual std::string integer_infix(const loop::Expr& e, const char* op, const Place& at) = 0;
  virtual std::string integer_extreme(const loop::Expr& e, const Place& at) = 0;
  // For integers: a form that needs no function; empty if there is none.
  virtual std::string integer_form(const loop::Expr&, const Place&) { return ""; }
  virtual std::string integer_call(const loop::Expr& e, const std::string& text) = 0;
  // a * b + c: for floats that the language computes with, and for integers.
  // The same of narrow floats; empty where a function computes it in f32.
  virtual std::string fused_narrow(const loop::ExprNode&, const Place&) { return ""; }
  virtual std::string fused(DType dtype, const std::string& a, const std::string& b,
                            const std::string& c) = 0;
  virtual std::string integer_mul_acc(const loop::ExprNode& e, const std::string& a, const std::string& b,
                                      const std::string& c) = 0;
  virtual std::string zero(DType dtype) const = 0;  // for comparisons
  virtual std::string integer_cast(const loop::Expr& e, const std::string& x) = 0;

  // Returns a call of the function (`name_of`) that computes an operation; `operands` are texts.
  std::string call(const loop::ExprNode& e, const std::vector<std::string>& operands);
  std::string call(BinaryOp op, DType dtype, const std::string& a, const std::string& b);
  virtual std::string name_of(const loop::Expr& operation) = 0;
  virtual std::string argument(DType dtype, const std::string& x) = 0;  // in the function's parameter type
  virtual std::string result(DType dtype,
                             const std::string& text) = 0;  // converted from the function's result type

  // Returns the constant that `e` is, or that all its lanes are; else null.
  static const loop::ExprNode* as_constant(const loop::Expr& e);
  // Returns whether `is_wanted` holds for `e` or one of its subexpressions; `e` may be null.
  static bool contains(const loop::Expr& e, const std::function<bool(const loop::ExprNode&)>& is_wanted);

  const loop::Kernel& kernel_;
  const Spelling& spelling_;
  std::string out_;
  Sink own_{&out_, 0, {}};  // for scalars and for the function's body itself
  std::unordered_map<const loop::VarNode*, std::string> vars_;
  std::unordered_map<const loop::BufferNode*, std::string> buffers_;
  loop::IndexRanges ranges_;
  std::unordered_map<const loop::ExprNode*, bool> fits_memo_;
  std::unordered_set<std::string> taken_;
  int next_name_ = 0;

 private:
  std::string print_expr(const loop::Expr& e, const Place& at);
  std::string unary(const loop::ExprNode& e, const Place& at);
  std::string binary(const loop::Expr& e, const Place& at);
  std::string integer_binary(const loop::Expr& e, const Place& at);
  const char* division_text(const loop::ExprNode& e);
  std::string mul_acc(const loop::ExprNode& e, const Place& at);
  std::string cast(const loop::Expr& e, const Place& at);

  size_t longest_;
  std::string scalar_lane_;
  std::unordered_map<const loop::ExprNode*, int> uses_;
};

}  // namespace quernel::codegen
