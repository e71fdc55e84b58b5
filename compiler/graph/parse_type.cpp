#include "graph/parse_type.h"

namespace quernel {
namespace {

constexpr int kMaxDepth = 256;  // of parentheses
constexpr size_t kMaxRank = 64;

}  // namespace

std::string TypeParser::symbol_name() {
  return in_.next_is_quote() ? in_.quoted() : in_.word("a symbol name");
}

DType TypeParser::dtype() {
  std::string name = in_.word("a dtype");
  std::optional<DType> dtype = parse_dtype(name);
  if (in_.ok() && !dtype) in_.fail("expected a dtype such as f32, i64 or bool, found '" + name + "'");
  return dtype.value_or(DType::kF32);
}

TensorType TypeParser::type() {
  TensorType type;
  type.dtype = dtype();
  in_.expect("[");
  while (in_.ok() && !in_.accept("]")) {
    if (!type.shape.empty()) in_.expect(",");
    type.shape.push_back(dim());
    if (type.shape.back().is_const() && type.shape.back().value() < 0)
      in_.fail("expected dims of at least 0, found a negative one");
    if (type.shape.size() > kMaxRank) in_.fail("expected at most " + std::to_string(kMaxRank) + " dims");
  }
  return type;
}

Dim TypeParser::dim(int depth) {
  if (depth > kMaxDepth) in_.fail("expected parentheses at most " + std::to_string(kMaxDepth) + " deep");
  if (!in_.ok()) return 0;
  if (in_.accept("(")) {
    Dim result = dim(depth + 1);
    std::optional<Dim::Kind> kind = in_.accept("+")               ? std::optional(Dim::Kind::kAdd)
                                    : in_.accept("-")             ? std::optional(Dim::Kind::kSub)
                                    : in_.accept("*")             ? std::optional(Dim::Kind::kMul)
                                    : in_.accept_word("floordiv") ? std::optional(Dim::Kind::kFloorDiv)
                                    : in_.accept_word("mod")      ? std::optional(Dim::Kind::kMod)
                                                                  : std::nullopt;
    if (kind) result = make(*kind, result, dim(depth + 1));
    in_.expect(")");
    return result;
  }
  std::string_view word = in_.peek_word();
  if (word == "min" || word == "max") {
    Dim::Kind kind = word == "min" ? Dim::Kind::kMin : Dim::Kind::kMax;
    in_.word("min or max");
    in_.expect("(");
    Dim a = dim(depth + 1);
    in_.expect(",");
    Dim b = dim(depth + 1);
    in_.expect(")");
    return make(kind, a, b);
  }
  if (word.empty() && !in_.next_is_quote()) return in_.integer("a dim");
  std::string name = symbol_name();
  return in_.ok() ? find_(name) : Dim(0);
}

Dim TypeParser::make(Dim::Kind kind, const Dim& a, const Dim& b) {
  bool divides = kind == Dim::Kind::kFloorDiv || kind == Dim::Kind::kMod;
  if (divides && b.is_const() && b.value() <= 0)
    in_.fail("expected a divisor of at least 1, found " + to_string(b));
  return in_.ok() ? Dim::make(kind, a, b) : Dim(0);
}

}  // namespace quernel
