#include "server/engine_loop.h"

#include <algorithm>
#include <exception>
#include <unordered_set>

namespace weft {
namespace {

// One is handled while the next step runs.
constexpr int kMostUndelivered = 2;

}  // namespace

void EngineLoop::submit(std::vector<Sequence> sequences) {
  {
    const std::lock_guard lock(mutex_);
    for (Sequence& sequence : sequences) commands_.push_back({sequence.ticket, std::move(sequence)});
  }
  changed_.notify_one();
}

void EngineLoop::cancel(std::vector<Ticket> tickets) {
  {
    const std::lock_guard lock(mutex_);
    for (const Ticket ticket : tickets) commands_.push_back({ticket, std::nullopt});
  }
  changed_.notify_one();
}

void EngineLoop::stop() {
  {
    const std::lock_guard lock(mutex_);
    is_stopped_ = true;
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
  while (take_commands()) {
    StepReport report;
    report.begin = report.end = now_();
    admit(report.events);
    if (!engine_.is_idle()) step(report);
    load_ = waiting_.size() + running_.size();
    report.statistics = engine_.statistics();
    report.statistics.waiting += std::ssize(waiting_);
    {
      const std::lock_guard lock(mutex_);
      ++undelivered_;
    }
    deliver_(std::move(report));
  }
  for (const auto& [ticket, request] : running_) engine_.cancel(request);
}

// Waits for commands while there is nothing to do. Returns false after stop().
bool EngineLoop::take_commands() {
  std::vector<Command> commands;
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] {
      const bool has_work = !commands_.empty() || !waiting_.empty() || !engine_.is_idle();
      return is_stopped_ || (has_work && undelivered_ < kMostUndelivered);
    });
    if (is_stopped_) return false;
    commands.swap(commands_);
  }
  std::unordered_set<Ticket> cancelled;
  for (Command& command : commands) {
    if (command.added) {
      waiting_.push_back(std::move(*command.added));
    } else {
      cancelled.insert(command.ticket);
    }
  }
  if (!cancelled.empty())
    std::erase_if(waiting_, [&](const Sequence& sequence) { return cancelled.contains(sequence.ticket); });
  for (const Ticket ticket : cancelled) {
    const auto found = running_.find(ticket);
    if (found == running_.end()) continue;
    engine_.cancel(found->second);
    tickets_.erase(found->second);
    running_.erase(found);
  }
  load_ = waiting_.size() + running_.size();
  return true;
}

void EngineLoop::admit(std::vector<SequenceEvent>& events) {
  const auto most = static_cast<std::size_t>(engine_.context().options.max_num_seqs);
  while (!waiting_.empty() && running_.size() < most) {
    const Sequence sequence = std::move(waiting_.front());
    waiting_.pop_front();
    SamplingParameters parameters = *sequence.parameters;
    parameters.seed = sequence.seed;
    try {
      const int request = engine_.add(*sequence.prompt, std::move(parameters));
      running_.emplace(sequence.ticket, request);
      tickets_.emplace(request, sequence.ticket);
    } catch (const std::exception& error) {
      events.push_back({sequence.ticket, {.finished = FinishReason::failed, .error = error.what()}});
    }
  }
}

void EngineLoop::step(StepReport& report) {
  try {
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
      running_.erase(found->second);
      tickets_.erase(found);
    }
  } catch (const std::exception& error) {
    // The next step would fail in the same way, as all requests are unchanged.
    report.end = now_();
    fail_all(error.what(), report.events);
  }
}

void EngineLoop::fail_all(const std::string& error, std::vector<SequenceEvent>& events) {
  for (const auto& [ticket, request] : running_) {
    engine_.cancel(request);
    events.push_back({ticket, {.finished = FinishReason::failed, .error = error}});
  }
  running_.clear();
  tickets_.clear();
}

}  // namespace weft
