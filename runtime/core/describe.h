// Descriptions of devices and sessions: named values in objects and lists. They are written as text for
// people or as JSON, into the caller's memory, without allocation.
#pragma once

#include <stdint.h>

#include "quernel/runtime.h"

namespace quernel::runtime {

// Text that does not fit is cut; `finish` returns the size of the whole.
class Description {
 public:
  Description(qnl_text_form form, char* out, uint64_t capacity);
  // Inside a list, names are null. ~0 stands for "unknown or without limit".
  void text(const char* name, const char* value);
  void number(const char* name, uint64_t value);
  void signed_number(const char* name, int64_t value);
  void flag(const char* name, bool value);
  void features(const char* name, uint32_t arch, uint64_t features);
  void type(const char* name, const qnl_tensor& tensor);
  void open_object(const char* name) { open(name, false); }
  void open_list(const char* name) { open(name, true); }
  void close();
  // Ends the description with a zero. Returns the bytes of the whole, including this zero.
  uint64_t finish();

 private:
  static constexpr uint32_t kDepth = 8;
  struct Level {
    bool list = false;
    bool on_line = false;  // in text form: it shares its line with its neighbours
    bool empty = true;
  };
  void open(const char* name, bool list);
  void begin_value(const char* name, const char* colon = ": ");
  void end_value();
  void put(char c);
  void put(const char* text);
  void put_hex(uint32_t value, uint32_t digits);
  void put_name(const char* text, bool json);
  void put_number(uint64_t value);

  bool json_;
  char* out_;
  uint64_t capacity_, used_ = 0;
  Level levels_[kDepth];
  uint32_t depth_ = 0;
};

}  // namespace quernel::runtime
