// TextReader: the tokens of a text form, read one at a time. Blanks and comments (// to the end of the line)
// separate tokens. The first failure is kept with its line; afterwards every read gives an empty result, so
// that a parser checks once per statement.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "support/expected.h"

namespace quernel {

class TextReader {
 public:
  TextReader(std::string_view text, std::string file) : text_(text), file_(std::move(file)) {}

  bool at_end();
  // Consumes `symbol` (punctuation) if it comes next.
  bool accept(std::string_view symbol);
  // Consumes `word` if it comes next as a whole word.
  bool accept_word(std::string_view word);
  bool expect(std::string_view symbol);
  bool expect_word(std::string_view word);

  // A letter or '_', then letters, digits and '_'. Empty, without failure, if something else comes next.
  std::string_view peek_word();
  std::string word(std::string_view what);
  // A name: letters, digits, '_', '.', '/', or anything in double quotes with \" \\ and \xHH.
  std::string name(std::string_view what);
  std::string quoted();
  bool next_is_quote();
  int64_t integer(std::string_view what);
  // The characters of a number: sign, digits, letters, '.', exponent signs; or bits(0x…).
  std::string_view number(std::string_view what);
  // Everything up to `stop`, which is consumed too.
  std::string_view until(char stop, std::string_view what);

  // Line of the next token.
  int line();
  Location location() { return {file_, {}, {}, line()}; }

  bool ok() const { return !error_; }
  // Keeps the first failure. "expected WHAT, found NEXT TOKEN".
  void fail_expected(std::string_view what);
  void fail(std::string message, std::string hint = {});
  void fail(Diagnostic diagnostic);
  Diagnostic take_error() { return std::move(*error_); }

 private:
  void skip_blanks();
  std::string next_token_text();

  std::string_view text_;
  std::string file_;
  size_t position_ = 0;
  int line_ = 1;
  std::optional<Diagnostic> error_;
};

// The name as TextReader::name reads it: bare where possible, else quoted.
std::string quote_name(std::string_view name);
std::string quoted_text(std::string_view name);  // always quoted

// Decimal ("1", "-2.5e-3"), hexadecimal ("0x1.8p+3"), inf and nan, with an optional sign; nullopt for
// anything else.
std::optional<double> parse_f64(std::string_view text);
std::optional<float> parse_f32(std::string_view text);
// The shortest decimal that reads back as the same value; "inf", "-inf", "nan".
std::string shortest_decimal(double value);
std::string shortest_decimal(float value);

}  // namespace quernel
