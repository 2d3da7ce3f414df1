#include "server/log_queue.h"

#include <chrono>
#include <utility>

#include <fmt/format.h>

namespace weft {
namespace {

constexpr std::chrono::seconds kLongestEnd{1};

}  // namespace

LogQueue::LogQueue(Write write, std::size_t most_bytes) : state_(std::make_shared<State>()) {
  state_->write = std::move(write);
  state_->most_bytes = most_bytes;
  thread_ = std::thread([state = state_] { work(*state); });
}

bool LogQueue::end() {
  std::unique_lock lock(state_->mutex);
  state_->is_ended = true;
  state_->changed.notify_all();
  const bool is_done = state_->changed.wait_for(lock, kLongestEnd, [this] { return state_->has_written_all; });
  lock.unlock();
  if (thread_.joinable()) is_done ? thread_.join() : thread_.detach();
  return is_done;
}

void LogQueue::add(std::string line) {
  {
    const std::lock_guard lock(state_->mutex);
    // After a dropped line the others are dropped too, until their number is written: it is at its place in the log.
    if (state_->dropped > 0 || state_->bytes + line.size() > state_->most_bytes) {
      ++state_->dropped;
      return;
    }
    state_->bytes += line.size();
    state_->lines.push_back(std::move(line));
  }
  state_->changed.notify_all();
}

void LogQueue::work(State& state) {
  std::unique_lock lock(state.mutex);
  for (;;) {
    state.changed.wait(lock, [&] { return state.is_ended || !state.lines.empty() || state.dropped > 0; });
    std::string line;
    if (!state.lines.empty()) {
      line = std::move(state.lines.front());
      state.lines.pop_front();
      state.bytes -= line.size();
    } else if (state.dropped > 0) {
      line =
          fmt::format("{} lines of the log were dropped, because nothing read them", std::exchange(state.dropped, 0));
    } else {
      break;
    }
    lock.unlock();
    state.write(line);
    lock.lock();
  }
  state.has_written_all = true;
  state.changed.notify_all();
}

}  // namespace weft
