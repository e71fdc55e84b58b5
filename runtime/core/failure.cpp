#include "core/failure.h"

#include <string.h>

#include "core/feature_names.h"

namespace quernel::runtime {
namespace {

// Names lie inside the table: pointers would take more room than what they point to.
struct DTypeFacts {
  char name[7];
  uint8_t bits;
};
constexpr DTypeFacts kDTypes[QNL_DTYPE_COUNT] = {
    {"f32", 32}, {"f16", 16}, {"bf16", 16}, {"f64", 64},   {"i8", 8},     {"u8", 8},
    {"i16", 16}, {"u16", 16}, {"i32", 32},  {"u32", 32},   {"i64", 64},   {"u64", 64},
    {"bool", 8}, {"i4", 4},   {"u4", 4},    {"f8e4m3", 8}, {"f8e5m2", 8},
};

// One string of all texts and a list of codes: a switch or pointers would take as much room again.
#define QUERNEL_STATUSES(X)                                \
  X(QNL_OK, "ok")                                          \
  X(QNL_INVALID_ARGUMENT, "invalid argument")              \
  X(QNL_UNKNOWN_NAME, "unknown name")                      \
  X(QNL_DTYPE_MISMATCH, "dtype mismatch")                  \
  X(QNL_SHAPE_MISMATCH, "shape mismatch")                  \
  X(QNL_SIZE_MISMATCH, "size mismatch")                    \
  X(QNL_MISALIGNED, "misaligned pointer")                  \
  X(QNL_OVERLAP, "bound tensors overlap")                  \
  X(QNL_MEMORY_TOO_SMALL, "memory too small")              \
  X(QNL_INPUT_NOT_SET, "input not set")                    \
  X(QNL_SYMBOL_OUT_OF_RANGE, "symbol out of range")        \
  X(QNL_RUN_IN_FLIGHT, "a run is in flight")               \
  X(QNL_FILE_NOT_FOUND, "file not found")                  \
  X(QNL_FILE_UNREADABLE, "file cannot be read")            \
  X(QNL_OUT_OF_MEMORY, "out of memory")                    \
  X(QNL_CODE_MEMORY_REFUSED, "executable memory refused")  \
  X(QNL_THREAD_FAILED, "cannot start a thread")            \
  X(QNL_TIMEOUT, "timeout")                                \
  X(QNL_NOT_A_BUNDLE, "not a bundle")                      \
  X(QNL_WRONG_BYTE_ORDER, "wrong byte order")              \
  X(QNL_TRUNCATED, "truncated bundle")                     \
  X(QNL_CORRUPT_HEADER, "corrupt header")                  \
  X(QNL_CORRUPT_STRUCTURE, "corrupt structure")            \
  X(QNL_CORRUPT_CODE, "corrupt code")                      \
  X(QNL_CORRUPT_CONSTANTS, "corrupt constants")            \
  X(QNL_NEWER_SCHEMA, "newer bundle schema")               \
  X(QNL_NEWER_RUNTIME_NEEDED, "needs a newer runtime")     \
  X(QNL_UNKNOWN_FEATURE, "needs an unknown feature")       \
  X(QNL_INVALID_BUNDLE, "invalid bundle")                  \
  X(QNL_NO_MATCHING_VARIANT, "no variant for this device") \
  X(QNL_MALFORMED_IMAGE, "malformed code image")           \
  X(QNL_KERNEL_ABI_MISMATCH, "kernel ABI mismatch")        \
  X(QNL_CUSTOM_OP_MISSING, "custom op missing")            \
  X(QNL_CUSTOM_OP_MISMATCH, "custom op mismatch")          \
  X(QNL_KERNEL_FAILED, "kernel failed")                    \
  X(QNL_CALLBACK_FAILED, "host callback failed")           \
  X(QNL_CALLBACK_MISSING, "host callback missing")         \
  X(QNL_DEVICE_FAULT, "device fault")                      \
  X(QNL_CANCELLED, "cancelled")
#define QUERNEL_CODE(code, text) code,
#define QUERNEL_TEXT(code, text) text "\0"
constexpr uint16_t kStatusCodes[] = {QUERNEL_STATUSES(QUERNEL_CODE)};
constexpr char kStatusTexts[] = QUERNEL_STATUSES(QUERNEL_TEXT);
#undef QUERNEL_TEXT
#undef QUERNEL_CODE
#undef QUERNEL_STATUSES

}  // namespace

void TextBuilder::append_characters(const char* text) {
  if (text_ == nullptr) return;
  while (*text != '\0' && used_ + 1 < bytes_) text_[used_++] = *text++;
  text_[used_] = '\0';
}

void TextBuilder::append_digits(uint64_t number) {
  char digits[21];
  char* p = digits + sizeof digits - 1;
  *p = '\0';
  do {
    *--p = static_cast<char>('0' + number % 10);
    number /= 10;
  } while (number != 0);
  append_characters(p);
}

void TextBuilder::append_number(int64_t number) {
  if (number < 0) append_characters("-");
  append_digits(number < 0 ? 0 - static_cast<uint64_t>(number) : static_cast<uint64_t>(number));
}

void TextBuilder::append_list(uint32_t kinds, const char* text, va_list arguments) {
  kinds >>= 16;
  for (; *text != '\0'; ++text) {
    if (text[0] != '{' || text[1] != '}') {
      char character[] = {*text, '\0'};
      append_characters(character);
      continue;
    }
    ++text;
    uint32_t kind = kinds & 3;
    kinds >>= 2;
    if (kind == kArgumentKind<const char*>) {
      const char* argument = va_arg(arguments, const char*);
      append_characters(argument == nullptr ? "" : argument);
    } else if (kind == kArgumentKind<uint32_t>) {
      append_digits(va_arg(arguments, uint32_t));
    } else if (kind == kArgumentKind<uint64_t>) {
      append_digits(va_arg(arguments, uint64_t));
    } else {
      append_number(va_arg(arguments, int64_t));
    }
  }
}

void TextBuilder::append_untyped(uint32_t kinds, const char* text, ...) {
  va_list arguments;
  va_start(arguments, text);
  append_list(kinds, text, arguments);
  va_end(arguments);
}

qnl_status fail_status(qnl_error* error, qnl_status status) {
  if (error != nullptr) {
    error->status = status;
    error->text[0] = '\0';
  }
  return status;
}

void Failure::begin(qnl_error* error) {
  fail_status(error, status_);
  if (error != nullptr) text_ = TextBuilder(error->text, sizeof error->text);
}

qnl_status fail_untyped(qnl_error* error, uint32_t status_and_kinds, const char* text, ...) {
  Failure failure(error, static_cast<qnl_status>(status_and_kinds & 0xFFFF));
  va_list arguments;
  va_start(arguments, text);
  failure.append_list(status_and_kinds, text, arguments);
  va_end(arguments);
  return failure;
}

void TextBuilder::append_features(uint32_t arch, uint64_t features) {
  bool first = true;
  for (uint32_t bit = 0; bit < 64; ++bit) {
    uint64_t mask = uint64_t{1} << bit;
    if ((features & mask) == 0) continue;
    if (!first) append(" ");
    first = false;
    const char* name = feature_name(arch, bit);
    if (name != nullptr) {
      append("{}", name);
    } else {
      append("bit-{}", bit);
    }
  }
  if (first) append("none");
}

void TextBuilder::append_type(qnl_dtype dtype, uint32_t rank, const int64_t* shape) {
  append("{}[", qnl_dtype_name(dtype));
  for (uint32_t d = 0; d < rank && d < QNL_MAX_RANK; ++d) append("{}{}", d == 0 ? "" : ",", shape[d]);
  append("]");
}

extern "C" {

const char* qnl_status_text(qnl_status status) {
  const char* text = kStatusTexts;
  for (uint16_t code : kStatusCodes) {
    if (code == status) return text;
    text += strlen(text) + 1;
  }
  return "unknown status";
}

uint32_t qnl_runtime_version(void) { return QNL_RUNTIME_VERSION; }

uint64_t qnl_dtype_bytes(qnl_dtype dtype, uint64_t count) {
  if (static_cast<uint32_t>(dtype) >= QNL_DTYPE_COUNT) return 0;
  uint32_t bits = kDTypes[dtype].bits;
  return bits >= 8 ? count * (bits / 8) : count / 2 + count % 2;
}

const char* qnl_dtype_name(qnl_dtype dtype) {
  return static_cast<uint32_t>(dtype) < QNL_DTYPE_COUNT ? kDTypes[dtype].name : "?";
}

}  // extern "C"

}  // namespace quernel::runtime
