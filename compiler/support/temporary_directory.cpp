#include "support/temporary_directory.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>

namespace quernel {
namespace {

// What a signal's handler has to know, where it may not allocate.
struct Slot {
  std::atomic<pid_t> owner{0};  // 0: free, -1: its directory is being made
  char path[256];
};
Slot slots[16];
std::atomic<bool> ending{false};

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
constexpr timespec kPause = {0, 1'000'000};
constexpr int kPauses = 1000;

// Makes a directory of `pattern` and writes down its name. The thread is not interrupted between the two, and a handler in another
// thread waits for the second. Returns the slot, or -1 where there is none, or no directory (then `pattern` is empty).
int make_directory(std::string& pattern) {
  sigset_t signals, before;
  sigemptyset(&signals);
  for (int number : kSignals) sigaddset(&signals, number);
  pthread_sigmask(SIG_BLOCK, &signals, &before);
  int taken = -1;
  for (int i = 0;
       i < static_cast<int>(std::size(slots)) && pattern.size() < sizeof slots[0].path && taken < 0; ++i) {
    pid_t free = 0;
    if (slots[i].owner.compare_exchange_strong(free, -1)) taken = i;
  }
  if (ending || mkdtemp(pattern.data()) == nullptr) pattern.clear();
  if (taken >= 0) {
    memcpy(slots[taken].path, pattern.c_str(), pattern.size() + 1);
    slots[taken].owner = pattern.empty() ? 0 : getpid();
    if (pattern.empty()) taken = -1;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return taken;
}

void remove_directory(const char* path) {
  pid_t child = _Fork();  // fork would take locks that the interrupted code may hold
  if (child == 0) {
    execl("/bin/rm", "rm", "-rf", "--", path, static_cast<char*>(nullptr));
    _exit(127);
  }
  if (child > 0) (void)!waitpid(child, nullptr, 0);
}

extern "C" void remove_directories(int number) {
  ending = true;
  for (Slot& slot : slots) {
    for (int i = 0; i < kPauses && slot.owner == -1; ++i) nanosleep(&kPause, nullptr);
    // Other threads may still write into it: again, until it is gone.
    for (int i = 0; i < kPauses && slot.owner == getpid() && access(slot.path, F_OK) == 0; ++i)
      remove_directory(slot.path);
  }
  raise(number);  // once more, with its default effect
}

}  // namespace

TemporaryDirectory::TemporaryDirectory(const std::string& parent) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::path below = parent.empty() ? fs::temp_directory_path(error) : fs::absolute(parent, error);
  if (error) return;
  std::string pattern = (below / "quernel-XXXXXX").string();
  slot_ = make_directory(pattern);
  path_ = pattern;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code error;
  if (!path_.empty()) std::filesystem::remove_all(path_, error);
  if (slot_ >= 0 && slots[slot_].owner == getpid()) slots[slot_].owner = 0;
}

void remove_directories_on_signals() {
  struct sigaction action = {};
  action.sa_handler = remove_directories;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (int number : kSignals) {
    struct sigaction now;
    // What the caller ignores, as nohup does, stays ignored.
    if (sigaction(number, nullptr, &now) == 0 && now.sa_handler == SIG_DFL)
      sigaction(number, &action, nullptr);
  }
}

}  // namespace quernel
