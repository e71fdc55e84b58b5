// Reading types and dims from a text: the part of the graph's text form that other texts share.
#pragma once

#include <functional>
#include <string>

#include "graph/ir.h"
#include "support/text_reader.h"

namespace quernel {

class TypeParser {
 public:
  // The dim that a symbol's name stands for; fails in `in` where there is none.
  using FindSymbol = std::function<Dim(const std::string& name)>;
  TypeParser(TextReader& in, FindSymbol find) : in_(in), find_(std::move(find)) {}

  DType dtype();
  // "f32[n, 4, (n * 2)]"
  TensorType type();
  // A number, a symbol, or an expression in parentheses, as to_string(Dim) writes it.
  Dim dim() { return dim(0); }
  std::string symbol_name();

 private:
  Dim dim(int depth);
  Dim make(Dim::Kind kind, const Dim& a, const Dim& b);

  TextReader& in_;
  FindSymbol find_;
};

}  // namespace quernel
