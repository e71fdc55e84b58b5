#include "support/progress.h"

#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>

namespace quernel {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kQuietPeriod = std::chrono::seconds(1);
constexpr auto kInterval = std::chrono::milliseconds(100);

}  // namespace

// The line is redrawn by a thread of its own, so that time goes on within a long stage.
struct Progress::State {
  std::string title, stage;
  Clock::time_point start = Clock::now();
  bool done = false, drawn = false;
  std::mutex mutex;
  std::condition_variable changed;
  std::thread thread;

  void draw() {
    double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    std::string text = title + ": " + stage;
    if (text.size() > 68) text.resize(68);  // stays on one line of an 80 column terminal
    std::fprintf(stderr, "\r\033[K%s  %.1f s", text.c_str(), seconds);
    std::fflush(stderr);
    drawn = true;
  }

  void run() {
    std::unique_lock lock(mutex);
    changed.wait_for(lock, kQuietPeriod, [&] { return done; });
    while (!done) {
      draw();
      changed.wait_for(lock, kInterval, [&] { return done; });
    }
    if (drawn) std::fputs("\r\033[K", stderr);
    std::fflush(stderr);
  }
};

Progress::Progress(std::string title, bool enabled) {
  if (!enabled || !isatty(STDERR_FILENO)) return;
  state_ = std::make_unique<State>();
  state_->title = std::move(title);
  state_->thread = std::thread([state = state_.get()] { state->run(); });
}

Progress::~Progress() { finish(); }

void Progress::stage(const std::string& name) {
  if (!state_) return;
  std::lock_guard lock(state_->mutex);
  state_->stage = name;
}

void Progress::finish() {
  if (!state_) return;
  {
    std::lock_guard lock(state_->mutex);
    state_->done = true;
  }
  state_->changed.notify_all();
  state_->thread.join();
  state_.reset();
}

}  // namespace quernel
