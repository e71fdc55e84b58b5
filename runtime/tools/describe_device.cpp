#include "describe_device.h"

#include <stdio.h>

#include "list_bundle.h"

namespace quernel::run {

int describe_device(const DeviceChoice& choice, bool json) {
  OpenedDevice opened;
  qnl_error error;
  if (opened.open(choice, Bundle(), "", nullptr, &error) != QNL_OK) {
    fprintf(stderr, "quernel-run: %s\n", shown(error_text(error).c_str()).c_str());
    return 1;
  }
  qnl_text_form form = json ? QNL_JSON : QNL_TEXT;
  std::string text(qnl_device_describe(opened.device.get(), form, nullptr, 0), '\0');
  qnl_device_describe(opened.device.get(), form, text.data(), text.size());
  fputs(text.c_str(), stdout);
  return 0;
}

}  // namespace quernel::run
