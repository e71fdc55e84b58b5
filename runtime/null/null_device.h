// What tests can ask of the null device beyond the device interface: what it was told to do, and a fault on
// demand.
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

// Both only for a device that qnl_device_open_null made.
Counts counts(const qnl_device* device);
// Every later launch, submit and wait_idle reports QNL_DEVICE_FAULT.
void inject_fault(qnl_device* device);

}  // namespace quernel::runtime::null
