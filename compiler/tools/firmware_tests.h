// Test vectors of a model on a board: what `quernel-run --test --json` says of a bundle, said of a static
// library, with instructions and memory in place of times.
#pragma once

#include <string>
#include <vector>

#include "bundle/bundle_contents.h"
#include "firmware_board.h"
#include "json.h"

namespace quernel::tools {

// A model as a static library in `folder`.
struct FirmwareSubject {
  const CompileReport& report;
  std::string folder, target;
  bool per_kernel = false;  // a second program counts the instructions of kernels
};

// {"tests": [{"name", "target", "board", "board_core", "passed", "error", "outputs", "instructions",
// "instruction_step", "multiply_adds", "memory": [{"name", "used_bytes", "bytes"}],
// "kernels": [{"name", "node", "nodes", "class", "choice", "calls", "instructions", "multiply_adds"}]}]}; kernels, the one
// with most instructions first, only where the subject says so. A test fails also where more memory is
// used than the compiler says. `sequence`: each test follows those before it, with the states that they leave.
Expected<Json> run_firmware_tests(const FirmwareBoard& board, const FirmwareSubject& subject,
                                  const std::vector<bundle::TestVector>& tests, bool sequence,
                                  double timeout_seconds);

}  // namespace quernel::tools
