// Starts a command several times and prints, as one JSON object, the time from just before the start of its
// process to the first byte of its standard output, and what it printed last.
//
//   cold_start REPEATS COMMAND [ARGUMENT…]
//
// A program of its own, because an interpreter's way of starting a process takes longer than a small model's
// first run.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

extern char** environ;

namespace {

double now_ms() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

// Milliseconds to the first output; -1 where the command failed.
double start_once(char** command, std::string* output) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return -1;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  pid_t child = 0;
  const double begin = now_ms();
  const int failed = posix_spawnp(&child, command[0], &actions, nullptr, command, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  double first = -1;
  char part[4096];
  output->clear();
  for (ssize_t n; failed == 0 && (n = read(ends[0], part, sizeof part)) > 0;) {
    if (first < 0) first = now_ms() - begin;
    output->append(part, static_cast<size_t>(n));
  }
  close(ends[0]);
  int status = 0;
  if (failed != 0 || waitpid(child, &status, 0) != child || status != 0) return -1;
  return first;
}

}  // namespace

int main(int argc, char** argv) {
  const int repeats = argc > 2 ? atoi(argv[1]) : 0;
  if (repeats < 1) {
    fprintf(stderr, "usage: cold_start REPEATS COMMAND [ARGUMENT...]\n");
    return 64;
  }
  std::vector<double> times;
  std::string output;
  for (int i = 0; i < repeats; i++) {
    const double first = start_once(argv + 2, &output);
    if (first < 0) {
      fprintf(stderr, "cold_start: %s failed or printed nothing\n", argv[2]);
      return 1;
    }
    times.push_back(first);
  }
  std::sort(times.begin(), times.end());
  while (!output.empty() && output.back() == '\n') output.pop_back();
  printf("{\"first_output_ms\": {\"median\": %.5g, \"min\": %.5g}, \"output\": %s}\n",
         times[times.size() / 2], times[0], !output.empty() && output[0] == '{' ? output.c_str() : "null");
  return 0;
}
