#include "core/lock.h"

namespace quernel::runtime {

void Lock::lock() {
  uint32_t free = kFree;
  if (__atomic_compare_exchange_n(&word_, &free, kHeld, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return;
  while (__atomic_exchange_n(&word_, kAwaited, __ATOMIC_ACQUIRE) != kFree)
    platform::park(&word_, kAwaited, platform::kForever);
}

void Lock::unlock() {
  if (__atomic_exchange_n(&word_, kFree, __ATOMIC_RELEASE) == kAwaited) platform::wake(&word_, 1);
}

}  // namespace quernel::runtime
