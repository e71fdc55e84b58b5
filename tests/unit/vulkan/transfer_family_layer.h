// A Vulkan layer for tests: each device has one more queue family, the last, which transfers and does nothing
// else. Its one queue is the first queue of a family that computes. A family of the driver that does not
// compute appears without queues. Mesa's software driver has one family only.
#pragma once

#include <cstdint>

namespace quernel::test {

inline constexpr const char* kTransferFamilyLayer = "VK_LAYER_QUERNEL_transfer_family";

// What the layer has seen, in all devices of the process.
struct TransferFamilyCounts {
  uint64_t submissions = 0;        // to queues of the added family
  uint64_t copies = 0;             // recorded in command buffers of the added family
  uint64_t exclusive_buffers = 0;  // used by these copies although the added family may not use them
};

// The library exports this function by the name "transfer_family_counts".
using TransferFamilyCountsFunction = TransferFamilyCounts (*)();

}  // namespace quernel::test
