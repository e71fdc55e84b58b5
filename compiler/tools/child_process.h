// Runs a command as a child process: with a time limit, its streams in files, and nothing of it left when the
// call returns. It ends when this process does, too.
#pragma once

#include <string>
#include <vector>

namespace quernel::tools {

struct ProcessOptions {
  std::string input;           // file that it reads; empty: nothing to read
  std::string directory;       // that it works in; empty: this process's
  std::string output, errors;  // files that it writes; the same file for both is fine, empty: thrown away
  double timeout_seconds = 0;  // 0: none
  bool cleans_up = false;      // runs to its end also when the user has interrupted
};

struct ProcessResult {
  std::string command;  // its first word
  bool started = false;
  int exit_code = -1;  // where it ended by itself
  int signal = 0;      // that killed it
  bool timed_out = false;
  bool interrupted = false;    // the user stopped this process
  std::string last_words;      // the last line of its errors that is not empty
  double timeout_seconds = 0;  // that it had
  bool succeeded() const { return started && exit_code == 0; }
  // Why it did not: "ssh exited with 255: …", one line.
  std::string failure() const;
};

// Starts words[0], found in PATH, in a process group of its own, and waits for its end. What is left of the
// group then is killed.
ProcessResult run_process(const std::vector<std::string>& words, const ProcessOptions& options);

// Whether the program exists, as run_process would find it.
bool program_exists(const std::string& name);

// The last line of a file that is not empty; of output that people read.
std::string last_line_of(const std::string& path);

// While one lives, SIGINT and SIGTERM do not end this process: run_process returns early, and interrupted()
// is true.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
  static bool interrupted();

 private:
  struct Actions;
  Actions* old_;
};

}  // namespace quernel::tools
