#pragma once

// A request while its sequences run: takes their events and writes the answer. It lives on the I/O thread.

#include <cstdint>
#include <string>
#include <vector>

#include "server/engine_loop.h"

namespace weft {

// Counts the intervals in which a stream had no event.
class Silence {
 public:
  void end() { intervals_ = 0; }
  // Called after each interval. True after four of them: the stream then gets a comment.
  bool goes_on_too_long() {
    constexpr int kMostIntervals = 4;
    if (++intervals_ < kMostIntervals) return false;
    intervals_ = 0;
    return true;
  }

 private:
  int intervals_ = 0;
};

inline constexpr const char* kKeepAliveComment = ": keep-alive\n\n";

class RunningRequest {
 public:
  virtual ~RunningRequest() = default;

  // The sequences to run, with tickets that follow each other; none if the answer is sent already.
  virtual std::vector<Sequence> begin(std::uint64_t random_seed) = 0;
  virtual void take(const SequenceEvent& event) = 0;
  // Ends the answer now, because the server ends.
  virtual void abort() = 0;
  // Called four times in each interval of --sse-keep-alive-interval; a stream that is silent for it gets a comment.
  virtual void keep_alive() = 0;

  virtual bool is_over() const = 0;
  // Tickets of sequences that are not over.
  virtual std::vector<Ticket> open_tickets() const = 0;
  // Number of its tickets.
  virtual std::size_t size() const = 0;
  // Why it failed; "" if it did not. For the log.
  virtual const std::string& error() const = 0;
};

}  // namespace weft
