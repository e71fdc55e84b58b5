// quernel-run --test: runs a bundle's test vectors and compares the outputs.
#pragma once

#include <stdint.h>

#include <string>

#include "quernel/runtime.hpp"

namespace quernel::run {

struct TestOptions {
  std::string bundle;  // as the user named it
  std::string device;  // fields of JSON that identify it
  uint32_t threads = 1, repeat = 1;
  double seconds = 0;           // no further run of a test vector begins after that many; 0: no limit
  bool json = false;            // one JSON object, with the time of every item of the plan
  bool stops_at_fault = false;  // if the device is lost, which the error then says
  const std::string* messages = nullptr;  // of the validation layers so far, which are a failure
};

// Prints a line per test vector. Returns the exit status: 0 if all pass; 1 if one fails, cannot be run, or
// there is none.
int run_tests(const Bundle& bundle, const Device& device, const TestOptions& options, qnl_error* error);

double now_milliseconds();
// Returns the peak of the process's resident memory (VmHWM) in bytes; 0 if the system does not report it.
uint64_t peak_rss_bytes();
std::string json_memory(const qnl_requirements& memory);

}  // namespace quernel::run
