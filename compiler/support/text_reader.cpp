#include "support/text_reader.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "schemas/utf8.h"

namespace quernel {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_name_char(char c) { return is_letter(c) || is_digit(c) || c == '.' || c == '/'; }

int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

template <class T>
std::optional<T> parse_float(std::string_view text) {
  bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (text.starts_with('-') || text.starts_with('+')) return std::nullopt;
  std::optional<T> value;
  if (text == "inf") value = std::numeric_limits<T>::infinity();
  if (text == "nan") value = std::numeric_limits<T>::quiet_NaN();
  if (!value) {
    std::chars_format format = std::chars_format::general;
    if (text.starts_with("0x") || text.starts_with("0X")) {
      text.remove_prefix(2);
      format = std::chars_format::hex;
    }
    if (text.empty() || (!is_digit(text[0]) && text[0] != '.' && format == std::chars_format::general))
      return std::nullopt;
    T parsed = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), parsed, format);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    value = parsed;
  }
  return negative ? -*value : *value;
}

template <class T>
std::string shortest(T value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[64];
  auto [end, error] = std::to_chars(buffer, buffer + sizeof(buffer), value);
  return std::string(buffer, end);
}

}  // namespace

void TextReader::skip_blanks() {
  while (position_ < text_.size()) {
    char c = text_[position_];
    if (c == '\n') ++line_;
    if (c == '/' && text_.substr(position_).starts_with("//")) {
      while (position_ < text_.size() && text_[position_] != '\n') ++position_;
      continue;
    }
    if (c != ' ' && c != '\t' && c != '\n' && c != '\r') return;
    ++position_;
  }
}

bool TextReader::at_end() {
  skip_blanks();
  return position_ >= text_.size();
}

int TextReader::line() {
  skip_blanks();
  return line_;
}

bool TextReader::accept(std::string_view symbol) {
  skip_blanks();
  if (!ok() || !text_.substr(position_).starts_with(symbol)) return false;
  position_ += symbol.size();
  return true;
}

std::string_view TextReader::peek_word() {
  skip_blanks();
  if (!ok() || position_ >= text_.size() || !is_letter(text_[position_])) return {};
  size_t end = position_;
  while (end < text_.size() && (is_letter(text_[end]) || is_digit(text_[end]))) ++end;
  return text_.substr(position_, end - position_);
}

bool TextReader::accept_word(std::string_view word) {
  if (peek_word() != word) return false;
  position_ += word.size();
  return true;
}

bool TextReader::expect(std::string_view symbol) {
  if (accept(symbol)) return true;
  fail_expected("'" + std::string(symbol) + "'");
  return false;
}

bool TextReader::expect_word(std::string_view word) {
  if (accept_word(word)) return true;
  fail_expected("'" + std::string(word) + "'");
  return false;
}

std::string TextReader::word(std::string_view what) {
  std::string_view found = peek_word();
  if (found.empty()) fail_expected(what);
  position_ += found.size();
  return std::string(found);
}

std::string TextReader::name(std::string_view what) {
  skip_blanks();
  if (!ok()) return {};
  if (next_is_quote()) return quoted();
  size_t end = position_;
  while (end < text_.size() && is_name_char(text_[end])) ++end;
  if (end == position_) fail_expected(what);
  std::string found(text_.substr(position_, end - position_));
  position_ = end;
  return found;
}

bool TextReader::next_is_quote() {
  skip_blanks();
  return ok() && position_ < text_.size() && text_[position_] == '"';
}

std::string TextReader::quoted() {
  if (!next_is_quote()) {
    fail_expected("a quoted name");
    return {};
  }
  std::string result;
  for (size_t i = position_ + 1; i < text_.size() && text_[i] != '\n'; ++i) {
    char c = text_[i];
    if (c == '"') {
      position_ = i + 1;
      return result;
    }
    if (c != '\\') {
      result += c;
      continue;
    }
    char next = i + 1 < text_.size() ? text_[i + 1] : '\0';
    if (next == '"' || next == '\\') {
      result += next;
      i += 1;
    } else if (next == 'x' && i + 3 < text_.size() && hex_value(text_[i + 2]) >= 0 &&
               hex_value(text_[i + 3]) >= 0) {
      result += static_cast<char>(hex_value(text_[i + 2]) * 16 + hex_value(text_[i + 3]));
      i += 3;
    } else {
      fail("expected \\\", \\\\ or \\xHH in a quoted name");
      return {};
    }
  }
  fail("expected a closing quote on the same line");
  return {};
}

int64_t TextReader::integer(std::string_view what) {
  skip_blanks();
  int64_t value = 0;
  if (!ok()) return 0;
  const char *first = text_.data() + position_, *last = text_.data() + text_.size();
  auto [end, error] = std::from_chars(first, last, value);
  if (error == std::errc::result_out_of_range) {
    fail("expected " + std::string(what) + " that fits 64 bits, found " + std::string(first, end));
  } else if (error != std::errc()) {
    fail_expected(what);
  }
  if (!ok()) return 0;
  position_ += static_cast<size_t>(end - first);
  return value;
}

std::string_view TextReader::number(std::string_view what) {
  skip_blanks();
  if (!ok()) return {};
  size_t end = position_;
  auto at = [&](size_t i) { return i < text_.size() ? text_[i] : '\0'; };
  if (at(end) == '-' || at(end) == '+') ++end;
  size_t first = end;
  bool hexadecimal = at(end) == '0' && (at(end + 1) == 'x' || at(end + 1) == 'X');
  while (is_letter(at(end)) || is_digit(at(end)) || at(end) == '.') {
    char c = at(end++);
    bool exponent = hexadecimal ? c == 'p' || c == 'P' : c == 'e' || c == 'E';
    if (exponent && (at(end) == '-' || at(end) == '+')) ++end;
  }
  if (text_.substr(first, end - first) == "bits" && at(end) == '(') {
    size_t close = text_.find(')', end);
    if (close != std::string_view::npos) end = close + 1;
  }
  if (end == first) fail_expected(what);
  std::string_view found = text_.substr(position_, end - position_);
  if (ok()) position_ = end;
  return found;
}

std::string_view TextReader::until(char stop, std::string_view what) {
  skip_blanks();
  if (!ok()) return {};
  size_t end = text_.find(stop, position_);
  if (end == std::string_view::npos) {
    fail("expected " + std::string(what) + " to end with '" + stop + "'");
    return {};
  }
  std::string_view found = text_.substr(position_, end - position_);
  for (char c : found) line_ += c == '\n';
  position_ = end + 1;
  return found;
}

std::string TextReader::next_token_text() {
  if (at_end()) return "the end of the text";
  std::string_view rest = text_.substr(position_);
  size_t length = 0;
  while (length < rest.size() && length < 32 && is_name_char(rest[length])) ++length;
  return "'" + std::string(rest.substr(0, length == 0 ? 1 : length)) + "'";
}

void TextReader::fail_expected(std::string_view what) {
  if (ok()) fail("expected " + std::string(what) + ", found " + next_token_text());
}

void TextReader::fail(std::string message, std::string hint) {
  if (ok()) fail(invalid_input(std::move(message), location(), std::move(hint)));
}

void TextReader::fail(Diagnostic diagnostic) {
  if (!ok()) return;
  if (diagnostic.place.line == 0) diagnostic.place = location();
  error_ = std::move(diagnostic);
}

std::string quote_name(std::string_view name) {
  bool bare = !name.empty();
  for (char c : name) bare &= is_name_char(c);
  return bare && name.find("//") == std::string_view::npos ? std::string(name) : quoted_text(name);
}

std::string quoted_text(std::string_view name) {
  std::string result = "\"";
  while (!name.empty()) {
    uint32_t code = 0, length = utf8_character(name.data(), name.size(), &code);
    bool shows = length > 0 && shows_as_it_is(code);
    if (code == '"' || code == '\\') result += '\\';
    for (char c : name.substr(0, length == 0 ? 1 : length)) {
      const char* digits = "0123456789abcdef";
      auto byte = static_cast<unsigned char>(c);
      if (shows)
        result += c;
      else
        result += {'\\', 'x', digits[byte / 16], digits[byte % 16]};
    }
    name.remove_prefix(length == 0 ? 1 : length);
  }
  return result + "\"";
}

std::optional<double> parse_f64(std::string_view text) { return parse_float<double>(text); }
std::optional<float> parse_f32(std::string_view text) { return parse_float<float>(text); }
std::string shortest_decimal(double value) { return shortest(value); }
std::string shortest_decimal(float value) { return shortest(value); }

}  // namespace quernel
