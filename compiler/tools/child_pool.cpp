#include "child_pool.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <vector>

#include "child_process.h"
#include "command.h"

namespace quernel::tools {
namespace {

struct Child {
  int index = 0;
  pid_t pid = 0;
  int pipe = -1;
  double start = 0;
  std::string text, log;
};

std::string signal_name(int signal) {
  const char* name = sigabbrev_np(signal);
  return name == nullptr ? fmt::format("signal {}", signal) : std::string("SIG") + name;
}

// The line of a dead child's stderr that says most: an assertion, a sanitizer's summary, else the last one.
std::string last_words(const std::string& path) {
  std::ifstream file(path);
  std::string line, last, best;
  while (std::getline(file, line)) {
    if (!line.empty()) last = line;
    if (line.find("internal error") != std::string::npos || line.find("SUMMARY: ") != std::string::npos ||
        line.find("Assertion") != std::string::npos || line.find("what():") != std::string::npos)
      best = line;
  }
  return best.empty() ? last : best;
}

// In the child: never returns. Whole results only, so that the parent can tell a finished job.
[[noreturn]] void run_child(const std::function<std::string(int)>& job, int index, int pipe,
                            const std::string& log) {
  signal(SIGINT, SIG_DFL);
  signal(SIGTERM, SIG_DFL);
  if (int file = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600); file >= 0) dup2(file, STDERR_FILENO);
  std::string text = job(index);
  for (size_t at = 0; at < text.size();) {
    ssize_t written = write(pipe, text.data() + at, text.size() - at);
    if (written < 0 && errno != EINTR) _exit(1);
    if (written > 0) at += static_cast<size_t>(written);
  }
  _exit(0);
}

bool start_child(const std::function<std::string(int)>& job, int index, const std::string& scratch_dir,
                 Child* child) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  child->index = index;
  child->log = fmt::format("{}/{}.log", scratch_dir, index);
  child->start = now_seconds();
  std::fflush(nullptr);
  child->pid = fork();
  if (child->pid == 0) {
    close(ends[0]);
    run_child(job, index, ends[1], child->log);
  }
  close(ends[1]);
  child->pipe = ends[0];
  if (child->pid < 0) close(ends[0]);
  return child->pid > 0;
}

ChildResult reap(Child& child, bool timed_out, double limit) {
  if (timed_out) kill(child.pid, SIGKILL);
  close(child.pipe);
  int status = 0;
  while (waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {
  }
  ChildResult result;
  result.seconds = now_seconds() - child.start;
  result.finished = !timed_out && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  if (result.finished) {
    result.text = std::move(child.text);
  } else if (timed_out) {
    result.text = fmt::format("timed out after {:g} s", limit);
  } else {
    result.text = "crashed: " + (WIFSIGNALED(status) ? signal_name(WTERMSIG(status))
                                                     : fmt::format("exit status {}", WEXITSTATUS(status)));
    if (std::string words = last_words(child.log); !words.empty()) result.text += ": " + words;
  }
  unlink(child.log.c_str());
  return result;
}

// Reads what there is; false at the end.
bool drain(Child& child) {
  char buffer[4096];
  ssize_t got = read(child.pipe, buffer, sizeof buffer);
  if (got > 0) child.text.append(buffer, static_cast<size_t>(got));
  return got > 0 || (got < 0 && errno == EINTR);
}

void wait_for_any(const std::vector<Child>& running, double limit, std::vector<pollfd>* files) {
  files->clear();
  double first_deadline = INT32_MAX;
  for (const Child& child : running) {
    files->push_back({child.pipe, POLLIN, 0});
    first_deadline = std::min(first_deadline, child.start + limit);
  }
  int milliseconds = static_cast<int>(std::max(0.0, first_deadline - now_seconds()) * 1e3) + 1;
  if (poll(files->data(), files->size(), milliseconds) < 0)
    for (pollfd& file : *files) file.revents = 0;
}

}  // namespace

bool ChildPool::run(int count, const std::function<std::string(int)>& job,
                    const std::function<void(int, const ChildResult&)>& done) const {
  InterruptGuard guard;
  std::vector<Child> running;
  std::map<int, ChildResult> finished;
  std::vector<pollfd> files;
  int next = 0, reported = 0;
  while (!InterruptGuard::interrupted() && reported < count) {
    while (next < count && static_cast<int>(running.size()) < jobs) {
      Child child;
      if (start_child(job, next, scratch_dir, &child))
        running.push_back(std::move(child));
      else
        finished[next] = {false, fmt::format("cannot start a process: {}", std::strerror(errno)), 0};
      ++next;
    }
    if (!running.empty()) wait_for_any(running, timeout_seconds, &files);
    for (size_t i = running.size(); i-- > 0;) {
      bool ended = files[i].revents != 0 && !drain(running[i]);
      bool late = !ended && now_seconds() - running[i].start > timeout_seconds;
      if (!ended && !late) continue;
      finished[running[i].index] = reap(running[i], late, timeout_seconds);
      running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));
    }
    for (auto it = finished.find(reported); it != finished.end(); it = finished.find(++reported)) {
      done(reported, it->second);
      finished.erase(it);
    }
  }
  for (Child& child : running) (void)reap(child, true, timeout_seconds);
  return !InterruptGuard::interrupted();
}

}  // namespace quernel::tools
