#include "server/sequence_records.h"

#include <algorithm>

namespace weft {
namespace {

enum Source : std::size_t { local_compute, local_cache_hit };
constexpr std::size_t kDevice = 0;                   // of the sources of cached tokens
constexpr std::size_t kCapacity = 0, kDeferred = 1;  // the reasons to wait

double seconds(MonotonicClock::time_point from, MonotonicClock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

FinishedReason reason_of(FinishReason finished) {
  switch (finished) {
    case FinishReason::stop:
      return FinishedReason::stop;
    case FinishReason::length:
      return FinishedReason::length;
    default:
      return FinishedReason::error;
  }
}

}  // namespace

void SequenceRecords::add(Ticket ticket, const SequenceStart& start) {
  open_.emplace(ticket, Record{.start = start});
  queued_tokens_ += start.prompt_tokens;
}

const SequenceTimes* SequenceRecords::ended(Ticket ticket) const {
  const auto found = ended_.find(ticket);
  return found == ended_.end() ? nullptr : &found->second;
}

std::vector<OpenSequence> SequenceRecords::open_sequences() const {
  std::vector<OpenSequence> sequences;
  for (const auto& [ticket, record] : open_) sequences.push_back({ticket, record.tokens, record.start.parameters});
  std::sort(sequences.begin(), sequences.end(),
            [](const OpenSequence& a, const OpenSequence& b) { return a.ticket < b.ticket; });
  return sequences;
}

void SequenceRecords::take(const StepReport& report) {
  ended_.clear();
  take_step(report);
  for (const auto& [ticket, cached_tokens] : report.scheduled) {
    const auto found = open_.find(ticket);
    if (found == open_.end()) continue;
    found->second.scheduled = report.begin;
    found->second.cached_tokens = cached_tokens;
  }
  for (const Ticket ticket : report.preempted)
    if (const auto found = open_.find(ticket); found != open_.end()) ++found->second.preemptions;
  for (const auto& [ticket, event] : report.events) {
    const auto found = open_.find(ticket);
    if (found == open_.end()) continue;
    if (event.finished != FinishReason::failed) take_result(found->second, event.token >= 0, report.end);
    if (event.finished != FinishReason::none) finish(ticket, reason_of(event.finished), report.end);
  }
}

void SequenceRecords::take_step(const StepReport& report) {
  const EngineStatistics& now = report.statistics;
  values_.running = static_cast<double>(now.running);
  values_.waiting = static_cast<double>(now.waiting);
  values_.waiting_by_reason[kCapacity] = static_cast<double>(now.waiting - now.deferred);
  values_.waiting_by_reason[kDeferred] = static_cast<double>(now.deferred);
  values_.page_usage = now.pages == 0 ? 0 : static_cast<double>(now.pages_used) / static_cast<double>(now.pages);
  values_.preemptions = static_cast<double>(now.preemptions);
  values_.prefix_queries = static_cast<double>(now.prefix_cache_queries);
  values_.prefix_hits = static_cast<double>(now.prefix_cache_hits);
  values_.proposed_tokens = static_cast<double>(now.proposed_tokens);
  values_.kept_tokens = static_cast<double>(now.kept_tokens);
  if (report.has_step) values_.iteration_tokens.observe(static_cast<double>(now.rows));
}

void SequenceRecords::take_result(Record& record, bool is_token, MonotonicClock::time_point now) {
  if (is_token) {
    ++record.tokens;
    ++values_.generation_tokens;
  }
  if (record.first_token) {
    values_.inter_token_time.observe(seconds(record.last_token, now));
  } else {
    record.first_token = now;
    values_.first_token_time.observe(seconds(record.start.arrival, now));
    queued_tokens_ -= record.start.prompt_tokens;
    const auto prompt = static_cast<double>(record.start.prompt_tokens);
    const auto cached = static_cast<double>(record.cached_tokens);
    values_.prompt_tokens += prompt;
    values_.prompt_tokens_by_source[local_compute] += prompt - cached;
    values_.prompt_tokens_by_source[local_cache_hit] += cached;
    values_.cached_prompt_tokens += cached;
    values_.cached_prompt_tokens_by_source[kDevice] += cached;
  }
  record.last_token = now;
}

void SequenceRecords::finish(Ticket ticket, FinishedReason reason, MonotonicClock::time_point now) {
  const Record record = std::move(open_.extract(ticket).mapped());
  const auto tokens = static_cast<double>(record.tokens);
  ++values_.finished[static_cast<std::size_t>(reason)];
  values_.total_time.observe(seconds(record.start.arrival, now));
  values_.request_prompt_tokens.observe(static_cast<double>(record.start.prompt_tokens));
  values_.request_generation_tokens.observe(tokens);
  values_.request_max_tokens.observe(static_cast<double>(record.start.max_tokens));
  values_.request_preemptions.observe(static_cast<double>(record.preemptions));
  if (record.scheduled) values_.queue_time.observe(seconds(record.start.arrival, *record.scheduled));
  if (!record.first_token) {
    queued_tokens_ -= record.start.prompt_tokens;
    return;
  }
  const double decode = seconds(*record.first_token, record.last_token);
  values_.decode_time.observe(decode);
  values_.request_computed_tokens.observe(static_cast<double>(record.start.prompt_tokens - record.cached_tokens));
  if (record.tokens > 1) values_.time_per_token.observe(decode / (tokens - 1));
  if (!record.scheduled) return;
  ended_[ticket] = {.queue = seconds(record.start.arrival, *record.scheduled),
                    .prefill = seconds(*record.scheduled, *record.first_token),
                    .generation = decode,
                    .tokens = record.tokens};
  values_.prefill_time.observe(seconds(*record.scheduled, *record.first_token));
  values_.inference_time.observe(seconds(*record.scheduled, record.last_token));
}

void SequenceRecords::abort(std::span<const Ticket> tickets, MonotonicClock::time_point now) {
  for (const Ticket ticket : tickets)
    if (open_.contains(ticket)) finish(ticket, FinishedReason::abort, now);
}

}  // namespace weft
