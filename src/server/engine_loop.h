#pragma once

// Runs an Engine for requests that come from another thread. They are queued, taken between two steps, and their events
// are handed over once for each step. Only the thread of run() touches the Engine.

#include <atomic>
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

class EngineLoop {
 public:
  using Deliver = std::function<void(std::vector<SequenceEvent>)>;

  // `deliver` is called on the thread of run(), without a lock.
  EngineLoop(Engine& engine, Deliver deliver) : engine_(engine), deliver_(std::move(deliver)) {}

  // Any thread may call these. Calls of one thread have their effects in their order.
  void submit(std::vector<Sequence> sequences);
  void cancel(std::vector<Ticket> tickets);  // no event of them follows those that were delivered already
  void stop();
  // To be called when the events of one delivery are handled. Steps wait for it: a slow thread then has few events to
  // handle, and answers other connections in time.
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
  void step(std::vector<SequenceEvent>& events);
  void fail_all(const std::string& error, std::vector<SequenceEvent>& events);

  Engine& engine_;
  Deliver deliver_;

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
