#pragma once

// Runs an Engine for requests that come from another thread. They are queued, taken between two steps, and a report is
// handed over after each step. Only the thread of run() touches the Engine.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <variant>
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
  std::int64_t priority = 0;
  std::string cache_salt;
  // As of NewRequest.
  std::shared_ptr<const LoadedAdapter> adapter = nullptr;
  std::optional<Pooling> pooling = {};
  std::int64_t second_text = INT64_MAX;
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
  EngineStatistics statistics;
  bool has_step = false;
  MonotonicClock::time_point begin, end;
};

class EngineLoop {
 public:
  using Deliver = std::function<void(StepReport)>;
  using Log = std::function<void(const std::string& line)>;
  using Now = std::function<MonotonicClock::time_point()>;

  // `deliver` and `log` are called on the thread of run(), without a lock. `now` is for tests.
  // If nothing runs, a step waits for requests that arrive together, so that they are computed together: after each one
  // up to `longest_wait`, while others are being prepared or fewer have come than ended with the last step, else up to
  // a quarter of it, and at most ten times `longest_wait` in all.
  EngineLoop(Engine& engine, Deliver deliver, Log log, Now now = MonotonicClock::now,
             std::chrono::microseconds longest_wait = std::chrono::milliseconds(2))
      : engine_(engine),
        deliver_(std::move(deliver)),
        log_(std::move(log)),
        now_(std::move(now)),
        longest_wait_(longest_wait) {}

  // Any thread may call these. Calls of one thread have their effects in their order.
  void submit(std::vector<Sequence> sequences);
  void cancel(std::vector<Ticket> tickets);  // no event of them follows those that were delivered already
  // Empties the prefix cache between two steps, and calls `done` on the thread of run(): with false, if sequences run
  // and nothing was done.
  void reset_prefix_cache(std::function<void(bool)> done);
  void stop();
  // A request is being prepared.
  void begin_preparing();
  // After its submit(), or without one.
  void end_preparing();
  // To be called when one report is handled. Steps wait for it: a slow thread then has few events to handle, and
  // answers other connections in time.
  void acknowledge();
  // Sequences that were submitted and are neither over nor cancelled.
  std::size_t load() const { return load_; }
  // How long the step that runs has run; 0 between steps.
  MonotonicClock::duration step_time() const;

  // Runs steps while there are sequences, and sleeps while there are none, until stop().
  void run();

 private:
  struct Cancel {
    Ticket ticket;
  };
  using Reset = std::function<void(bool)>;
  using Command = std::variant<Sequence, Cancel, Reset>;

  void give(std::vector<Command> commands);
  bool take_commands(std::vector<SequenceEvent>& events);
  void wait_for_more(std::unique_lock<std::mutex>& lock);
  void add(const Sequence& sequence, std::vector<SequenceEvent>& events);
  void cancel(Ticket ticket);
  void step(StepReport& report);
  void warn_of_preemptions(const EngineStatistics& now);
  void fail_step(const std::string& error, std::vector<SequenceEvent>& events);

  Engine& engine_;
  Deliver deliver_;
  Log log_;
  Now now_;
  std::chrono::microseconds longest_wait_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Command> commands_;
  bool is_stopped_ = false;
  int undelivered_ = 0;         // calls of deliver_ that are not acknowledged
  int preparing_ = 0;           // requests
  std::uint64_t arrivals_ = 0;  // of commands, and of requests that are being prepared
  std::atomic<std::size_t> load_ = 0;
  std::atomic<MonotonicClock::duration> step_begin_{};  // since the clock's epoch; 0 between steps

  // Of the thread of run().
  std::unordered_map<Ticket, int> requests_;  // of the engine
  std::unordered_map<int, Ticket> tickets_;
  std::size_t ended_together_ = 0;       // sequences that ended with the last step
  std::int64_t warned_preemptions_ = 0;  // of EngineStatistics at the last warning
  MonotonicClock::time_point next_warning_;
};

}  // namespace weft
