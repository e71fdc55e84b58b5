// quernel-run --record: runs test vectors in a separate process, which may crash or hang, and writes a file
// with the result and the machine.
#pragma once

#include <functional>
#include <string>

namespace quernel::run {

struct RecordOptions {
  std::string file;            // written whole or not at all
  std::string bundle;          // name of the bundle in the file
  double timeout_seconds = 0;  // 0: no limit
};

constexpr int kNotRecorded = 3;  // exit status if the file could not be written

// Calls `body` in a child process, whose standard output must be one line of JSON, and writes a line of JSON:
//   {"check": "<hash>", "result": {"bundle", "runner", "seconds", "exit_code", "signal", "timed_out",
//    "timeout_seconds", "last_words", "machine", "output"}}
// check: 16 hexadecimal digits, the hash (schemas/bundle_hash.h) of the bytes between `"result": ` and the
// last brace. output: the body's output, null unless it ended with 0 or 1. Returns the exit status: the
// body's if it is 0 or 1, else 1; kNotRecorded if the file could not be written.
int record_run(const RecordOptions& options, const std::function<int()>& body);

}  // namespace quernel::run
