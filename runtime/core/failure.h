// Builds the text of a qnl_error in place, without allocation: `fail` in one call, Failure in pieces. Texts
// contain {} for each argument; their number is checked at compile time. A call is a few instructions,
// because most errors are found in code that must be small. A runtime built with QUERNEL_ERROR_TEXTS=OFF
// contains no texts: an error is then its status and the status's name.
#pragma once

#include <stdarg.h>
#include <stdint.h>

#include "quernel/runtime.h"

namespace quernel::runtime {

#ifdef QUERNEL_WITHOUT_ERROR_TEXTS
inline constexpr bool kErrorTexts = false;
#else
inline constexpr bool kErrorTexts = true;
#endif

// The kind of an argument, two bits each from bit 16 on; a status takes the bits below.
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

// A text built from several pieces, in the caller's memory. Text that does not fit is cut.
class TextBuilder {
 public:
  // text may be null: nothing is written then.
  TextBuilder(char* text, uint32_t bytes) : text_(text), bytes_(bytes) {
    if (text != nullptr) text[0] = '\0';
  }
  template <class... Arguments>
  void append(Text<Arguments...> text, Arguments... arguments) {
    append_untyped(argument_kinds<Arguments...>(), text.text, arguments...);
  }
  void append_list(uint32_t kinds, const char* text, va_list arguments);
  void append_characters(const char* text);
  void append_number(int64_t number);
  // Appends the names of a feature set, separated by spaces: "x86-64-v1 x86-64-v2 avx512-vnni", or "none".
  void append_features(uint32_t arch, uint64_t features);
  // Appends "f32[1,3,224,224]".
  void append_type(qnl_dtype dtype, uint32_t rank, const int64_t* shape);
  bool full() const { return used_ + 1 >= bytes_; }

 private:
  void append_untyped(uint32_t kinds, const char* text, ...);
  void append_digits(uint64_t number);

  char* text_;
  uint32_t bytes_;
  uint32_t used_ = 0;
};

// Sets the status alone, without a text.
qnl_status fail_status(qnl_error* error, qnl_status status);

// An error with a text of several pieces. error may be null.
class Failure {
 public:
  Failure(qnl_error* error, qnl_status status) : text_(nullptr, 0), status_(status) {
    if constexpr (kErrorTexts) {
      begin(error);
    } else {
      fail_status(error, status);
    }
  }
  template <class... Arguments>
  Failure& append(Text<Arguments...> text, Arguments... arguments) {
    if constexpr (kErrorTexts) text_.append<Arguments...>(text, arguments...);
    return *this;
  }
  void append_list(uint32_t kinds, const char* text, va_list arguments) {
    if constexpr (kErrorTexts) text_.append_list(kinds, text, arguments);
  }
  void append_features(uint32_t arch, uint64_t features) {
    if constexpr (kErrorTexts) text_.append_features(arch, features);
  }
  // expression: an index in the reader, a BundleReader.
  template <class Reader>
  void append_expression(const Reader& reader, int32_t expression) {
    if constexpr (kErrorTexts) reader.append_expression(text_, expression);
  }
  void append_type(qnl_dtype dtype, uint32_t rank, const int64_t* shape) {
    if constexpr (kErrorTexts) text_.append_type(dtype, rank, shape);
  }
  operator qnl_status() const { return status_; }

 private:
  void begin(qnl_error* error);

  TextBuilder text_;
  qnl_status status_;
};

qnl_status fail_untyped(qnl_error* error, uint32_t status_and_kinds, const char* text, ...);

// Usage: return fail(error, QNL_SHAPE_MISMATCH, "input '{}': expected rank {}", name, rank);
template <class... Arguments>
qnl_status fail(qnl_error* error, qnl_status status, Text<Arguments...> text, Arguments... arguments) {
  qnl_status failed =
      kErrorTexts ? fail_untyped(error, static_cast<uint32_t>(status) | argument_kinds<Arguments...>(),
                                 text.text, arguments...)
                  : fail_status(error, status);
  if (failed == QNL_OK) __builtin_unreachable();  // callers need not check it
  return failed;
}

}  // namespace quernel::runtime
