#include "record_run.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "list_bundle.h"
#include "quernel/runtime.h"
#include "run_tests.h"
#include "schemas/bundle_hash.h"

namespace quernel::run {
namespace {

// How the child ended.
struct Ending {
  int exit_code = -1;  // where it ended by itself
  int signal = 0;      // that killed it
  bool timed_out = false;
  double seconds = 0;
  std::string output, last_words;
  bool is_complete() const {
    return (exit_code == 0 || exit_code == 1) && output.size() > 2 && output[0] == '{' &&
           output.find('\n') == output.size() - 1;
  }
};

int fail(const std::string& what, const std::string& file) {
  fprintf(stderr, "quernel-run: --record: %s: '%s': %s\n", what.c_str(), shown(file.c_str()).c_str(),
          strerror(errno));
  return kNotRecorded;
}

// A file without a name, in the folder of `beside`: a device may have no other folder that can be written.
int open_nameless(const std::string& beside, const char* suffix) {
  std::string name = beside + suffix;
  unlink(name.c_str());
  int file = open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file >= 0) unlink(name.c_str());
  return file;
}

std::string contents_of(int file) {
  std::string text;
  char buffer[4096];
  lseek(file, 0, SEEK_SET);
  for (ssize_t n; (n = read(file, buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<size_t>(n));
  return text;
}

std::string last_line_of(const std::string& text) {
  size_t end = text.find_last_not_of("\r\n ");
  if (end == std::string::npos) return "";
  size_t begin = text.find_last_of("\r\n", end);
  return text.substr(begin == std::string::npos ? 0 : begin + 1,
                     end - (begin == std::string::npos ? 0 : begin + 1) + 1);
}

// Returns when the child has closed its end of the pipe, or false after the time.
bool wait_for_end(int pipe, double timeout_seconds) {
  double deadline = now_milliseconds() + timeout_seconds * 1e3;
  for (;;) {
    double left = timeout_seconds > 0 ? std::max(0.0, deadline - now_milliseconds()) : 3.6e6;
    struct pollfd entry = {pipe, POLLIN, 0};
    int got = poll(&entry, 1, static_cast<int>(std::min(left, 3.6e6)) + 1);
    if (got > 0) return true;
    if (got < 0 && errno != EINTR) return true;  // waiting for the process then tells
    if (timeout_seconds > 0 && now_milliseconds() >= deadline) return false;
  }
}

// False where no process can be made.
bool run_child(const RecordOptions& options, const std::function<int()>& body, int output, int errors,
               Ending* ending) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  fflush(nullptr);
  double begin = now_milliseconds();
  pid_t parent = getpid(), child = fork();
  if (child < 0) return false;
  if (child == 0) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(kNotRecorded);
    dup2(output, STDOUT_FILENO);
    dup2(errors, STDERR_FILENO);
    int code = body();
    _exit(fflush(stdout) == 0 ? code : kNotRecorded);
  }
  setpgid(child, child);  // here and there, whichever comes first
  close(ends[1]);
  ending->timed_out = !wait_for_end(ends[0], options.timeout_seconds);
  close(ends[0]);
  if (ending->timed_out) kill(-child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  kill(-child, SIGKILL);  // what it has started
  ending->seconds = (now_milliseconds() - begin) * 1e-3;
  if (!ending->timed_out && WIFEXITED(status)) ending->exit_code = WEXITSTATUS(status);
  if (!ending->timed_out && WIFSIGNALED(status)) ending->signal = WTERMSIG(status);
  return true;
}

// The value of the first of these fields of /proc/cpuinfo, which differ by architecture.
std::string processor_name() {
  std::string found;
  FILE* file = fopen("/proc/cpuinfo", "r");
  if (file == nullptr) return found;
  char line[512];
  while (found.empty() && fgets(line, sizeof line, file) != nullptr)
    for (const char* field : {"model name", "Hardware", "uarch", "isa", "CPU part"})
      if (strncmp(line, field, strlen(field)) == 0)
        if (const char* colon = strchr(line, ':')) found = last_line_of(colon + 1 + strspn(colon + 1, " \t"));
  fclose(file);
  return found;
}

// What a board calls itself, where there is a device tree.
std::string board_name() {
  char name[256] = {};
  FILE* file = fopen("/proc/device-tree/model", "r");
  if (file == nullptr) return "";
  size_t bytes = fread(name, 1, sizeof name - 1, file);
  fclose(file);
  name[bytes] = '\0';
  return name;
}

std::string json_machine() {
  struct utsname system = {};
  uname(&system);
  char when[32] = "";
  time_t now = time(nullptr);
  struct tm utc;
  if (gmtime_r(&now, &utc) != nullptr) strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &utc);
  auto pages = static_cast<double>(sysconf(_SC_PHYS_PAGES)),
       page = static_cast<double>(sysconf(_SC_PAGESIZE));
  std::string text = "{\"system\": " + json_string(system.sysname) +
                     ", \"release\": " + json_string(system.release) +
                     ", \"architecture\": " + json_string(system.machine) +
                     ", \"processor\": " + json_string(processor_name().c_str());
  if (std::string board = board_name(); !board.empty()) text += ", \"board\": " + json_string(board.c_str());
  return text + ", \"cores\": " + std::to_string(sysconf(_SC_NPROCESSORS_ONLN)) +
         ", \"memory_bytes\": " + std::to_string(static_cast<uint64_t>(pages * page)) +
         ", \"time\": " + json_string(when) + "}";
}

std::string json_result(const RecordOptions& options, const Ending& ending) {
  uint32_t version = qnl_runtime_version();
  std::string runner = std::to_string(version >> 16) + "." + std::to_string(version >> 8 & 255) + "." +
                       std::to_string(version & 255);
  std::string output = ending.is_complete() ? ending.output.substr(0, ending.output.size() - 1) : "null";
  return "{\"bundle\": " + json_string(options.bundle.c_str()) +
         ", \"runner\": " + json_string(runner.c_str()) + ", \"seconds\": " + json_number(ending.seconds) +
         ", \"exit_code\": " + std::to_string(ending.exit_code) +
         ", \"signal\": " + std::to_string(ending.signal) +
         ", \"timed_out\": " + (ending.timed_out ? "true" : "false") +
         ", \"timeout_seconds\": " + json_number(options.timeout_seconds) +
         ", \"last_words\": " + json_string(ending.last_words.c_str()) + ", \"machine\": " + json_machine() +
         ", \"output\": " + output + "}";
}

bool write_file(const std::string& path, const std::string& text) {
  std::string unfinished = path + ".unfinished";
  FILE* file = fopen(unfinished.c_str(), "w");
  if (file == nullptr) return false;
  bool written = fwrite(text.data(), 1, text.size(), file) == text.size() && fflush(file) == 0 &&
                 fsync(fileno(file)) == 0;
  written = fclose(file) == 0 && written && rename(unfinished.c_str(), path.c_str()) == 0;
  if (!written) unlink(unfinished.c_str());
  return written;
}

}  // namespace

int record_run(const RecordOptions& options, const std::function<int()>& body) {
  int output = open_nameless(options.file, ".output"), errors = open_nameless(options.file, ".errors");
  if (output < 0 || errors < 0) return fail("cannot create a file beside it", options.file);
  Ending ending;
  if (!run_child(options, body, output, errors, &ending)) return fail("cannot start a process", options.file);
  ending.output = contents_of(output);
  ending.last_words = last_line_of(contents_of(errors));
  close(output);
  close(errors);
  std::string result = json_result(options, ending);
  char check[17];
  snprintf(check, sizeof check, "%016" PRIx64, qnl_hash(result.data(), result.size()));
  if (!write_file(options.file, "{\"check\": \"" + std::string(check) + "\", \"result\": " + result + "}\n"))
    return fail("cannot be written", options.file);
  return ending.exit_code == 0 ? 0 : 1;
}

}  // namespace quernel::run
