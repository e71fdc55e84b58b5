// Reads the attributes of a custom op's call (qnl_custom_call::attributes) by name.
//
//   quernel::CustomAttributes attributes(call->attributes);
//   float alpha = 1;
//   attributes.get("alpha", &alpha);
//
// Every get returns false and leaves *value unchanged if no attribute has that name and type. Reading numbers
// does not allocate.
#ifndef QUERNEL_CUSTOM_OP_HPP_
#define QUERNEL_CUSTOM_OP_HPP_

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "quernel/runtime.h"

namespace quernel {

class CustomAttributes {
 public:
  explicit CustomAttributes(const char* text) : text_(text == nullptr ? "" : text) {}

  bool has(std::string_view name) const { return !find(name).empty(); }

  bool get(std::string_view name, int64_t* value) const { return read(find(name), value); }
  bool get(std::string_view name, float* value) const { return read(find(name), value); }
  bool get(std::string_view name, std::string* value) const { return read(find(name), value); }
  bool get(std::string_view name, std::vector<int64_t>* values) const { return read_list(name, values); }
  bool get(std::string_view name, std::vector<float>* values) const { return read_list(name, values); }
  bool get(std::string_view name, std::vector<std::string>* values) const { return read_list(name, values); }

 private:
  // Returns the text up to `stop` outside quotes and brackets, or up to its end.
  static std::string_view until(std::string_view text, char stop) {
    bool quoted = false;
    int depth = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      char c = text[i];
      if (c == '\\' && quoted) {
        ++i;
      } else if (c == '"') {
        quoted = !quoted;
      } else if (!quoted) {
        if (c == stop && depth == 0) return text.substr(0, i);
        depth += c == '[' ? 1 : c == ']' ? -1 : 0;
      }
    }
    return text;
  }

  // Returns the text of the attribute's value; empty if there is none.
  std::string_view find(std::string_view name) const {
    for (std::string_view rest = text_; !rest.empty();) {
      std::string_view entry = until(rest, ';');
      rest.remove_prefix(entry.size() < rest.size() ? entry.size() + 1 : rest.size());
      if (entry.size() > name.size() && entry.substr(0, name.size()) == name && entry[name.size()] == '=')
        return entry.substr(name.size() + 1);
    }
    return {};
  }

  template <class Number>
  static bool read_number(std::string_view text, Number* value) {
    Number number{};
    auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (text.empty() || code != std::errc() || end != text.data() + text.size()) return false;
    *value = number;
    return true;
  }

  static bool read(std::string_view text, int64_t* value) { return read_number(text, value); }
  static bool read(std::string_view text, float* value) {
    bool is_integer = text.find_first_not_of("-0123456789") == std::string_view::npos;
    return !is_integer && read_number(text, value);
  }
  static bool read(std::string_view text, std::string* value) {
    if (text.size() < 2 || text.front() != '"' || text.back() != '"') return false;
    std::string result;
    for (size_t i = 1; i + 1 < text.size(); ++i) {
      if (text[i] != '\\') {
        result += text[i];
      } else if (text[++i] != 'x') {
        result += text[i];
      } else {
        unsigned code = 0;
        std::from_chars(text.data() + i + 1, text.data() + std::min(i + 3, text.size()), code, 16);
        result += static_cast<char>(code);
        i += 2;
      }
    }
    *value = std::move(result);
    return true;
  }

  template <class Value>
  bool read_list(std::string_view name, std::vector<Value>* values) const {
    std::string_view text = find(name);
    if (text.size() < 2 || text.front() != '[' || text.back() != ']') return false;
    std::vector<Value> result;
    for (std::string_view rest = text.substr(1, text.size() - 2); !rest.empty();) {
      std::string_view entry = until(rest, ',');
      rest.remove_prefix(entry.size() < rest.size() ? entry.size() + 1 : rest.size());
      if (!read(entry, &result.emplace_back())) return false;
    }
    *values = std::move(result);
    return true;
  }

  std::string_view text_;
};

}  // namespace quernel

#endif  // QUERNEL_CUSTOM_OP_HPP_
