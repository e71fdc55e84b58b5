// The recursive-descent parser behind parse.h: statements are in parse.cpp, expressions in parse_expr.cpp.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "loop/ir.h"
#include "support/diagnostic.h"

namespace quernel::loop {

// After the first error, which `error_` keeps, every parse function returns null or false.
class Parser {
 public:
  // Deeper nesting of expressions and statements is refused, so that hostile text cannot exhaust the stack.
  static constexpr int kMaxDepth = 500;
  static constexpr int kMaxLanes = 1 << 16;

  Parser(std::string_view text, std::string file, int first_line)
      : text_(text), file_(std::move(file)), line_(first_line), token_line_(first_line) {}

  bool at_end() {
    skip_space();
    return position_ == text_.size();
  }
  bool kernel(Kernel* kernel);
  Diagnostic error() const { return *error_; }
  bool fail(const std::string& message);
  bool unexpected(const std::string& what);  // fails with "expected WHAT, found" the next token

 private:
  // ---- tokens
  void skip_space();
  bool peek(std::string_view punctuation);
  bool accept(std::string_view punctuation);
  bool expect(std::string_view punctuation);
  std::string_view peek_name();
  std::string_view take_name(const char* what);
  bool accept_word(std::string_view word);
  bool integer(int64_t* value, const char* what);
  std::string found();

  // ---- declarations and statements
  bool symbols(Kernel* kernel);
  bool grid(Kernel* kernel);
  Buffer buffer_declaration(bool global);
  bool declare(const Var& var);
  bool declare(const Buffer& buffer);
  bool type(Type* type);
  Stmt braces();
  bool statements(std::vector<Stmt>* body);
  Stmt statement();
  Stmt for_statement();
  Stmt if_statement();
  Stmt let_statement();
  Stmt store_statement();
  Stmt prefetch_statement();
  bool matrix_place(MatrixPlace* place);
  Buffer matrix_sums();
  Stmt matrix_statement(StmtKind kind);

  // ---- expressions
  Expr expression(int precedence = 0);
  Expr primary();
  Expr number();
  Expr number_value(std::string_view digits, DType dtype, bool is_decimal);
  Expr load_expression();
  Expr call(std::string_view name);
  Expr lane_call(std::string_view name);
  Expr typed_call(std::string_view name);
  Expr operation(std::string_view name);
  bool arguments(std::vector<Expr>* args, size_t count);
  bool lanes(int* lanes);
  Expr infix(BinaryOp op, Expr a, Expr b);
  Buffer buffer_reference();
  Expr make(ExprNode node) { return std::make_shared<const ExprNode>(std::move(node)); }
  Expr fail_expr(const std::string& message) {
    fail(message);
    return nullptr;
  }

  std::string_view text_;
  std::string file_;
  size_t position_ = 0;
  int line_;
  int token_line_;        // of the last token taken, which most errors are about
  size_t space_end_ = 0;  // where skip_space last stopped
  int depth_ = 0;
  std::optional<Diagnostic> error_;
  // Names are unique in a kernel, so reading one needs no scopes; verify checks the scopes.
  std::unordered_map<std::string, Var> vars_;
  std::unordered_map<std::string, Buffer> buffers_;
  std::unordered_map<std::string, int> symbols_;
};

}  // namespace quernel::loop
