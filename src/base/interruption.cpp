#include "base/interruption.h"

#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <unistd.h>

namespace weft {
namespace {

constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};

// All that the handler reads. A handler may neither allocate nor lock, so places are taken by exchanges.
std::array<std::atomic<char*>, 1024> unfinished;
static_assert(std::atomic<char*>::is_always_lock_free && std::atomic<int>::is_always_lock_free);
std::atomic<int> waiting = 0;         // objects that want signals to be pending
std::atomic<int> pending_signal = 0;  // 0: none

void end_by(int signal) {
  remove_unfinished();
  std::signal(signal, SIG_DFL);
  ::raise(signal);
}

void on_signal(int signal) {
  if (waiting > 0) {
    pending_signal = signal;
  } else {
    end_by(signal);
  }
}

}  // namespace

void remove_unfinished() noexcept {
  for (std::size_t i = unfinished.size(); i-- > 0;) {
    const char* const path = unfinished[i].exchange(nullptr);
    if (path != nullptr && ::unlink(path) != 0) ::rmdir(path);
  }
}

void remove_unfinished_if_interrupted() {
  for (const int signal : kSignals) {
    struct sigaction action = {};
    if (::sigaction(signal, nullptr, &action) != 0 || action.sa_handler == SIG_IGN) continue;
    action = {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    ::sigaction(signal, &action, nullptr);
  }
}

UnfinishedPath::UnfinishedPath(const std::string& path) {
  char* const copy = ::strdup(path.c_str());
  for (std::size_t i = 0; copy != nullptr && i < unfinished.size(); ++i) {
    char* free_place = nullptr;
    if (!unfinished[i].compare_exchange_strong(free_place, copy)) continue;
    place_ = static_cast<int>(i);
    return;
  }
  std::free(copy);
}

// A handler that has taken the path ends the process, so the path is not freed then.
UnfinishedPath::~UnfinishedPath() {
  if (place_ >= 0) std::free(unfinished[static_cast<std::size_t>(place_)].exchange(nullptr));
}

UnfinishedPath::UnfinishedPath(UnfinishedPath&& other) noexcept : place_(std::exchange(other.place_, -1)) {}

UnfinishedPath& UnfinishedPath::operator=(UnfinishedPath&& other) noexcept {
  std::swap(place_, other.place_);
  return *this;
}

InterruptionLater::InterruptionLater() { ++waiting; }

InterruptionLater::~InterruptionLater() {
  if (--waiting == 0 && is_pending()) end_by(pending_signal.exchange(0));
}

bool InterruptionLater::is_pending() { return pending_signal != 0; }

}  // namespace weft
