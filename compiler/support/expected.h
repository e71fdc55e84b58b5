// Expected<T>: a value, or the diagnostics that say why there is none. The compiler's only error channel.
#pragma once

#include <cassert>
#include <optional>
#include <utility>
#include <variant>

#include "support/diagnostic.h"

namespace quernel {

template <class T>
class [[nodiscard]] Expected {
 public:
  Expected(T value) : state_(std::move(value)) {}
  Expected(Diagnostics errors) : state_(std::move(errors)) { assert(!this->errors().empty()); }
  Expected(Diagnostic error) : state_(Diagnostics{std::move(error)}) {}

  explicit operator bool() const { return std::holds_alternative<T>(state_); }
  bool has_value() const { return std::holds_alternative<T>(state_); }

  T& operator*() { return std::get<T>(state_); }
  const T& operator*() const { return std::get<T>(state_); }
  T* operator->() { return &std::get<T>(state_); }
  const T* operator->() const { return &std::get<T>(state_); }

  const Diagnostics& errors() const { return std::get<Diagnostics>(state_); }
  Diagnostics take_errors() { return std::move(std::get<Diagnostics>(state_)); }

 private:
  std::variant<T, Diagnostics> state_;
};

// Success without a value, or diagnostics.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Diagnostics errors) : errors_(std::move(errors)) {}
  Status(Diagnostic error) : errors_{std::move(error)} {}
  explicit operator bool() const { return errors_.empty(); }
  const Diagnostics& errors() const { return errors_; }
  Diagnostics take_errors() { return std::move(errors_); }

 private:
  Diagnostics errors_;
};

}  // namespace quernel

// Unwraps an Expected into a fresh variable, or returns its diagnostics from the enclosing function.
#define QUERNEL_CONCAT_(a, b) a##b
#define QUERNEL_CONCAT(a, b) QUERNEL_CONCAT_(a, b)
#define QUERNEL_TRY_IMPL_(tmp, decl, expr) \
  auto tmp = (expr);                       \
  if (!tmp) return tmp.take_errors();      \
  decl = std::move(*tmp)
#define QUERNEL_TRY(decl, expr) QUERNEL_TRY_IMPL_(QUERNEL_CONCAT(expected_, __LINE__), decl, expr)
#define QUERNEL_CHECK(expr)                                            \
  do {                                                                 \
    if (auto status_ = (expr); !status_) return status_.take_errors(); \
  } while (0)
