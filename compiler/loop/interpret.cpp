#include "loop/interpret.h"

#include <cstring>
#include <unordered_map>

#include "loop/evaluate_scalar.h"

namespace quernel::loop {
namespace {

// One element per lane, as bits. Scalars, nearly all values, need no allocation.
class Value {
 public:
  explicit Value(uint64_t scalar = 0) : first_(scalar) {}
  explicit Value(int lanes, uint64_t fill) : first_(fill) {
    if (lanes > 1) rest_.assign(static_cast<size_t>(lanes) - 1, fill);
  }
  int lanes() const { return static_cast<int>(rest_.size()) + 1; }
  uint64_t& operator[](int i) { return i == 0 ? first_ : rest_[static_cast<size_t>(i) - 1]; }
  uint64_t operator[](int i) const { return i == 0 ? first_ : rest_[static_cast<size_t>(i) - 1]; }

 private:
  uint64_t first_;
  std::vector<uint64_t> rest_;
};

uint64_t read_element(const uint8_t* bytes, DType dtype, int64_t index) {
  if (bit_width(dtype) == 4) return (bytes[index / 2] >> (index % 2 * 4)) & 15;
  auto size = static_cast<size_t>(element_size(dtype));
  uint64_t bits = 0;
  std::memcpy(&bits, bytes + static_cast<size_t>(index) * size, size);
  return dtype == DType::kBool ? bits != 0 : bits;
}

void write_element(uint8_t* bytes, DType dtype, int64_t index, uint64_t bits) {
  if (bit_width(dtype) == 4) {
    auto shift = static_cast<int>(index % 2 * 4);
    uint8_t& byte = bytes[index / 2];
    byte = static_cast<uint8_t>((byte & ~(15 << shift)) | (static_cast<int>(bits & 15) << shift));
    return;
  }
  auto size = static_cast<size_t>(element_size(dtype));
  std::memcpy(bytes + static_cast<size_t>(index) * size, &bits, size);
}

// Folds the upper half of the lanes onto the lower one until one is left, as the code generators do.
uint64_t reduce(BinaryOp op, DType dtype, Value x) {
  for (int n = x.lanes(); n > 1;) {
    int half = n / 2, kept = n - half;
    for (int i = 0; i < half; ++i) x[i] = evaluate_binary(op, dtype, x[i], x[i + kept]);
    n = kept;
  }
  return x[0];
}

class Interpreter {
 public:
  Interpreter(const Kernel& kernel, std::span<const std::span<uint8_t>> bindings,
              std::span<const int64_t> symbols)
      : kernel_(kernel), bindings_(bindings), symbols_(symbols) {}
  Status run();

 private:
  Status check_arguments() const;
  void workgroups(size_t axis);
  void stmt(const Stmt& s);
  void store(const StmtNode& s);
  void matrices(const StmtNode& s);
  Value eval(const Expr& e);
  Value load(const ExprNode& e);
  Value bitcast(const ExprNode& e);
  int64_t eval_index(const Expr& e) { return static_cast<int64_t>(eval(e)[0]); }
  uint8_t* bytes(const BufferNode& buffer);
  bool in_bounds(const BufferNode& buffer, int64_t index);
  Diagnostic error(const std::string& message) const;

  const Kernel& kernel_;
  std::span<const std::span<uint8_t>> bindings_;
  std::span<const int64_t> symbols_;
  std::unordered_map<const VarNode*, Value> vars_;
  std::unordered_map<const BufferNode*, std::vector<uint8_t>> locals_;
  Diagnostics errors_;  // the first one stops everything
};

Diagnostic Interpreter::error(const std::string& message) const {
  Location place;
  place.node = kernel_.name;
  return {DiagnosticKind::kInvalidInput, place, "interpret_loop", message, {}};
}

uint8_t* Interpreter::bytes(const BufferNode& buffer) {
  if (buffer.scope == Scope::kGlobal) return bindings_[static_cast<size_t>(buffer.binding)].data();
  return locals_.at(&buffer).data();
}

bool Interpreter::in_bounds(const BufferNode& buffer, int64_t index) {
  int64_t size = buffer.size;
  if (size == kUnknownSize)
    size = static_cast<int64_t>(bindings_[static_cast<size_t>(buffer.binding)].size()) * 8 /
           bit_width(buffer.dtype);
  if (index >= 0 && index < size) return true;
  if (errors_.empty())
    errors_.push_back(error("index " + std::to_string(index) + " is outside buffer '%" + buffer.name +
                            "' of " + std::to_string(size) + " elements"));
  return false;
}

Value Interpreter::load(const ExprNode& e) {
  int lanes = e.type.lanes;
  Value result = e.args.size() == 3 ? eval(e.args[2]) : Value(lanes, 0);
  Value predicate = e.args.size() == 3 ? eval(e.args[1]) : Value(lanes, 1);
  Value index = eval(e.args[0]);
  for (int i = 0; i < lanes && errors_.empty(); ++i) {
    auto position = static_cast<int64_t>(index[i]);
    if (predicate[i] && in_bounds(*e.buffer, position))
      result[i] = read_element(bytes(*e.buffer), e.buffer->dtype, position);
  }
  return result;
}

Value Interpreter::bitcast(const ExprNode& e) {
  Value from = eval(e.args[0]);
  DType from_dtype = e.args[0]->type.dtype;
  std::vector<uint8_t> bytes(static_cast<size_t>(byte_size(e.type.dtype, e.type.lanes)) + 8);
  for (int i = 0; i < from.lanes(); ++i) write_element(bytes.data(), from_dtype, i, from[i]);
  Value result(e.type.lanes, 0);
  for (int i = 0; i < e.type.lanes; ++i) result[i] = read_element(bytes.data(), e.type.dtype, i);
  return result;
}

Value Interpreter::eval(const Expr& e) {
  int lanes = e->type.lanes;
  switch (e->kind) {
    case ExprKind::kConst:
      return Value(lanes, e->bits);
    case ExprKind::kVar:
      return vars_.at(e->var.get());
    case ExprKind::kSymbol:
      return Value(static_cast<uint64_t>(symbols_[static_cast<size_t>(e->symbol)]));
    case ExprKind::kLoad:
      return load(*e);
    case ExprKind::kBitcast:
      return bitcast(*e);
    case ExprKind::kReduceLanes:
      return Value(reduce(e->binary, e->type.dtype, eval(e->args[0])));
    case ExprKind::kInterleave: {
      Value a = eval(e->args[0]), b = eval(e->args[1]), result(lanes, 0);
      int first = e->stride == 0 ? 0 : lanes / 2;
      for (int i = 0; i < lanes; ++i) result[i] = (i % 2 == 0 ? a : b)[first + i / 2];
      return result;
    }
    case ExprKind::kDot2x2: {
      Value a = eval(e->args[0]), b = eval(e->args[1]), result = eval(e->args[2]);
      const DType of_a = e->args[0]->type.dtype, of_b = e->args[1]->type.dtype;
      for (int i = 0; i < lanes; ++i)
        for (int word : {0, 1})
          result[i] =
              evaluate_dot(of_a, of_b, e->type.dtype, a[i / 2 * 2 + word], b[i % 2 * 2 + word], result[i]);
      return result;
    }
    default:
      break;
  }
  Value a = eval(e->args[0]);
  Value b = e->args.size() > 1 ? eval(e->args[1]) : Value();
  Value c = e->args.size() > 2 ? eval(e->args[2]) : Value();
  DType dtype = e->args[0]->type.dtype;
  Value result(lanes, 0);
  for (int i = 0; i < lanes; ++i) {
    switch (e->kind) {
      case ExprKind::kUnary:
        result[i] = evaluate_unary(e->unary, dtype, a[i]);
        break;
      case ExprKind::kBinary:
        result[i] = evaluate_binary(e->binary, dtype, a[i], b[i]);
        break;
      case ExprKind::kMulAcc:
        result[i] = evaluate_mul_acc(dtype, a[i], b[i], c[i]);
        break;
      case ExprKind::kDot:
        result[i] = evaluate_dot(dtype, e->args[1]->type.dtype, e->type.dtype, a[i], b[i], c[i]);
        break;
      case ExprKind::kSelect:
        result[i] = a[i] ? b[i] : c[i];
        break;
      case ExprKind::kCast:
        result[i] = evaluate_cast(dtype, e->type.dtype, a[i]);
        break;
      case ExprKind::kRamp:
        result[i] = a[0] + static_cast<uint64_t>(e->stride) * static_cast<uint64_t>(i);
        break;
      case ExprKind::kBroadcast:
        result[i] = a[0];
        break;
      default:
        QUERNEL_UNREACHABLE("expression kind is not handled");
    }
  }
  return result;
}

void Interpreter::store(const StmtNode& s) {
  Value index = eval(s.index);
  Value value = eval(s.value);
  Value predicate = s.condition ? eval(s.condition) : Value(index.lanes(), 1);
  for (int i = 0; i < index.lanes() && errors_.empty(); ++i) {
    auto position = static_cast<int64_t>(index[i]);
    if (predicate[i] && in_bounds(*s.buffer, position))
      write_element(bytes(*s.buffer), s.buffer->dtype, position, value[i]);
  }
}

// Sums are rounded as mul_acc rounds.
void Interpreter::matrices(const StmtNode& s) {
  const MatrixOperands& m = *s.matrices;
  const bool multiplies = s.kind == StmtKind::kMultiplyMatrices;
  const int64_t a = eval_index(m.a.index), b = multiplies ? eval_index(m.b.index) : 0;
  const DType dtype = s.buffer->dtype;
  uint8_t* sums = bytes(*s.buffer);
  auto element = [&](const MatrixPlace& place, int64_t at) -> uint64_t {
    if (!in_bounds(*place.buffer, at)) return 0;
    return evaluate_cast(place.buffer->dtype, dtype,
                         read_element(bytes(*place.buffer), place.buffer->dtype, at));
  };
  for (int64_t i = 0; i < m.rows; ++i)
    for (int64_t j = 0; j < m.columns && errors_.empty(); ++j) {
      uint64_t sum = read_element(sums, dtype, i * m.columns + j);
      if (!multiplies) {
        const int64_t at = a + i * m.a.row_stride + j * m.a.column_stride;
        if (in_bounds(*m.a.buffer, at)) write_element(bytes(*m.a.buffer), dtype, at, sum);
        continue;
      }
      for (int64_t k = 0; k < m.steps && errors_.empty(); ++k)
        sum = evaluate_mul_acc(dtype, element(m.a, a + i * m.a.row_stride + k * m.a.column_stride),
                               element(m.b, b + k * m.b.row_stride + j * m.b.column_stride), sum);
      write_element(sums, dtype, i * m.columns + j, sum);
    }
}

void Interpreter::stmt(const Stmt& s) {
  if (!errors_.empty()) return;
  switch (s->kind) {
    case StmtKind::kBlock:
      for (const Stmt& child : s->body) stmt(child);
      return;
    case StmtKind::kFor: {
      int64_t extent = eval_index(s->extent);
      for (int64_t i = 0; i < extent && errors_.empty(); ++i) {
        vars_[s->var.get()] = Value(static_cast<uint64_t>(i));
        stmt(s->body[0]);
      }
      return;
    }
    case StmtKind::kIf:
      if (eval(s->condition)[0])
        stmt(s->body[0]);
      else if (s->body.size() > 1)
        stmt(s->body[1]);
      return;
    case StmtKind::kLet:
      vars_[s->var.get()] = eval(s->value);
      return;
    case StmtKind::kStore:
      return store(*s);
    case StmtKind::kAlloc:  // contents are undefined: a pattern that no test would take for an answer
      locals_[s->buffer.get()].assign(static_cast<size_t>(byte_size(s->buffer->dtype, s->buffer->size)),
                                      s->buffer->scope == Scope::kMatrix ? 0 : 0xa5);
      return;
    case StmtKind::kMultiplyMatrices:
    case StmtKind::kStoreMatrix:
      return matrices(*s);
    case StmtKind::kPrefetch:
      return;
    case StmtKind::kBarrier:
      return;  // invocations of a workgroup run one after another here
  }
}

void Interpreter::workgroups(size_t axis) {
  if (axis == kernel_.grid.size()) return stmt(kernel_.body);
  int64_t extent = eval_index(kernel_.grid[axis].extent);
  for (int64_t i = 0; i < extent && errors_.empty(); ++i) {
    vars_[kernel_.grid[axis].var.get()] = Value(static_cast<uint64_t>(i));
    workgroups(axis + 1);
  }
}

Status Interpreter::check_arguments() const {
  if (bindings_.size() != kernel_.buffers.size())
    return error("expected " + std::to_string(kernel_.buffers.size()) + " bindings, found " +
                 std::to_string(bindings_.size()));
  if (symbols_.size() != kernel_.symbols.size())
    return error("expected " + std::to_string(kernel_.symbols.size()) + " symbols, found " +
                 std::to_string(symbols_.size()));
  for (const Buffer& buffer : kernel_.buffers) {
    if (buffer->size == kUnknownSize) continue;
    auto bytes = static_cast<size_t>(byte_size(buffer->dtype, buffer->size));
    if (size_t found = bindings_[static_cast<size_t>(buffer->binding)].size(); found < bytes)
      return error("buffer '%" + buffer->name + "' expected " + std::to_string(bytes) + " bytes, found " +
                   std::to_string(found));
  }
  return {};
}

Status Interpreter::run() {
  QUERNEL_CHECK(check_arguments());
  workgroups(0);
  return errors_.empty() ? Status() : Status(std::move(errors_));
}

}  // namespace

Status interpret(const Kernel& kernel, std::span<const std::span<uint8_t>> bindings,
                 std::span<const int64_t> symbols) {
  return Interpreter(kernel, bindings, symbols).run();
}

}  // namespace quernel::loop
