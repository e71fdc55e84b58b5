// Builds the text of a qnl_error in place, without allocation: `fail` at once, Failure in pieces. Texts have
// {} where an argument goes; that there are as many of them as arguments is checked when they are compiled. A
// call is a few instructions, because most errors are found in code that has to be small.
#pragma once

#include <stdarg.h>
#include <stdint.h>

#include "quernel/runtime.h"

namespace quernel::runtime {

// What an argument is, two bits for each from bit 16 on; the bits below are for a status.
template <class T>
inline constexpr uint32_t kArgumentKind = T::an_argument_is_a_text_or_an_unsigned_or_64_bit_number;
template <>
inline constexpr uint32_t kArgumentKind<const char*> = 0;
template <>
inline constexpr uint32_t kArgumentKind<char*> = 0;
template <>
inline constexpr uint32_t kArgumentKind<uint32_t> = 1;
template <>
inline constexpr uint32_t kArgumentKind<uint64_t> = 2;
template <>
inline constexpr uint32_t kArgumentKind<int64_t> = 3;

template <class... Arguments>
consteval uint32_t argument_kinds() {
  static_assert(sizeof...(Arguments) <= 8);
  uint32_t kinds = 0, shift = 16;
  ((kinds |= kArgumentKind<Arguments> << shift, shift += 2), ...);
  return kinds;
}

template <class T>
struct SameType {
  using Type = T;
};

void a_text_has_one_pair_of_braces_per_argument();

template <class... Arguments>
struct TextFor {
  const char* text;
  consteval TextFor(const char* literal) : text(literal) {
    uint32_t pairs = 0;
    for (const char* c = literal; *c != '\0'; ++c) pairs += c[0] == '{' && c[1] == '}' ? 1 : 0;
    if (pairs != sizeof...(Arguments)) a_text_has_one_pair_of_braces_per_argument();
  }
};
template <class... Arguments>
using Text = TextFor<typename SameType<Arguments>::Type...>;

// A text that is made of several pieces. What does not fit is cut. error may be null.
class Failure {
 public:
  Failure(qnl_error* error, qnl_status status);
  template <class... Arguments>
  Failure& append(Text<Arguments...> text, Arguments... arguments) {
    return append_untyped(argument_kinds<Arguments...>(), text.text, arguments...);
  }
  void append_list(uint32_t kinds, const char* text, va_list arguments);
  operator qnl_status() const { return status_; }

 private:
  Failure& append_untyped(uint32_t kinds, const char* text, ...);
  void append_characters(const char* text);
  void append_number(uint64_t number);

  qnl_error* error_;
  qnl_status status_;
  uint32_t used_ = 0;
};

qnl_status fail_untyped(qnl_error* error, uint32_t status_and_kinds, const char* text, ...);

// Usage: return fail(error, QNL_SHAPE_MISMATCH, "input '{}': expected rank {}", name, rank);
template <class... Arguments>
qnl_status fail(qnl_error* error, qnl_status status, Text<Arguments...> text, Arguments... arguments) {
  return fail_untyped(error, static_cast<uint32_t>(status) | argument_kinds<Arguments...>(), text.text,
                      arguments...);
}

// Appends the names of a feature set, separated by spaces: "x86-64-v1 x86-64-v2 avx512-vnni", or "none".
void append_features(Failure& failure, uint32_t arch, uint64_t features);
const char* arch_name(uint32_t arch);

// Appends "f32[1,3,224,224]".
void append_type(Failure& failure, qnl_dtype dtype, uint32_t rank, const int64_t* shape);

}  // namespace quernel::runtime
