// Runs jobs in child processes, several at once, each with a time limit: a crash or a hang of one is a result
// like any other, and the rest goes on.
#pragma once

#include <functional>
#include <string>

namespace quernel::tools {

struct ChildResult {
  bool finished = false;  // the job returned; text is its result
  std::string text;       // else why it did not: "crashed: SIGSEGV: …", "timed out after 120 s"
  double seconds = 0;
};

struct ChildPool {
  int jobs = 1;  // children at once
  double timeout_seconds = 120;
  std::string scratch_dir;  // for what the children write to stderr

  // Runs job(0) … job(count - 1), each in a child, and calls done(i, result) in the order of i. Returns false
  // when the user interrupted it; then the children are gone, too.
  bool run(int count, const std::function<std::string(int)>& job,
           const std::function<void(int, const ChildResult&)>& done) const;
};

}  // namespace quernel::tools
