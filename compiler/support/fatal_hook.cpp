#include "support/fatal_hook.h"

#include <utility>

namespace quernel {
namespace {

thread_local FatalHook* current = nullptr;

}  // namespace

FatalHook::FatalHook(std::function<void()> hook) : hook_(std::move(hook)), outer_(current) { current = this; }
FatalHook::~FatalHook() { current = outer_; }

void run_fatal_hook() {
  if (FatalHook* hook = std::exchange(current, nullptr)) hook->hook_();
}

}  // namespace quernel
