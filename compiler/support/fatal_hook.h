// What happens before a broken invariant ends the process.
#pragma once

#include <functional>

namespace quernel {

// While it lives, `fatal` on this thread calls `hook` once after its message. Hooks nest: the innermost is called.
class FatalHook {
 public:
  explicit FatalHook(std::function<void()> hook);
  ~FatalHook();
  FatalHook(const FatalHook&) = delete;
  FatalHook& operator=(const FatalHook&) = delete;

 private:
  friend void run_fatal_hook();
  std::function<void()> hook_;
  FatalHook* outer_;
};

// Calls the hook of this thread, if there is one. A failure inside the hook does not call it again.
void run_fatal_hook();

}  // namespace quernel
