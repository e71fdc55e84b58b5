// A limit of time for what a fuzzer calls.
#pragma once

#include <sys/time.h>

namespace quernel::testing {

// Sends SIGPROF, which ends the process, when it has run for so many seconds from now on: processor time,
// since other tests run beside it. 0: never.
inline void end_after(long seconds) {
  itimerval timer = {};
  timer.it_value.tv_sec = seconds;
  setitimer(ITIMER_PROF, &timer, nullptr);
}

}  // namespace quernel::testing
