// quernel-run --describe: what the device is.
#pragma once

#include "open_device.h"

namespace quernel::run {

// Prints the description, as text or a JSON object. Returns the exit status: 1 if there is no such device, or if
// the runtime has no texts (QUERNEL_ERROR_TEXTS): they are a tenth of a small one.
int describe_device(const DeviceChoice& choice, bool json);

}  // namespace quernel::run
