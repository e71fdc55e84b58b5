// One subject of `quernel test`: a bundle with test vectors, or a model with data sets, which become test
// vectors of the bundles that it is compiled into. Runs in a process of its own.
#pragma once

#include <string>

#include "compile_flags.h"
#include "device_runner.h"
#include "firmware_board.h"
#include "json.h"

namespace quernel::tools {

struct TestSubject {
  std::string name;    // for people
  std::string bundle;  // a bundle…
  std::string model;   // …or a model file beside its data sets
};

struct TestCaseOptions {
  CompileOptions compile;
  DeviceRunner* runner = nullptr;        // one of these, but for a kit: bundles run there…
  const FirmwareBoard* board = nullptr;  // …or static libraries here
  run::DeviceChoice device;
  int repeat = 1;
  bool per_kernel = false;     // of a board: its instructions are counted by kernel, too
  double timeout_seconds = 0;  // of a run
  std::string folder;          // of the device, private to the case
  std::string scratch_dir;     // of this machine, the same
  bool packs = false;          // bundles are made for a kit, nothing runs
};

// {"verdict": PASS, FAIL or UNSUPPORTED; "reason"; "runs": what quernel-run printed for each bundle, or what
// firmware_tests.h says of each library; "diverging_layer": {"found", "node", "op", "message"} of a model
// that fails}. For a kit {"verdict": KIT, FAIL or UNSUPPORTED; "reason"; "bundles": their files, in
// `scratch_dir` or the subject's own}.
Json run_test_case(const TestSubject& subject, const TestCaseOptions& options);

}  // namespace quernel::tools
