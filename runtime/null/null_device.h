// For tests of the null device: what it was told to do, and a fault on demand.
#pragma once

#include <stdint.h>

#include "quernel/runtime.h"

namespace quernel::runtime::null {

struct Counts {
  uint64_t launches = 0;
  uint64_t workgroups = 0;
  uint64_t copies = 0;
  uint64_t submissions = 0;
};

// Both require a device from qnl_device_open_null.
Counts counts(const qnl_device* device);
// Makes every later launch, submit and wait_idle return QNL_DEVICE_FAULT.
void inject_fault(qnl_device* device);

}  // namespace quernel::runtime::null
