#pragma once

// Each sequence from its arrival to its end: its times and tokens, which become metrics. It lives on the I/O thread.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "server/engine_loop.h"
#include "server/metric_values.h"
#include "server/running_request.h"

namespace weft {

struct SequenceStart {
  MonotonicClock::time_point arrival;  // of the head of its request
  std::int64_t prompt_tokens = 0;
  std::int64_t max_tokens = 0;
  std::shared_ptr<const SamplingParameters> parameters = nullptr;
};

// A sequence that is not over.
struct OpenSequence {
  Ticket ticket = 0;
  std::int64_t tokens = 0;  // generated
  std::shared_ptr<const SamplingParameters> parameters;
};

class SequenceRecords {
 public:
  // `values` outlives this object.
  explicit SequenceRecords(MetricValues& values) : values_(values) {}

  void add(Ticket ticket, const SequenceStart& start);
  void take(const StepReport& report);
  // The sequences that are still open end now, as aborted.
  void abort(std::span<const Ticket> tickets, MonotonicClock::time_point now);

  // The times of a sequence that the last report ended; nullptr for others.
  const SequenceTimes* ended(Ticket ticket) const;

  // Sequences that are not over.
  std::size_t open() const { return open_.size(); }
  std::vector<OpenSequence> open_sequences() const;  // in the order of their tickets
  // Their prompt tokens; those of a sequence count until its first token.
  std::int64_t queued_tokens() const { return queued_tokens_; }

 private:
  struct Record {
    SequenceStart start;
    std::optional<MonotonicClock::time_point> scheduled, first_token;
    MonotonicClock::time_point last_token;
    std::int64_t cached_tokens = 0, tokens = 0, preemptions = 0;
  };

  void take_step(const StepReport& report);
  void take_result(Record& record, bool is_token, MonotonicClock::time_point now);
  void finish(Ticket ticket, FinishedReason reason, MonotonicClock::time_point now);

  MetricValues& values_;
  std::unordered_map<Ticket, Record> open_;
  std::unordered_map<Ticket, SequenceTimes> ended_;  // by the last report
  std::int64_t queued_tokens_ = 0;
};

}  // namespace weft
