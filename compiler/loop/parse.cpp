#include "loop/parse.h"

#include <algorithm>
#include <charconv>

#include "loop/parser.h"
#include "loop/print.h"

namespace quernel::loop {
namespace {

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}
bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

bool Parser::fail(const std::string& message) {
  if (!error_) {
    Location place;
    place.file = file_;
    place.line = token_line_;
    error_ = invalid_input(message, place);
  }
  return false;
}

bool Parser::unexpected(const std::string& what) {
  std::string message = "expected " + what + ", found " + found();
  token_line_ = line_;
  return fail(message);
}

// ---- tokens

void Parser::skip_space() {
  if (position_ != space_end_) token_line_ = line_;
  while (position_ < text_.size()) {
    char c = text_[position_];
    line_ += c == '\n';
    if (c == '#')
      position_ = std::min(text_.find('\n', position_), text_.size());
    else if (c == ' ' || c == '\t' || c == '\r' || c == '\n')
      ++position_;
    else
      break;
  }
  space_end_ = position_;
}

bool Parser::peek(std::string_view punctuation) {
  skip_space();
  return text_.substr(position_).starts_with(punctuation);
}

bool Parser::accept(std::string_view punctuation) {
  if (!peek(punctuation)) return false;
  position_ += punctuation.size();
  return true;
}

std::string Parser::found() {
  if (at_end()) return "the end of the text";
  size_t end = position_;
  while (end < text_.size() && is_name_char(text_[end])) ++end;
  std::string quoted(1, '\'');
  quoted += text_.substr(position_, std::max<size_t>(end - position_, 1));
  quoted += '\'';
  return quoted;
}

bool Parser::expect(std::string_view punctuation) {
  return accept(punctuation) || unexpected("'" + std::string(punctuation) + "'");
}

std::string_view Parser::peek_name() {
  skip_space();
  size_t end = position_;
  while (end < text_.size() && is_name_char(text_[end])) ++end;
  return text_.substr(position_, end - position_);
}

std::string_view Parser::take_name(const char* what) {
  std::string_view name = peek_name();
  if (name.empty()) unexpected(what);
  position_ += name.size();
  return name;
}

bool Parser::accept_word(std::string_view word) {
  if (peek_name() != word) return false;
  position_ += word.size();
  return true;
}

bool Parser::integer(int64_t* value, const char* what) {
  skip_space();
  const char* begin = text_.data() + position_;
  auto [end, status] = std::from_chars(begin, text_.data() + text_.size(), *value);
  if (status != std::errc() || (end != text_.data() + text_.size() && is_name_char(*end)))
    return unexpected(what);
  position_ += static_cast<size_t>(end - begin);
  return true;
}

// ---- declarations and statements

bool Parser::declare(const Var& var) {
  const std::string& name = var->name;
  if (is_digit(name[0]) || name == "true" || name == "false" || name == "if" || name == "else")
    return fail("expected a variable name, found '" + name + "'");
  if (!vars_.emplace(name, var).second) return fail("variable '" + name + "' is declared twice");
  return true;
}

bool Parser::declare(const Buffer& buffer) {
  if (!buffers_.emplace(buffer->name, buffer).second)
    return fail("buffer '%" + buffer->name + "' is declared twice");
  return true;
}

bool Parser::kernel(Kernel* kernel) {
  vars_.clear();
  buffers_.clear();
  symbols_.clear();
  if (!accept_word("kernel")) return unexpected("'kernel'");
  if (!expect("@")) return false;
  kernel->name = take_name("a kernel name");
  if (error_ || !symbols(kernel) || !grid(kernel) || !expect("{")) return false;
  while (accept_word("buffer")) {
    Buffer buffer = buffer_declaration(true);
    if (!buffer) return false;
    kernel->buffers.push_back(std::move(buffer));
  }
  std::vector<Stmt> body;
  if (!statements(&body)) return false;
  kernel->body = block(std::move(body));
  return true;
}

bool Parser::symbols(Kernel* kernel) {
  if (!accept_word("symbols")) return true;
  if (!expect("(")) return false;
  do {
    if (!expect("$")) return false;
    std::string name(take_name("a symbol name"));
    if (error_) return false;
    if (!symbols_.emplace(name, static_cast<int>(kernel->symbols.size())).second)
      return fail("symbol '$" + name + "' is declared twice");
    kernel->symbols.push_back(std::move(name));
  } while (accept(","));
  return expect(")");
}

bool Parser::grid(Kernel* kernel) {
  if (!accept_word("grid")) return true;
  if (!expect("(")) return false;
  do {
    auto var =
        std::make_shared<const VarNode>(VarNode{std::string(take_name("a grid variable")), kIndexType});
    if (error_ || !declare(var) || !expect(":")) return false;
    Expr extent = expression();
    if (!extent) return false;
    kernel->grid.push_back({std::move(var), std::move(extent)});
  } while (accept(","));
  return expect(")");
}

bool Parser::type(Type* type) {
  std::string_view name = take_name("a type");
  if (error_) return false;
  size_t split = name.find('x');
  int64_t lanes = 1;
  if (split != std::string_view::npos) {
    std::string_view digits = name.substr(split + 1);
    auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), lanes);
    if (status != std::errc() || end != digits.data() + digits.size() || lanes < 2 || lanes > kMaxLanes)
      return fail("expected a number of lanes from 2, found '" + std::string(digits) + "'");
  }
  std::optional<DType> dtype = parse_dtype(name.substr(0, split));
  if (!dtype) return fail("expected a type such as f32 or f32x8, found '" + std::string(name) + "'");
  *type = {*dtype, static_cast<int>(lanes)};
  return true;
}

Buffer Parser::buffer_declaration(bool global) {
  BufferNode node;
  if (!expect("%")) return nullptr;
  node.name = take_name("a buffer name");
  Type element;
  auto size = [&] {
    if (!accept("?")) return integer(&node.size, "a number of elements");
    node.size = kUnknownSize;
    return true;
  };
  if (error_ || !expect(":") || !type(&element) || !expect("[") || !size() || !expect("]")) return nullptr;
  node.dtype = element.dtype;
  std::string_view word = peek_name();
  bool readable = word == "read" || word == "readwrite";
  if (global && (readable || word == "write")) {
    position_ += word.size();
    node.access = !readable ? Access::kWrite : word == "read" ? Access::kRead : Access::kReadWrite;
    int64_t binding = 0;
    if (!accept_word("binding")) {
      unexpected("'binding'");
      return nullptr;
    }
    if (!integer(&binding, "a binding index")) return nullptr;
    node.binding = static_cast<int>(binding);
    node.overlaps = accept_word("overlapping");
    node.aligned = accept_word("aligned");
    if (accept_word("below") && !integer(&node.below, "a number above all elements")) return nullptr;
  } else if (!global && (word == "register" || word == "shared" || word == "matrix")) {
    position_ += word.size();
    node.scope = word == "shared" ? Scope::kShared : word == "matrix" ? Scope::kMatrix : Scope::kRegister;
    node.access = Access::kReadWrite;
  } else {
    unexpected(global ? "read, write or readwrite" : "register, shared or matrix");
    return nullptr;
  }
  Buffer buffer = std::make_shared<const BufferNode>(std::move(node));
  return declare(buffer) ? buffer : nullptr;
}

Stmt Parser::braces() {
  std::vector<Stmt> body;
  if (!expect("{") || !statements(&body)) return nullptr;
  return block(std::move(body));
}

bool Parser::statements(std::vector<Stmt>* body) {
  if (++depth_ > kMaxDepth) return fail("statements are nested too deeply");
  while (!accept("}")) {
    Stmt next = statement();
    if (!next) return false;
    body->push_back(std::move(next));
  }
  --depth_;
  return true;
}

Stmt Parser::statement() {
  if (peek("%")) return store_statement();
  if (peek("{")) return braces();
  if (accept_word("for")) return for_statement();
  if (accept_word("if")) return if_statement();
  if (accept_word("let")) return let_statement();
  if (accept_word("barrier")) return barrier();
  if (accept_word("prefetch")) return prefetch_statement();
  if (accept_word("multiply_matrices")) return matrix_statement(StmtKind::kMultiplyMatrices);
  if (accept_word("store_matrix")) return matrix_statement(StmtKind::kStoreMatrix);
  if (accept_word("alloc")) {
    Buffer buffer = buffer_declaration(false);
    return buffer ? alloc(buffer) : nullptr;
  }
  unexpected(
      "a statement (for, if, let, alloc, barrier, prefetch, multiply_matrices, store_matrix, a store or a "
      "block)");
  return nullptr;
}

Stmt Parser::for_statement() {
  auto var = std::make_shared<const VarNode>(VarNode{std::string(take_name("a loop variable")), kIndexType});
  if (error_ || !declare(var)) return nullptr;
  if (!accept_word("in")) {
    unexpected("'in'");
    return nullptr;
  }
  std::string_view word = take_name("an axis kind");
  std::optional<AxisKind> axis;
  for (AxisKind kind : {AxisKind::kSerial, AxisKind::kReduction, AxisKind::kUnrolled, AxisKind::kVector})
    if (to_string(kind) == word) axis = kind;
  if (!axis) {
    fail("expected serial, reduction, unrolled or vector, found '" + std::string(word) + "'");
    return nullptr;
  }
  if (!expect("(")) return nullptr;
  Expr extent = expression();
  if (!extent) return nullptr;
  if (extent->type != kIndexType) {
    fail("expected an extent of type i64, found " + to_string(extent->type));
    return nullptr;
  }
  if (!expect(")")) return nullptr;
  Stmt body = braces();
  return body ? for_loop(var, std::move(extent), *axis, std::move(body)) : nullptr;
}

Stmt Parser::if_statement() {
  Expr condition = expression();
  if (!condition) return nullptr;
  if (condition->type.dtype != DType::kBool) {
    fail("expected a condition of type bool, found " + to_string(condition->type));
    return nullptr;
  }
  Stmt then = braces();
  if (!then) return nullptr;
  Stmt otherwise;
  if (accept_word("else") && !(otherwise = braces())) return nullptr;
  return if_then(std::move(condition), std::move(then), std::move(otherwise));
}

Stmt Parser::let_statement() {
  VarNode node;
  node.name = take_name("a variable name");
  if (error_ || !expect(":") || !type(&node.type) || !expect("=")) return nullptr;
  Expr value = expression();
  if (!value) return nullptr;
  if (value->type != node.type) {
    fail("expected a value of type " + to_string(node.type) + ", found " + to_string(value->type));
    return nullptr;
  }
  auto var = std::make_shared<const VarNode>(std::move(node));
  return declare(var) ? let(var, std::move(value)) : nullptr;
}

Stmt Parser::prefetch_statement() {
  Buffer buffer = buffer_reference();
  Expr index;
  if (!buffer || !expect("[") || !(index = expression()) || !expect("]")) return nullptr;
  return prefetch(buffer, std::move(index));
}

bool Parser::matrix_place(MatrixPlace* place) {
  place->buffer = buffer_reference();
  return place->buffer && expect("[") && (place->index = expression()) && expect(",") &&
         integer(&place->row_stride, "the stride of rows") && expect(",") &&
         integer(&place->column_stride, "the stride of columns") && expect("]");
}

Buffer Parser::matrix_sums() {
  Buffer sums = buffer_reference();
  if (!sums || sums->scope == Scope::kMatrix) return sums;
  fail("expected a matrix buffer, found '%" + sums->name + "'");
  return nullptr;
}

Stmt Parser::matrix_statement(StmtKind kind) {
  MatrixOperands m;
  const bool multiplies = kind == StmtKind::kMultiplyMatrices;
  if (!expect("(") || !integer(&m.rows, "a number of rows") || !expect(",") ||
      !integer(&m.columns, "a number of columns") ||
      (multiplies && (!expect(",") || !integer(&m.steps, "a number of steps"))) || !expect(")"))
    return nullptr;
  if (!multiplies) {
    if (!matrix_place(&m.a) || !expect("=")) return nullptr;
    const Buffer sums = matrix_sums();
    return sums ? store_matrix(sums, std::move(m)) : nullptr;
  }
  const Buffer sums = matrix_sums();
  if (!sums || !expect("+=") || !matrix_place(&m.a) || !expect("*") || !matrix_place(&m.b)) return nullptr;
  return multiply_matrices(sums, std::move(m));
}

Stmt Parser::store_statement() {
  StmtNode node;
  node.kind = StmtKind::kStore;
  node.buffer = buffer_reference();
  if (!node.buffer || !expect("[") || !(node.index = expression())) return nullptr;
  if (accept_word("if") && !(node.condition = expression())) return nullptr;
  if (!expect("]") || !expect("=") || !(node.value = expression())) return nullptr;
  return std::make_shared<const StmtNode>(std::move(node));
}

Expected<std::vector<Kernel>> parse_kernels(std::string_view text, const std::string& file, int first_line) {
  std::vector<Kernel> kernels;
  Parser parser(text, file, first_line);
  while (!parser.at_end()) {
    Kernel kernel;
    if (!parser.kernel(&kernel)) return parser.error();
    kernels.push_back(std::move(kernel));
  }
  return kernels;
}

Expected<Kernel> parse_kernel(std::string_view text, const std::string& file, int first_line) {
  Parser parser(text, file, first_line);
  Kernel kernel;
  if (!parser.kernel(&kernel)) return parser.error();
  if (!parser.at_end()) {
    parser.unexpected("the end of the text after the kernel");
    return parser.error();
  }
  return kernel;
}

}  // namespace quernel::loop
