// quernel-run --record: a run of test vectors in a process of its own, which may crash or hang, and a file
// that says how it went, on what machine.
#pragma once

#include <functional>
#include <string>

namespace quernel::run {

struct RecordOptions {
  std::string file;            // that is written, whole or not at all
  std::string bundle;          // as the file names it
  double timeout_seconds = 0;  // 0: none
};

constexpr int kNotRecorded = 3;  // the exit status where the file could not be written

// Calls `body` in a child process, whose standard output is one line of JSON, and writes a line of JSON:
//   {"check": "<hash>", "result": {"bundle", "runner", "seconds", "exit_code", "signal", "timed_out",
//    "timeout_seconds", "last_words", "machine", "output"}}
// check: 16 hexadecimal digits, the hash (schemas/bundle_hash.h) of the bytes between `"result": ` and the
// last brace. output: what the body printed, null where it did not end with 0 or 1. Returns the exit status:
// the body's where it ended so, else 1; kNotRecorded.
int record_run(const RecordOptions& options, const std::function<int()>& body);

}  // namespace quernel::run
