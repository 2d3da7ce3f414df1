#include "engine/schedule/prompt_pace.h"

#include <algorithm>
#include <cmath>

namespace weft {
namespace {

// What a step with prompts counts after the next one; about 50 steps count.
constexpr double kKept = 0.98;
// A step has at most this many times the rows of the one before, as the fit may be wrong at positions that were not
// seen.
constexpr std::int64_t kMostGrowth = 2;

double sum_of_positions(std::int64_t position, std::int64_t rows) {
  return static_cast<double>(rows) * (static_cast<double>(position) + static_cast<double>(rows - 1) / 2);
}

}  // namespace

void PromptPace::begin(std::int64_t decoding, std::int64_t short_prompts) {
  decodes_ = decoding > 0;
  is_limited_ = is_on_ && decodes_ && short_prompts <= decoding;
  rows_ = positions_ = 0;
  if (!is_limited_) return;
  const bool is_known = decode_seconds_ > 0 && mixed_ < kMostMixed;
  rows_left_ = !is_known ? 0 : last_rows_ == 0 ? kFirstRows : kMostGrowth * last_rows_;
  seconds_left_ = (kMostRatio - 1) * decode_seconds_;
}

// Solves rows * a + (rows * position + rows^2 / 2) * b = seconds.
std::int64_t PromptPace::most_rows(std::int64_t position, bool leaves_half) const {
  if (!is_limited_) return INT64_MAX;
  if (rows_left_ <= 0) return 0;
  const std::int64_t part = leaves_half ? 2 : 1;
  const double seconds = std::max(seconds_left_, 0.0) / static_cast<double>(part);
  const double linear = row_seconds_ + static_cast<double>(position) * position_seconds_;
  const double root = std::sqrt(linear * linear + 2 * position_seconds_ * seconds);
  const double rows = linear + root > 0 ? 2 * seconds / (linear + root) : static_cast<double>(rows_left_);
  const std::int64_t most = (rows_left_ + part - 1) / part;
  // A number that is whole but for rounding is that number.
  const auto whole = static_cast<std::int64_t>(std::min(rows + 0.01, static_cast<double>(most)));
  return std::clamp<std::int64_t>(whole, 1, most);
}

void PromptPace::add(std::int64_t position, std::int64_t rows) {
  const double positions = sum_of_positions(position, rows);
  rows_ += static_cast<double>(rows);
  positions_ += positions;
  rows_left_ -= rows;
  seconds_left_ -= seconds_of(static_cast<double>(rows), positions);
  if (seconds_left_ <= 0) rows_left_ = 0;
}

void PromptPace::observe(double seconds) {
  if (!is_on_ || !decodes_) return;
  if (rows_ == 0) {
    decode_seconds_ = decode_seconds_ == 0 ? seconds : (decode_seconds_ + seconds) / 2;
    mixed_ = 0;
    return;
  }
  ++mixed_;
  last_rows_ = static_cast<std::int64_t>(rows_);
  // A step without a limit may come before any that only decodes.
  if (decode_seconds_ > 0) fit(std::max(seconds - decode_seconds_, 0.0));
}

void PromptPace::fit(double seconds) {
  for (double* sum : {&rows_rows_, &rows_positions_, &positions_positions_, &rows_seconds_, &positions_seconds_})
    *sum *= kKept;
  rows_rows_ += rows_ * rows_;
  rows_positions_ += rows_ * positions_;
  positions_positions_ += positions_ * positions_;
  rows_seconds_ += rows_ * seconds;
  positions_seconds_ += positions_ * seconds;
  const double determinant = rows_rows_ * positions_positions_ - rows_positions_ * rows_positions_;
  // Of steps with nearly the same positions only the sum of both parts is known.
  const bool is_solvable = determinant > 1e-9 * rows_rows_ * positions_positions_;
  row_seconds_ = position_seconds_ = -1;
  if (is_solvable) {
    row_seconds_ = (rows_seconds_ * positions_positions_ - positions_seconds_ * rows_positions_) / determinant;
    position_seconds_ = (positions_seconds_ * rows_rows_ - rows_seconds_ * rows_positions_) / determinant;
  }
  if (position_seconds_ < 0) {
    position_seconds_ = 0;
    row_seconds_ = rows_seconds_ / rows_rows_;
  } else if (row_seconds_ < 0) {
    row_seconds_ = 0;
    position_seconds_ = positions_seconds_ / positions_positions_;
  }
}

}  // namespace weft
