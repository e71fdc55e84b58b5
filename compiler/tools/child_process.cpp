#include "child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <sstream>

#include "command.h"

namespace quernel::tools {
namespace {

volatile sig_atomic_t interrupted_flag = 0;
int guards = 0;

void redirect(const std::string& path, int stream, int flags) {
  int file = open(path.empty() ? "/dev/null" : path.c_str(), flags, 0600);
  if (file < 0) {
    dprintf(STDERR_FILENO, "%s: %s\n", path.c_str(), std::strerror(errno));
    _exit(127);
  }
  dup2(file, stream);
  close(file);
}

[[noreturn]] void become(const std::vector<std::string>& words, const ProcessOptions& options, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
  setpgid(0, 0);
  signal(SIGINT, SIG_DFL);
  signal(SIGTERM, SIG_DFL);
  signal(SIGPIPE, SIG_DFL);
  redirect(options.input, STDIN_FILENO, O_RDONLY);
  redirect(options.errors, STDERR_FILENO, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND);
  redirect(options.output, STDOUT_FILENO,
           O_WRONLY | O_CREAT | O_APPEND | (options.output == options.errors ? 0 : O_TRUNC));
  if (!options.directory.empty() && chdir(options.directory.c_str()) != 0) {
    dprintf(STDERR_FILENO, "%s: %s\n", options.directory.c_str(), std::strerror(errno));
    _exit(127);
  }
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  dprintf(STDERR_FILENO, "cannot start %s: %s\n", arguments[0], std::strerror(errno));
  _exit(127);
}

// Whether the child has ended; else time is up, or the user interrupts.
bool wait_for_end(pid_t child, double timeout, bool cleans_up, bool* interrupted) {
  int file = static_cast<int>(syscall(SYS_pidfd_open, child, 0));
  double deadline = now_seconds() + timeout;
  bool ended = false;
  while (!ended) {
    double left = timeout > 0 ? std::max(0.0, deadline - now_seconds()) : 3600;
    pollfd entry = {file, POLLIN, 0};
    int got = poll(&entry, 1, static_cast<int>(std::min(left, 3600.0) * 1e3) + 1);
    ended = got > 0;
    if (interrupted_flag != 0 && !ended && !cleans_up) *interrupted = true;
    if (*interrupted || (got == 0 && timeout > 0 && now_seconds() >= deadline)) break;
    if (got < 0 && errno != EINTR) break;
  }
  if (file >= 0) close(file);
  return ended;
}

}  // namespace

std::string last_line_of(const std::string& path) {
  std::ifstream file(path);
  std::string last;
  for (std::string line; std::getline(file, line);)
    if (!line.empty()) last = line;
  while (!last.empty() && (last.back() == '\r' || last.back() == ' ')) last.pop_back();
  return last;
}

std::string ProcessResult::failure() const {
  std::string how = !started      ? "cannot be started"
                    : interrupted ? "was interrupted"
                    : timed_out   ? fmt::format("timed out after {:g} s", timeout_seconds)
                    : signal != 0 ? fmt::format("was killed by {}", strsignal(signal))
                                  : fmt::format("exited with {}", exit_code);
  return fmt::format("{} {}{}{}", command, how, last_words.empty() ? "" : ": ", last_words);
}

bool program_exists(const std::string& name) {
  if (name.find('/') != std::string::npos) return access(name.c_str(), X_OK) == 0;
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "/usr/bin:/bin" : path);
  for (std::string folder; std::getline(folders, folder, ':');)
    if (access((folder + "/" + name).c_str(), X_OK) == 0) return true;
  return false;
}

ProcessResult run_process(const std::vector<std::string>& words, const ProcessOptions& options) {
  ProcessResult result;
  result.command = words[0];
  result.timeout_seconds = options.timeout_seconds;
  std::fflush(nullptr);
  pid_t parent = getpid(), child = fork();
  if (child < 0) {
    result.last_words = std::strerror(errno);
    return result;
  }
  if (child == 0) become(words, options, parent);
  setpgid(child, child);  // here and there, whichever comes first
  result.started = true;
  bool ended = wait_for_end(child, options.timeout_seconds, options.cleans_up, &result.interrupted);
  result.timed_out = !ended && !result.interrupted;
  kill(-child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (ended && WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  if (ended && WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  if (!result.succeeded()) result.last_words = last_line_of(options.errors);
  return result;
}

struct InterruptGuard::Actions {
  struct sigaction interrupt, terminate;
};

InterruptGuard::InterruptGuard() : old_(new Actions) {
  if (guards++ == 0) interrupted_flag = 0;
  struct sigaction action = {};
  action.sa_handler = [](int) { interrupted_flag = 1; };
  sigaction(SIGINT, &action, &old_->interrupt);
  sigaction(SIGTERM, &action, &old_->terminate);
}

InterruptGuard::~InterruptGuard() {
  sigaction(SIGINT, &old_->interrupt, nullptr);
  sigaction(SIGTERM, &old_->terminate, nullptr);
  delete old_;
  --guards;
}

bool InterruptGuard::interrupted() { return interrupted_flag != 0; }

}  // namespace quernel::tools
