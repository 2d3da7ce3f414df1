#pragma once

// What `weft bench serve` measured, as vLLM's report and JSON: the same lines, keys, order and definitions.

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"

namespace weft {

// One request. Times are seconds; `start` is counted from the begin of the benchmark.
struct ServeOutcome {
  bool is_success = false;
  std::int64_t prompt_tokens = 0, output_tokens = 0;
  double start = 0;          // when it was sent
  double queue_time = 0;     // for which it waited for --max-concurrency
  double first_token = 0;    // from `start` to the first event with choices
  double latency = 0;        // from `start` to the last event with choices
  std::vector<double> gaps;  // between events with choices
  std::string text;
  std::string error;
};

struct ServeReportSettings {
  std::string endpoint_type, label, model, tokenizer;
  std::vector<std::pair<std::string, std::string>> metadata;
  std::size_t requests = 0;
  std::optional<double> request_rate;  // nullopt: all at once
  double burstiness = 1;
  std::optional<std::int64_t> max_concurrency;
  std::vector<std::string> metrics;  // of ttft, tpot, itl, e2el
  std::vector<double> percents;
  std::vector<std::pair<std::string, double>> goodput;  // a metric (ttft, tpot or e2el) and its most milliseconds
  bool is_detailed = false;
};

class ServeResults {
 public:
  ServeResults(ServeReportSettings settings, std::vector<ServeOutcome> outcomes, double duration);

  void print(std::ostream& out) const;
  // `date` is YYYYMMDD-HHMMSS.
  Json json(const std::string& date) const;
  std::size_t failed() const { return outcomes_.size() - completed_; }

 private:
  struct Metric {
    std::string name, title, short_title;
    std::vector<double> milliseconds;
  };

  void add_metric(const std::string& name);
  void add_peaks();
  std::size_t count_good() const;
  Json details() const;

  ServeReportSettings settings_;
  std::vector<ServeOutcome> outcomes_;
  double duration_;
  std::size_t completed_ = 0;
  std::int64_t input_ = 0, output_ = 0;
  double peak_tokens_ = 0;
  std::size_t peak_requests_ = 0;
  std::vector<Metric> metrics_;
};

}  // namespace weft
