#pragma once

// Runs an Engine for requests that come from another thread. They are queued, taken between two steps, and a report is
// handed over after each step. Only the thread of run() touches the Engine.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "engine/engine.h"

namespace weft {

// A number for one sequence, which the caller chooses and never uses again.
using Ticket = std::uint64_t;

struct Sequence {
  Ticket ticket = 0;
  std::shared_ptr<const std::vector<int>> prompt;
  std::shared_ptr<const SamplingParameters> parameters;
  std::uint64_t seed = 0;  // instead of that of the parameters, which the choices of a request share
};

struct SequenceEvent {
  Ticket ticket = 0;
  RequestEvent event;
};

// Of all times in the metrics.
using MonotonicClock = std::chrono::steady_clock;

// A step of the engine, or commands that were taken without one.
struct StepReport {
  std::vector<SequenceEvent> events;
  struct Scheduled {
    Ticket ticket;
    std::int64_t cached_tokens;  // of its prompt, found in the prefix cache
  };
  std::vector<Scheduled> scheduled;  // sequences whose first rows were in the step
  std::vector<Ticket> preempted;     // sequences that lost their pages in it
  EngineStatistics statistics;       // `waiting` includes sequences that the engine does not have yet
  bool has_step = false;
  MonotonicClock::time_point begin, end;
};

class EngineLoop {
 public:
  using Deliver = std::function<void(StepReport)>;
  using Now = std::function<MonotonicClock::time_point()>;

  // `deliver` is called on the thread of run(), without a lock. `now` is for tests.
  EngineLoop(Engine& engine, Deliver deliver, Now now = MonotonicClock::now)
      : engine_(engine), deliver_(std::move(deliver)), now_(std::move(now)) {}

  // Any thread may call these. Calls of one thread have their effects in their order.
  void submit(std::vector<Sequence> sequences);
  void cancel(std::vector<Ticket> tickets);  // no event of them follows those that were delivered already
  void stop();
  // To be called when one report is handled. Steps wait for it: a slow thread then has few events to handle, and
  // answers other connections in time.
  void acknowledge();
  // Sequences that were submitted and are neither over nor cancelled.
  std::size_t load() const { return load_; }

  // Runs steps while there are sequences, and sleeps while there are none, until stop().
  void run();

 private:
  struct Command {
    Ticket ticket;
    std::optional<Sequence> added;  // else it is cancelled
  };

  bool take_commands();
  void admit(std::vector<SequenceEvent>& events);
  void step(StepReport& report);
  void fail_all(const std::string& error, std::vector<SequenceEvent>& events);

  Engine& engine_;
  Deliver deliver_;
  Now now_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Command> commands_;
  bool is_stopped_ = false;
  int undelivered_ = 0;  // calls of deliver_ that are not acknowledged
  std::atomic<std::size_t> load_ = 0;

  // Of the thread of run().
  std::deque<Sequence> waiting_;  // the engine has at most as many sequences as a step
  std::unordered_map<Ticket, int> running_;
  std::unordered_map<int, Ticket> tickets_;
};

}  // namespace weft
