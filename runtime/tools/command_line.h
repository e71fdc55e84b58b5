// The command line of quernel-run.
#pragma once

#include <stdint.h>

#include <string>
#include <vector>

#include "open_device.h"
#include "tensor_file.h"

namespace quernel::run {

struct Assignment {
  std::string name;  // empty: the only one
  std::string value;
  std::string text;  // both, as given
};

struct Options {
  std::string bundle;
  std::vector<std::string> bundles;  // where there are several
  std::string entry;
  std::vector<Assignment> inputs, outputs, symbols;
  DeviceChoice device;
  uint32_t repeat = 1;
  std::string trace, record, load_state, save_state;
  double timeout_seconds = 0;  // of what is recorded
  double most_seconds = 0;     // after which no further run begins, of each test vector; 0: no limit
  bool describe = false;
  bool profile = false, verify_weights = false, test = false, list = false, json = false, help = false,
       version = false;
};

extern const char* const kUsage;

// Returns a message when the command line is wrong.
tensor_file::Error parse_options(int argc, char** argv, Options* options);

}  // namespace quernel::run
