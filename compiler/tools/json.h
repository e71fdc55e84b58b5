// A JSON value: built and written by --json, read from tolerance.json.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "support/expected.h"

namespace quernel::tools {

class Json {
 public:
  using Array = std::vector<Json>;
  using Object = std::vector<std::pair<std::string, Json>>;  // in the order given

  Json() = default;
  Json(bool value) : value_(value) {}
  template <class T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>, int> = 0>
  Json(T value) : value_(static_cast<int64_t>(value)) {}
  Json(double value) : value_(value) {}
  Json(const char* value) : value_(std::string(value)) {}
  Json(std::string value) : value_(std::move(value)) {}
  Json(std::string_view value) : value_(std::string(value)) {}
  Json(Array value) : value_(std::move(value)) {}
  Json(Object value) : value_(std::move(value)) {}

  // Appends a member to an object.
  void set(std::string name, Json value) {
    std::get<Object>(value_).emplace_back(std::move(name), std::move(value));
  }
  void push(Json value) { std::get<Array>(value_).push_back(std::move(value)); }

  bool is_object() const { return std::holds_alternative<Object>(value_); }
  // A member of an object; null where there is none, or this is no object.
  const Json* find(std::string_view name) const;
  // The same, but a null value where there is none.
  const Json& at(std::string_view name) const;
  const Array& array() const;       // no elements where this is no array
  const std::string& text() const;  // empty where this is no string
  std::optional<double> number() const;
  bool is_true() const { return value_ == decltype(value_)(true); }
  bool operator==(const Json&) const = default;

  // Two spaces per level; numbers that JSON cannot express (NaN, infinity) become null.
  std::string dump() const;

 private:
  void write(std::string& out, int depth) const;
  std::variant<std::nullptr_t, bool, int64_t, double, std::string, Array, Object> value_ = nullptr;
};

// A string as a JSON literal, with its quotes. Bytes that are no UTF-8 are written as U+FFFD.
std::string json_string(std::string_view text);

// `file` is only named in diagnostics.
Expected<Json> parse_json(std::string_view text, const std::string& file);

}  // namespace quernel::tools
