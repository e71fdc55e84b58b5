#include "support/temporary_directory.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>

namespace quernel {
namespace {

// What a signal's handler has to know, where it may not allocate.
struct Slot {
  std::atomic<pid_t> owner{0};  // 0: free, -1: being written
  char path[256];
};
Slot slots[16];

int take_slot(const std::string& path) {
  for (int i = 0; i < static_cast<int>(std::size(slots)) && path.size() < sizeof slots[0].path; ++i) {
    pid_t free = 0;
    if (!slots[i].owner.compare_exchange_strong(free, -1)) continue;
    memcpy(slots[i].path, path.c_str(), path.size() + 1);
    slots[i].owner = getpid();
    return i;
  }
  return -1;
}

extern "C" void remove_directories(int number) {
  for (Slot& slot : slots) {
    if (slot.owner != getpid()) continue;
    pid_t child = _Fork();  // fork would take locks that the interrupted code may hold
    if (child == 0) {
      execl("/bin/rm", "rm", "-rf", "--", slot.path, static_cast<char*>(nullptr));
      _exit(127);
    }
    if (child > 0) (void)!waitpid(child, nullptr, 0);
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
  if (mkdtemp(pattern.data()) == nullptr) return;
  path_ = pattern;
  slot_ = take_slot(path_);
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
  for (int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction now;
    // What the caller ignores, as nohup does, stays ignored.
    if (sigaction(number, nullptr, &now) == 0 && now.sa_handler == SIG_DFL)
      sigaction(number, &action, nullptr);
  }
}

}  // namespace quernel
