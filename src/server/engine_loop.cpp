#include "server/engine_loop.h"

#include <exception>
#include <utility>

#include <fmt/format.h>

namespace weft {
namespace {

// One is handled while the next step runs.
constexpr int kMostUndelivered = 2;
constexpr std::chrono::seconds kBetweenWarnings{10};
// A step waits this many times `longest_wait` for all requests together, and this part of it if none is expected.
constexpr int kMostWaits = 10;
constexpr int kWaitsOfNone = 4;

}  // namespace

void EngineLoop::give(std::vector<Command> commands) {
  {
    const std::lock_guard lock(mutex_);
    for (Command& command : commands) commands_.push_back(std::move(command));
    ++arrivals_;
  }
  changed_.notify_one();
}

void EngineLoop::submit(std::vector<Sequence> sequences) {
  give({std::make_move_iterator(sequences.begin()), std::make_move_iterator(sequences.end())});
}

void EngineLoop::cancel(std::vector<Ticket> tickets) {
  std::vector<Command> commands;
  for (const Ticket ticket : tickets) commands.emplace_back(Cancel{ticket});
  give(std::move(commands));
}

void EngineLoop::reset_prefix_cache(std::function<void(bool)> done) {
  std::vector<Command> commands;
  commands.emplace_back(Reset(std::move(done)));
  give(std::move(commands));
}

void EngineLoop::stop() {
  {
    const std::lock_guard lock(mutex_);
    is_stopped_ = true;
  }
  changed_.notify_one();
}

void EngineLoop::begin_preparing() {
  {
    const std::lock_guard lock(mutex_);
    ++preparing_;
    ++arrivals_;
  }
  changed_.notify_one();
}

void EngineLoop::end_preparing() {
  {
    const std::lock_guard lock(mutex_);
    --preparing_;
  }
  changed_.notify_one();
}

void EngineLoop::acknowledge() {
  {
    const std::lock_guard lock(mutex_);
    --undelivered_;
  }
  changed_.notify_one();
}

void EngineLoop::run() {
  while (true) {
    StepReport report;
    if (!take_commands(report.events)) break;
    report.begin = report.end = now_();
    if (!engine_.is_idle()) step(report);
    load_ = requests_.size();
    report.statistics = engine_.statistics();
    warn_of_preemptions(report.statistics);
    {
      const std::lock_guard lock(mutex_);
      ++undelivered_;
    }
    deliver_(std::move(report));
  }
  for (const auto& [ticket, request] : requests_) engine_.cancel(request);
}

// Waits for commands while there is nothing to do. Returns false after stop().
bool EngineLoop::take_commands(std::vector<SequenceEvent>& events) {
  std::vector<Command> commands;
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] {
      const bool has_work = !commands_.empty() || !engine_.is_idle();
      return is_stopped_ || (has_work && undelivered_ < kMostUndelivered);
    });
    if (engine_.is_idle()) wait_for_more(lock);
    if (is_stopped_) return false;
    commands.swap(commands_);
  }
  for (const Command& command : commands) {
    if (const auto* sequence = std::get_if<Sequence>(&command)) {
      add(*sequence, events);
    } else if (const auto* cancelled = std::get_if<Cancel>(&command)) {
      cancel(cancelled->ticket);
    } else {
      std::get<Reset>(command)(engine_.reset_prefix_cache());
    }
  }
  load_ = requests_.size();
  return true;
}

// A request that comes just after the step has begun waits for all of it, and then has only the part of a step that
// prompts may take while a sequence decodes.
void EngineLoop::wait_for_more(std::unique_lock<std::mutex>& lock) {
  const auto expects_more = [this] { return preparing_ > 0 || commands_.size() < ended_together_; };
  const auto end = std::chrono::steady_clock::now() + kMostWaits * longest_wait_;
  bool has_more = true;
  while (has_more && !is_stopped_ && std::chrono::steady_clock::now() < end) {
    const bool expects = expects_more();
    const std::uint64_t arrivals = arrivals_;
    has_more = changed_.wait_for(lock, expects ? longest_wait_ : longest_wait_ / kWaitsOfNone,
                                 [&] { return is_stopped_ || arrivals_ != arrivals || expects_more() != expects; });
  }
}

void EngineLoop::add(const Sequence& sequence, std::vector<SequenceEvent>& events) {
  SamplingParameters parameters = *sequence.parameters;
  parameters.seed = sequence.seed;
  try {
    const int request = engine_.add({.prompt = sequence.prompt,
                                     .parameters = std::move(parameters),
                                     .priority = sequence.priority,
                                     .cache_salt = sequence.cache_salt,
                                     .adapter = sequence.adapter,
                                     .pooling = sequence.pooling,
                                     .second_text = sequence.second_text});
    requests_.emplace(sequence.ticket, request);
    tickets_.emplace(request, sequence.ticket);
  } catch (const std::exception& error) {
    events.push_back({sequence.ticket, {.finished = FinishReason::failed, .error = error.what()}});
  }
}

void EngineLoop::cancel(Ticket ticket) {
  const auto found = requests_.find(ticket);
  if (found == requests_.end()) return;
  engine_.cancel(found->second);
  tickets_.erase(found->second);
  requests_.erase(found);
}

MonotonicClock::duration EngineLoop::step_time() const {
  const MonotonicClock::duration begin = step_begin_.load();
  return begin == MonotonicClock::duration{} ? begin : now_().time_since_epoch() - begin;
}

void EngineLoop::step(StepReport& report) {
  struct Running {
    std::atomic<MonotonicClock::duration>& begin;
    ~Running() { begin = MonotonicClock::duration{}; }
  } const running{step_begin_};
  step_begin_ = report.begin.time_since_epoch();
  try {
    ended_together_ = 0;
    const std::span<const RequestEvent> events = engine_.step();
    report.end = now_();
    report.has_step = true;
    for (const FirstScheduled& first : engine_.first_scheduled())
      if (const auto found = tickets_.find(first.request); found != tickets_.end())
        report.scheduled.push_back({found->second, first.cached_tokens});
    for (const int request : engine_.preempted())
      if (const auto found = tickets_.find(request); found != tickets_.end()) report.preempted.push_back(found->second);
    for (const RequestEvent& event : events) {
      const auto found = tickets_.find(event.request);
      if (found == tickets_.end()) continue;
      report.events.push_back({found->second, event});
      if (event.finished == FinishReason::none) continue;
      ++ended_together_;
      requests_.erase(found->second);
      tickets_.erase(found);
    }
  } catch (const std::exception& error) {
    report.end = now_();
    fail_step(error.what(), report.events);
  }
}

// Preemptions make answers slow; the log says so.
void EngineLoop::warn_of_preemptions(const EngineStatistics& now) {
  if (now.preemptions == warned_preemptions_) return;
  const auto time = now_();
  if (time < next_warning_) return;
  log_(fmt::format(
      "[kv cache] pages ran out: {} sequences lost theirs and are computed again ({} of {} pages in use, {} "
      "sequences run, {} wait); more pages: --kv-cache-memory-bytes, fewer sequences: --max-num-seqs",
      now.preemptions - warned_preemptions_, now.pages_used, now.pages, now.running, now.waiting));
  warned_preemptions_ = now.preemptions;
  next_warning_ = time + kBetweenWarnings;
}

// Ends the requests of a step that threw: the next step would fail in the same way. If there are none, such as where
// the device cannot be opened, all requests end.
void EngineLoop::fail_step(const std::string& error, std::vector<SequenceEvent>& events) {
  const std::span<const int> of_step = engine_.requests_of_step();
  std::vector<int> requests(of_step.begin(), of_step.end());
  if (requests.empty())
    for (const auto& [request, ticket] : tickets_) requests.push_back(request);
  for (const int request : requests) {
    const auto found = tickets_.find(request);
    if (found == tickets_.end()) continue;
    const Ticket ticket = found->second;
    cancel(ticket);
    events.push_back({ticket, {.finished = FinishReason::failed, .error = error}});
  }
}

}  // namespace weft
