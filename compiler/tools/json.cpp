#include "json.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "schemas/printable.h"

namespace quernel::tools {
namespace {

void append_utf8(std::string& out, uint32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | code >> 6);
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else {
    out += static_cast<char>(0xE0 | code >> 12);
    out += static_cast<char>(0x80 | (code >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  }
}

class Parser {
 public:
  Parser(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  Expected<Json> document() {
    QUERNEL_TRY(Json value, parse_value(0));
    skip_space();
    if (at_ != text_.size()) return error("the end of the file");
    return value;
  }

 private:
  static constexpr int kMaxDepth = 64;

  Diagnostic error(const std::string& expected) const {
    int line = 1;
    for (size_t i = 0; i < at_ && i < text_.size(); ++i) line += text_[i] == '\n';
    std::string found = at_ < text_.size() ? fmt::format("'{}'", text_[at_]) : "the end";
    return invalid_input("JSON: expected " + expected + ", found " + found, {.file = file_, .line = line});
  }
  void skip_space() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos)
      ++at_;
  }
  bool accept(std::string_view token) {
    skip_space();
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }

  Expected<Json> parse_value(int depth) {
    skip_space();
    if (depth > kMaxDepth) return error("fewer levels");
    if (accept("{")) return parse_object(depth);
    if (accept("[")) return parse_array(depth);
    if (accept("true")) return Json(true);
    if (accept("false")) return Json(false);
    if (accept("null")) return Json();
    if (at_ < text_.size() && text_[at_] == '"') {
      QUERNEL_TRY(std::string text, parse_string());
      return Json(std::move(text));
    }
    double number = 0;
    auto [end, code] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), number);
    if (code != std::errc()) return error("a value");
    at_ = static_cast<size_t>(end - text_.data());
    return Json(number);
  }

  Expected<Json> parse_array(int depth) {
    Json::Array array;
    if (accept("]")) return Json(std::move(array));
    for (;;) {
      QUERNEL_TRY(Json value, parse_value(depth + 1));
      array.push_back(std::move(value));
      if (accept("]")) return Json(std::move(array));
      if (!accept(",")) return error("',' or ']'");
    }
  }

  Expected<Json> parse_object(int depth) {
    Json::Object object;
    if (accept("}")) return Json(std::move(object));
    for (;;) {
      skip_space();
      QUERNEL_TRY(std::string name, parse_string());
      if (!accept(":")) return error("':'");
      QUERNEL_TRY(Json value, parse_value(depth + 1));
      object.emplace_back(std::move(name), std::move(value));
      if (accept("}")) return Json(std::move(object));
      if (!accept(",")) return error("',' or '}'");
    }
  }

  Expected<std::string> parse_string() {
    if (at_ >= text_.size() || text_[at_] != '"') return error("a string");
    std::string out;
    for (++at_; at_ < text_.size(); ++at_) {
      char c = text_[at_];
      if (c == '"') {
        ++at_;
        return out;
      }
      if (c != '\\') {
        out += c;
        continue;
      }
      if (++at_ >= text_.size()) break;
      static constexpr std::string_view kFrom = "\"\\/bfnrt", kTo = "\"\\/\b\f\n\r\t";
      if (size_t k = kFrom.find(text_[at_]); k != std::string_view::npos) {
        out += kTo[k];
        continue;
      }
      uint32_t code = 0;
      std::string_view digits = text_.substr(at_ + 1, 4);
      if (text_[at_] != 'u' || digits.size() != 4 ||
          std::from_chars(digits.data(), digits.data() + 4, code, 16).ptr != digits.data() + 4)
        return error("an escape sequence");
      append_utf8(out, code);
      at_ += 4;
    }
    return error("'\"'");
  }

  std::string_view text_;
  const std::string& file_;
  size_t at_ = 0;
};

}  // namespace

std::string json_string(std::string_view text) { return json_literal(text); }

const Json* Json::find(std::string_view name) const {
  if (const Object* object = std::get_if<Object>(&value_))
    for (const auto& [key, value] : *object)
      if (key == name) return &value;
  return nullptr;
}

const Json& Json::at(std::string_view name) const {
  static const Json kNull;
  const Json* found = find(name);
  return found == nullptr ? kNull : *found;
}

const Json::Array& Json::array() const {
  static const Array kNone;
  const Array* elements = std::get_if<Array>(&value_);
  return elements == nullptr ? kNone : *elements;
}

const std::string& Json::text() const {
  static const std::string kNone;
  const std::string* text = std::get_if<std::string>(&value_);
  return text == nullptr ? kNone : *text;
}

std::optional<double> Json::number() const {
  if (const double* d = std::get_if<double>(&value_)) return *d;
  if (const int64_t* i = std::get_if<int64_t>(&value_)) return static_cast<double>(*i);
  return std::nullopt;
}

std::string Json::dump() const {
  std::string out;
  write(out, 0);
  return out + "\n";
}

void Json::write(std::string& out, int depth) const {
  std::string indent(2 * static_cast<size_t>(depth + 1), ' ');
  if (std::holds_alternative<std::nullptr_t>(value_))
    out += "null";
  else if (const bool* b = std::get_if<bool>(&value_))
    out += *b ? "true" : "false";
  else if (const int64_t* i = std::get_if<int64_t>(&value_))
    out += std::to_string(*i);
  else if (const double* d = std::get_if<double>(&value_))
    out += std::isfinite(*d) ? fmt::format("{:.9g}", *d) : "null";
  else if (const std::string* s = std::get_if<std::string>(&value_))
    out += json_string(*s);
  else if (const Array* a = std::get_if<Array>(&value_)) {
    // Arrays of plain values stay on one line.
    bool flat = true;
    for (const Json& item : *a)
      flat = flat && !std::holds_alternative<Array>(item.value_) && !item.is_object();
    out += '[';
    for (size_t k = 0; k < a->size(); ++k) {
      out += k == 0 ? "" : flat ? ", " : ",";
      if (!flat) out += "\n" + indent;
      (*a)[k].write(out, depth + 1);
    }
    if (!flat) out += "\n" + indent.substr(2);
    out += ']';
  } else if (const Object* o = std::get_if<Object>(&value_)) {
    out += '{';
    for (size_t k = 0; k < o->size(); ++k) {
      out += (k == 0 ? "\n" : ",\n") + indent + json_string((*o)[k].first) + ": ";
      (*o)[k].second.write(out, depth + 1);
    }
    out += o->empty() ? "}" : "\n" + indent.substr(2) + "}";
  }
}

Expected<Json> parse_json(std::string_view text, const std::string& file) {
  return Parser(text, file).document();
}

}  // namespace quernel::tools
