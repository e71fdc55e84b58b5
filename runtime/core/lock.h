// A lock on the platform's park and wake: waiting threads sleep. Not recursive.
#pragma once

#include "platform/platform.h"

namespace quernel::runtime {

class Lock {
 public:
  void lock();
  void unlock();

 private:
  static constexpr uint32_t kFree = 0, kHeld = 1,
                            kAwaited = 2;  // kAwaited: held, and a thread may be sleeping
  uint32_t word_ = kFree;
};

class Guard {
 public:
  explicit Guard(Lock* lock) : lock_(lock) { lock_->lock(); }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  ~Guard() { lock_->unlock(); }

 private:
  Lock* lock_;
};

// The reverse of a guard: releases the lock until the end of the scope.
class Unguard {
 public:
  explicit Unguard(Lock* lock) : lock_(lock) { lock_->unlock(); }
  Unguard(const Unguard&) = delete;
  Unguard& operator=(const Unguard&) = delete;
  ~Unguard() { lock_->lock(); }

 private:
  Lock* lock_;
};

}  // namespace quernel::runtime
