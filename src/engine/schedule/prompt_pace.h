#pragma once

// How many tokens of prompts a step may compute while other sequences decode. A step with many of them delays the next
// token of every stream, so a step in which sequences decode is to take at most kMostRatio times as long as one that
// only decodes. Steps are measured for that: the time of a prompt's token depends on the machine, on the model, and on
// the tokens before it, which attention reads.
//
// There is no limit while more sequences wait for the end of a short prompt than decode, as after a burst of requests.
// With the limit the few that decode would take most of the time of many steps, and the many would wait for all of
// these.
//
// The time that the tokens of prompts add to a step is fitted as `tokens * a + positions * b`, by least squares over
// the recent steps. After kMostMixed steps with prompts one step only decodes, so that its time is known again.
//
// This has no clock, and no result depends on it: a row has the same bits in every step.

#include <cstdint>

namespace weft {

class PromptPace {
 public:
  static constexpr double kMostRatio = 2.5;
  static constexpr int kMostMixed = 16;
  static constexpr std::int64_t kFirstRows = 16;  // of a step, before any was measured

  // Without a call there is no limit.
  void turn_on() { is_on_ = true; }
  bool is_on() const { return is_on_; }

  // Begins a step in which `decoding` sequences decode and `short_prompts` could be computed. A prompt is short if it
  // fits into one step.
  void begin(std::int64_t decoding, std::int64_t short_prompts = 0);
  // Most rows that a prompt may add from `position` on: all that the step has room for, or half of it, if other prompts
  // come after this one in the step. At least one, until has_room() is false.
  std::int64_t most_rows(std::int64_t position, bool leaves_half) const;
  void add(std::int64_t position, std::int64_t rows);
  bool has_room() const { return !is_limited_ || rows_left_ > 0; }
  // The step, as it was filled, took this time.
  void observe(double seconds);

 private:
  double seconds_of(double rows, double positions) const { return rows * row_seconds_ + positions * position_seconds_; }
  void fit(double seconds);

  bool is_on_ = false;
  double decode_seconds_ = 0;  // of a step that only decodes; 0 before the first one
  double row_seconds_ = 0, position_seconds_ = 0;
  // Sums over the recent steps with prompts, of products of rows, positions and seconds.
  double rows_rows_ = 0, rows_positions_ = 0, positions_positions_ = 0, rows_seconds_ = 0, positions_seconds_ = 0;
  std::int64_t last_rows_ = 0;  // of prompts, in the last step with prompts
  int mixed_ = 0;               // steps with prompts since the last that only decoded

  // Of the current step.
  bool decodes_ = false, is_limited_ = false;
  std::int64_t rows_left_ = 0;
  double seconds_left_ = 0;
  double rows_ = 0, positions_ = 0;
};

}  // namespace weft
