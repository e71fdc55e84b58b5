// Descriptions by the runtime as strings.
#pragma once

#include <string>

#include "quernel/runtime.h"

namespace quernel::tools {

inline std::string describe(const qnl_device* device, qnl_text_form form) {
  std::string text(qnl_device_describe(device, form, nullptr, 0), '\0');
  qnl_device_describe(device, form, text.data(), text.size());
  text.pop_back();  // the zero
  return text;
}

inline std::string describe(const qnl_session* session, qnl_text_form form) {
  std::string text(qnl_session_describe(session, form, nullptr, 0), '\0');
  qnl_session_describe(session, form, text.data(), text.size());
  text.pop_back();
  return text;
}

}  // namespace quernel::tools
