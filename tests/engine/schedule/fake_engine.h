#pragma once

// The scheduler alone: a fake runner computes a step at once, and each new token is the number of tokens before it. A
// page has the tokens that were computed in it, so that each step shows whether its pages have what it goes on from.

#include <algorithm>
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "engine/schedule/scheduler.h"

namespace weft::scheduler_test {

using Rows = std::vector<std::pair<int, std::int64_t>>;  // sequences by number, with their rows

class FakeEngine {
 public:
  FakeEngine(SchedulerSettings settings, std::int64_t pages, bool has_checkpoints = false)
      : block_(settings.block), contents_(static_cast<std::size_t>(pages)) {
    if (has_checkpoints) settings.copy_page = [this](std::int32_t from, std::int32_t to) { at(to) = at(from); };
    scheduler_ = Scheduler(std::move(settings), pages);
  }

  int add(std::vector<int> prompt, std::int64_t tokens, std::int64_t priority = 0) {
    const int number = next_++;
    Sequence& added = sequences_[number];
    added.number = number;
    added.wanted = tokens;
    added.prompt_ids = std::make_shared<const std::vector<int>>(std::move(prompt));
    added.prompt = *added.prompt_ids;
    added.priority = priority;
    scheduler_.add(added);
    return number;
  }
  void remove(int number) {
    scheduler_.remove(sequences_.at(number));
    sequences_.erase(number);
  }
  ScheduledSequence& sequence(int number) { return sequences_.at(number); }
  bool has(int number) const { return sequences_.contains(number); }
  bool is_idle() const { return sequences_.empty(); }
  Scheduler& scheduler() { return scheduler_; }
  EngineStatistics statistics() const { return scheduler_.statistics(); }

  // Runs a step; sequences end with their last token.
  Rows step() {
    Rows rows;
    std::vector<int> ended;
    for (const Chunk& chunk : scheduler_.schedule()) {
      auto& one = static_cast<Sequence&>(*chunk.sequence);
      rows.emplace_back(one.number, chunk.rows);
      check_content(one);
      for (std::int64_t row = 0; row < chunk.rows; ++row) compute(one);
      scheduler_.publish(one);
      if (one.computed < one.token_count()) continue;
      one.output.push_back(static_cast<int>(one.token_count()));
      if (std::ssize(one.output) < one.wanted) continue;
      scheduler_.publish_end(one);
      ended.push_back(one.number);
    }
    for (const int number : ended) remove(number);
    // A step takes as many seconds as it has rows.
    double seconds = 0;
    for (const auto& [number, count] : rows) seconds += static_cast<double>(count);
    scheduler_.observe(seconds);
    return rows;
  }

 private:
  struct Sequence : ScheduledSequence {
    int number = 0;
    std::int64_t wanted = 0;
  };

  std::vector<int>& at(std::int32_t page) { return contents_[static_cast<std::size_t>(page)]; }

  std::vector<int>& content(const ScheduledSequence& sequence, std::int64_t position) {
    return at(sequence.pages[static_cast<std::size_t>(position / block_)]);
  }

  void compute(ScheduledSequence& sequence) {
    std::vector<int>& block = content(sequence, sequence.computed);
    if (sequence.computed % block_ == 0) block.clear();
    block.push_back(sequence.token(sequence.computed++));
  }

  // Whether the pages have the tokens that are said to be computed.
  void check_content(const Sequence& sequence) {
    for (std::int64_t begin = 0; begin < sequence.computed; begin += block_) {
      std::vector<int> wanted;
      for (std::int64_t i = begin; i < std::min(begin + block_, sequence.computed); ++i)
        wanted.push_back(sequence.token(i));
      ASSERT_EQ(content(sequence, begin), wanted) << "sequence " << sequence.number << ", token " << begin;
    }
  }

  std::int64_t block_;
  std::vector<std::vector<int>> contents_;  // of the pages
  Scheduler scheduler_;
  std::map<int, Sequence> sequences_;
  int next_ = 0;
};

inline std::vector<int> prompt_of(int length, int first = 0) {
  std::vector<int> prompt;
  for (int i = 0; i < length; ++i) prompt.push_back(first + i);
  return prompt;
}

}  // namespace weft::scheduler_test
