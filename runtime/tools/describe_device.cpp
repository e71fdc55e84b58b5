#include "describe_device.h"

#include <stdio.h>

#include "list_bundle.h"

namespace quernel::run {

#ifdef QUERNEL_WITHOUT_ERROR_TEXTS
int describe_device(const DeviceChoice&, bool) {
  fputs(
      "quernel-run: --describe: expected a runtime with texts, found one that was built with "
      "QUERNEL_ERROR_TEXTS=OFF\n",
      stderr);
  return 1;
}
#else
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
#endif

}  // namespace quernel::run
