// Times and tokens of sequences as metrics, from reports with times of the test.

#include "server/sequence_records.h"

#include <gtest/gtest.h>

#include "server/metric_families.h"

namespace weft::sequence_records_test {

MonotonicClock::time_point at(double seconds) {
  return MonotonicClock::time_point(
      std::chrono::duration_cast<MonotonicClock::duration>(std::chrono::duration<double>(100 + seconds)));
}

double count(const Histogram& histogram) {
  double sum = 0;
  for (const std::uint64_t bucket : histogram.counts()) sum += static_cast<double>(bucket);
  return sum;
}

StepReport step(double begin, double end) {
  StepReport report;
  report.has_step = true;
  report.begin = at(begin);
  report.end = at(end);
  return report;
}

SequenceEvent token(Ticket ticket, FinishReason finished = FinishReason::none) {
  return {ticket, {.token = 1, .finished = finished}};
}

TEST(SequenceRecords, MeasureFromArrivalToTheLastToken) {
  MetricValues values = make_metric_values(1000);
  SequenceRecords records(values);
  records.add(7, {.arrival = at(0), .prompt_tokens = 10, .max_tokens = 3});
  EXPECT_EQ(records.open(), 1U);
  EXPECT_EQ(records.queued_tokens(), 10);
  StepReport first = step(1, 2);  // a part of the prompt
  first.scheduled.push_back({7, 4});
  first.statistics = {.running = 1, .waiting = 2, .pages_used = 3, .pages = 12, .rows = 6, .preemptions = 1};
  records.take(first);
  EXPECT_EQ(values.running, 1);
  EXPECT_EQ(values.waiting, 2);
  EXPECT_EQ(values.page_usage, 0.25);
  EXPECT_EQ(values.iteration_tokens.sum(), 6);
  EXPECT_EQ(values.prompt_tokens, 0);
  StepReport second = step(2, 4);
  second.events = {token(7)};
  records.take(second);
  EXPECT_EQ(records.queued_tokens(), 0);
  EXPECT_EQ(values.prompt_tokens, 10);
  EXPECT_EQ(values.prompt_tokens_by_source[0], 6);
  EXPECT_EQ(values.prompt_tokens_by_source[1], 4);
  EXPECT_EQ(values.cached_prompt_tokens, 4);
  EXPECT_DOUBLE_EQ(values.first_token_time.sum(), 4);
  StepReport third = step(4, 5);
  third.preempted = {7};
  records.take(third);
  StepReport fourth = step(5, 7);
  fourth.events = {token(7)};
  records.take(fourth);
  StepReport last = step(7, 8);
  last.events = {token(7, FinishReason::length)};
  records.take(last);
  EXPECT_EQ(records.open(), 0U);
  EXPECT_EQ(values.generation_tokens, 3);
  EXPECT_EQ(values.prompt_tokens, 10) << "a prompt that is computed again counts once";
  EXPECT_DOUBLE_EQ(values.inter_token_time.sum(), 4);
  EXPECT_EQ(count(values.inter_token_time), 2);
  EXPECT_DOUBLE_EQ(values.queue_time.sum(), 1);
  EXPECT_DOUBLE_EQ(values.prefill_time.sum(), 3);
  EXPECT_DOUBLE_EQ(values.decode_time.sum(), 4);
  EXPECT_DOUBLE_EQ(values.inference_time.sum(), 7);
  EXPECT_DOUBLE_EQ(values.total_time.sum(), 8);
  EXPECT_DOUBLE_EQ(values.time_per_token.sum(), 2);
  EXPECT_EQ(values.request_preemptions.sum(), 1);
  EXPECT_EQ(values.request_computed_tokens.sum(), 6);
  EXPECT_EQ(values.request_max_tokens.sum(), 3);
  EXPECT_EQ(values.finished[static_cast<std::size_t>(FinishedReason::length)], 1);
}

TEST(SequenceRecords, CountEachEndOnce) {
  MetricValues values = make_metric_values(1000);
  SequenceRecords records(values);
  for (Ticket ticket = 0; ticket < 4; ++ticket) records.add(ticket, {.arrival = at(0), .prompt_tokens = 5});
  StepReport report = step(0, 1);
  report.events = {token(0, FinishReason::stop), {1, {.finished = FinishReason::failed, .error = "no"}}, token(2)};
  records.take(report);
  const Ticket open[] = {0, 1, 2, 3};
  records.abort(open, at(2));
  EXPECT_EQ(values.finished[static_cast<std::size_t>(FinishedReason::stop)], 1);
  EXPECT_EQ(values.finished[static_cast<std::size_t>(FinishedReason::error)], 1);
  EXPECT_EQ(values.finished[static_cast<std::size_t>(FinishedReason::abort)], 2);
  EXPECT_EQ(records.open(), 0U);
  EXPECT_EQ(records.queued_tokens(), 0);
  EXPECT_EQ(values.prompt_tokens, 10) << "of the two that had a token";
  EXPECT_EQ(count(values.total_time), 4);
  EXPECT_EQ(count(values.time_per_token), 0) << "of no sequence with two tokens";
  records.take(report);  // late events of sequences that are over
  EXPECT_EQ(values.generation_tokens, 2);
}

TEST(SequenceRecords, TakeReportsWithoutAStep) {
  MetricValues values = make_metric_values(1000);
  SequenceRecords records(values);
  StepReport report;
  report.statistics = {.running = 0, .waiting = 0, .pages = 5, .rows = 9};
  values.running = 3;
  records.take(report);
  EXPECT_EQ(values.running, 0);
  EXPECT_EQ(count(values.iteration_tokens), 0);
}

}  // namespace weft::sequence_records_test
