// Progress of a long job on a terminal: one line with the stage and the elapsed time, from the first second
// on, erased at the end. Silent where the stream is not a terminal.
#pragma once

#include <memory>
#include <string>

namespace quernel {

class Progress {
 public:
  // Writes to stderr. `enabled` false: does nothing.
  explicit Progress(std::string title, bool enabled = true);
  ~Progress();  // erases the line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void stage(const std::string& name);
  // Erases the line and ends; call before writing anything else to the terminal.
  void finish();

 private:
  struct State;
  std::unique_ptr<State> state_;  // null when silent
};

}  // namespace quernel
