// quernel-run --test: runs the test vectors that a bundle holds and compares.
#pragma once

#include <stdint.h>

#include <string>

#include "quernel/runtime.hpp"

namespace quernel::run {

struct TestOptions {
  std::string bundle;  // as the user named it
  std::string device;  // fields of JSON that say which one it is
  uint32_t threads = 1, repeat = 1;
  bool json = false;            // one JSON object, with the time of every item of the plan
  bool stops_at_fault = false;  // when the device is lost, which the error then says
};

// Prints a line per test vector. Returns the exit status: 0 when all pass, 1 when one does not, cannot be
// run, or there is none.
int run_tests(const Bundle& bundle, const Device& device, const TestOptions& options, qnl_error* error);

double now_milliseconds();
// Peak of the process's resident memory (VmHWM); 0 where the system does not say.
uint64_t peak_rss_bytes();
std::string json_memory(const qnl_requirements& memory);

}  // namespace quernel::run
