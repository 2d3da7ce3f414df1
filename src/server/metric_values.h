#pragma once

// The values of all metrics of a server. metric_families.cpp has the table that names them. They are of the I/O thread,
// which also writes them as text, so that no lock is held meanwhile.

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace weft {

class Histogram {
 public:
  // `bounds` are the upper bounds of the buckets, inclusive and ascending; one without a bound follows them.
  explicit Histogram(std::vector<double> bounds = {}) : bounds_(std::move(bounds)), counts_(bounds_.size() + 1) {}

  void observe(double value) {
    const auto bucket = std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
    ++counts_[static_cast<std::size_t>(bucket)];
    sum_ += value;
  }
  const std::vector<double>& bounds() const { return bounds_; }
  // The counts of single buckets, not cumulative.
  const std::vector<std::uint64_t>& counts() const { return counts_; }
  double sum() const { return sum_; }

 private:
  std::vector<double> bounds_;
  std::vector<std::uint64_t> counts_;
  double sum_ = 0;
};

// One value for each value of a label, in the order of the table.
using LabeledValues = std::array<double, 5>;
// Samples whose label values are not known before.
using LabelValues = std::vector<std::string>;
using CountsByLabels = std::map<LabelValues, double>;
using HistogramsByLabels = std::map<LabelValues, Histogram>;
// The labels of a metric that is always 1.
using InfoLabels = std::vector<std::pair<std::string, std::string>>;

// Indices into LabeledValues.
enum class FinishedReason : std::size_t { stop, length, abort, error, repetition };
enum class Rejection : std::size_t { sequences, tokens };

struct MetricValues {
  // After the last step of the engine.
  double running = 0, waiting = 0, page_usage = 0;
  LabeledValues waiting_by_reason = {};
  LabeledValues sleep_state = {1};  // awake: the engine never sleeps
  InfoLabels cache_config;
  double preemptions = 0, prefix_queries = 0, prefix_hits = 0, proposed_tokens = 0, kept_tokens = 0;
  Histogram iteration_tokens;

  // Of tokens and sequences.
  double prompt_tokens = 0, cached_prompt_tokens = 0, generation_tokens = 0;
  LabeledValues prompt_tokens_by_source = {}, cached_prompt_tokens_by_source = {};
  LabeledValues finished = {};  // by FinishedReason
  Histogram first_token_time, inter_token_time, time_per_token;
  Histogram total_time, queue_time, inference_time, prefill_time, decode_time;
  Histogram request_prompt_tokens, request_generation_tokens, request_max_tokens;
  Histogram request_computed_tokens, request_choices, request_preemptions;

  // Of HTTP.
  LabeledValues rejections = {};  // by Rejection
  double tool_parser_calls = 0;
  CountsByLabels http_requests;   // handler, method, status
  HistogramsByLabels http_times;  // handler, method

  // Of the process, when they are read.
  double virtual_bytes = 0, resident_bytes = 0, start_time = 0, cpu_seconds = 0, open_files = 0, max_files = 0;
};

}  // namespace weft
