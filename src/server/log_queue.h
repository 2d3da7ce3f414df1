#pragma once

// The log of a server, written on a thread of its own: a terminal that is stopped or a pipe that nothing reads blocks
// that thread alone. Lines that arrive while more than a limit wait are dropped. Their number is written when the
// reader continues.

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace weft {

class LogQueue {
 public:
  using Write = std::function<void(const std::string& line)>;
  static constexpr std::size_t kMostBytes = std::size_t{1} << 20;

  // `write` may block. It must stay valid until the process ends, because a blocked call of it is left alone.
  explicit LogQueue(Write write, std::size_t most_bytes = kMostBytes);
  ~LogQueue() {
    if (thread_.joinable()) end();
  }
  LogQueue(const LogQueue&) = delete;
  LogQueue& operator=(const LogQueue&) = delete;

  // Any thread may call it; it does not block.
  void add(std::string line);
  // Waits a second for the lines to be written; false if `write` blocks. Nothing may be added any more.
  bool end();

 private:
  struct State {
    Write write;
    std::size_t most_bytes;
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::string> lines;
    std::size_t bytes = 0;  // of the lines
    std::uint64_t dropped = 0;
    bool is_ended = false, has_written_all = false;
  };
  static void work(State& state);

  std::shared_ptr<State> state_;  // a blocked thread outlives this object
  std::thread thread_;
};

}  // namespace weft
