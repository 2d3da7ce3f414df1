#include "apps/cli/bench/serve_results.h"

#include <algorithm>
#include <cmath>
#include <ostream>

#include <fmt/format.h>

#include "apps/cli/bench/numbers.h"
#include "base/error.h"
#include "base/text.h"

namespace weft {
namespace {

// Appends the request's values, in seconds.
using MetricOf = void (*)(const ServeOutcome& outcome, std::vector<double>& values);

struct MetricRow {
  const char* name;
  const char* title;
  const char* short_title;
  MetricOf values;
};

double time_per_token(const ServeOutcome& outcome) {
  return (outcome.latency - outcome.first_token) / static_cast<double>(outcome.output_tokens - 1);
}

constexpr const char* kQueueTime = "client_queue_time";

const MetricRow kMetrics[] = {
    {"ttft", "Time to First Token", "TTFT",
     [](const ServeOutcome& outcome, std::vector<double>& values) { values.push_back(outcome.first_token); }},
    {"tpot", "Time per Output Token (excl. 1st token)", "TPOT",
     [](const ServeOutcome& outcome, std::vector<double>& values) {
       if (outcome.output_tokens > 1) values.push_back(time_per_token(outcome));
     }},
    {"itl", "Inter-token Latency", "ITL",
     [](const ServeOutcome& outcome, std::vector<double>& values) {
       values.insert(values.end(), outcome.gaps.begin(), outcome.gaps.end());
     }},
    {"e2el", "End-to-end Latency", "E2EL",
     [](const ServeOutcome& outcome, std::vector<double>& values) { values.push_back(outcome.latency); }},
    {kQueueTime, "Client Queue Time", "Client Queue Time",
     [](const ServeOutcome& outcome, std::vector<double>& values) { values.push_back(outcome.queue_time); }},
};

const MetricRow& find_metric(const std::string& name) {
  for (const MetricRow& row : kMetrics)
    if (name == row.name) return row;
  fail_user("[--percentile-metrics] must be of ttft, tpot, itl and e2el, but has {}", quote(name));
}

// "99", "99.9"
std::string percent_text(double percent) { return fmt::format("{}", percent); }

template <typename T>
Json listed(const std::vector<ServeOutcome>& outcomes, T ServeOutcome::*member) {
  Json list = Json::array();
  for (const ServeOutcome& outcome : outcomes) list.push_back(outcome.*member);
  return list;
}

std::string line(const std::string& title, double value) { return fmt::format("{:<40} {:<10.2f}\n", title, value); }

template <typename T>
std::string count_line(const std::string& title, T value) {
  return fmt::format("{:<40} {:<10}\n", title, value);
}

}  // namespace

ServeResults::ServeResults(ServeReportSettings settings, std::vector<ServeOutcome> outcomes, double duration)
    : settings_(std::move(settings)), outcomes_(std::move(outcomes)), duration_(duration) {
  for (const ServeOutcome& outcome : outcomes_) {
    if (!outcome.is_success) continue;
    ++completed_;
    input_ += outcome.prompt_tokens;
    output_ += outcome.output_tokens;
  }
  for (const std::string& name : settings_.metrics) add_metric(name);
  const bool has_queue_time =
      std::find(settings_.metrics.begin(), settings_.metrics.end(), kQueueTime) != settings_.metrics.end();
  if (settings_.max_concurrency && !has_queue_time) add_metric(kQueueTime);
  add_peaks();
}

void ServeResults::add_metric(const std::string& name) {
  const MetricRow& row = find_metric(name);
  Metric metric{.name = name, .title = row.title, .short_title = row.short_title, .milliseconds = {}};
  for (const ServeOutcome& outcome : outcomes_)
    if (outcome.is_success) row.values(outcome, metric.milliseconds);
  for (double& value : metric.milliseconds) value *= 1000;
  metrics_.push_back(std::move(metric));
}

// Most events in one second, and most requests that have a part in one second, seconds counted from the first request.
void ServeResults::add_peaks() {
  double begin = 1e300;
  for (const ServeOutcome& outcome : outcomes_)
    if (outcome.is_success) begin = std::min(begin, outcome.start);
  std::vector<std::pair<double, std::size_t>> seconds;
  const auto at = [&](double time) -> std::pair<double, std::size_t>& {
    const auto second = static_cast<std::size_t>(std::max(0.0, time - begin));
    if (seconds.size() <= second) seconds.resize(second + 1);
    return seconds[second];
  };
  for (const ServeOutcome& outcome : outcomes_) {
    if (!outcome.is_success) continue;
    double time = outcome.start + outcome.first_token;
    at(time).first += 1;
    for (const double gap : outcome.gaps) at(time += gap).first += 1;
    const double end = outcome.start + outcome.latency;
    at(end);
    for (auto second = static_cast<std::size_t>(outcome.start - begin); second <= static_cast<std::size_t>(end - begin);
         ++second)
      ++seconds[second].second;
  }
  for (const auto& [tokens, requests] : seconds) {
    peak_tokens_ = std::max(peak_tokens_, tokens);
    peak_requests_ = std::max(peak_requests_, requests);
  }
}

// A request is good if it keeps all limits; one of a single token has no time per token to keep.
std::size_t ServeResults::count_good() const {
  return static_cast<std::size_t>(std::count_if(outcomes_.begin(), outcomes_.end(), [&](const ServeOutcome& outcome) {
    return outcome.is_success &&
           std::all_of(settings_.goodput.begin(), settings_.goodput.end(), [&](const auto& limit) {
             std::vector<double> values;
             find_metric(limit.first).values(outcome, values);
             return values.empty() || values[0] * 1000 <= limit.second;
           });
  }));
}

void ServeResults::print(std::ostream& out) const {
  out << fmt::format("{:=^50}\n", " Serving Benchmark Result ");
  out << count_line("Successful requests:", completed_) << count_line("Failed requests:", failed());
  if (settings_.max_concurrency) out << count_line("Maximum request concurrency:", *settings_.max_concurrency);
  if (settings_.request_rate) out << line("Request rate configured (RPS):", *settings_.request_rate);
  out << line("Benchmark duration (s):", duration_) << count_line("Total input tokens:", input_)
      << count_line("Total generated tokens:", output_)
      << line("Request throughput (req/s):", static_cast<double>(completed_) / duration_);
  if (!settings_.goodput.empty())
    out << line("Request goodput (req/s):", static_cast<double>(count_good()) / duration_);
  out << line("Output token throughput (tok/s):", static_cast<double>(output_) / duration_)
      << line("Peak output token throughput (tok/s):", peak_tokens_)
      << line("Peak concurrent requests:", static_cast<double>(peak_requests_))
      << line("Total token throughput (tok/s):", static_cast<double>(input_ + output_) / duration_);
  for (const Metric& metric : metrics_) {
    out << fmt::format("{:-^50}\n", metric.title);
    out << line("Mean " + metric.short_title + " (ms):", mean(metric.milliseconds))
        << line("Median " + metric.short_title + " (ms):", percentile(metric.milliseconds, 50));
    for (const double percent : settings_.percents)
      out << line("P" + percent_text(percent) + " " + metric.short_title + " (ms):",
                  percentile(metric.milliseconds, percent));
  }
  out << std::string(50, '=') << "\n";
}

Json ServeResults::details() const {
  Json json = Json::object();
  if (settings_.is_detailed) {
    json["input_lens"] = listed(outcomes_, &ServeOutcome::prompt_tokens);
    json["output_lens"] = listed(outcomes_, &ServeOutcome::output_tokens);
    json["ttfts"] = listed(outcomes_, &ServeOutcome::first_token);
    json["itls"] = listed(outcomes_, &ServeOutcome::gaps);
  }
  json["latencies"] = listed(outcomes_, &ServeOutcome::latency);
  if (settings_.is_detailed) json["start_times"] = listed(outcomes_, &ServeOutcome::start);
  json["queue_times"] = listed(outcomes_, &ServeOutcome::queue_time);
  if (settings_.is_detailed) {
    json["generated_texts"] = listed(outcomes_, &ServeOutcome::text);
    json["errors"] = listed(outcomes_, &ServeOutcome::error);
  }
  return json;
}

Json ServeResults::json(const std::string& date) const {
  const auto rate = [&](double count) { return count / duration_; };
  Json json{{"date", date},
            {"endpoint_type", settings_.endpoint_type},
            {"backend", settings_.endpoint_type},
            {"label", settings_.label.empty() ? Json(nullptr) : Json(settings_.label)},
            {"model_id", settings_.model},
            {"tokenizer_id", settings_.tokenizer},
            {"num_prompts", settings_.requests}};
  for (const auto& [key, value] : settings_.metadata) json[key] = value;
  json["request_rate"] = settings_.request_rate ? Json(*settings_.request_rate) : Json("inf");
  json["burstiness"] = settings_.burstiness;
  json["max_concurrency"] = settings_.max_concurrency ? Json(*settings_.max_concurrency) : Json(nullptr);
  json["duration"] = duration_;
  json["completed"] = completed_;
  json["failed"] = failed();
  json["total_input_tokens"] = input_;
  json["total_output_tokens"] = output_;
  json["request_throughput"] = rate(static_cast<double>(completed_));
  json["request_goodput"] = settings_.goodput.empty() ? Json(nullptr) : Json(rate(static_cast<double>(count_good())));
  json["output_throughput"] = rate(static_cast<double>(output_));
  json["total_token_throughput"] = rate(static_cast<double>(input_ + output_));
  json.update(details());
  json["max_output_tokens_per_s"] = peak_tokens_;
  json["max_concurrent_requests"] = peak_requests_;
  json["rtfx"] = 0.0;  // of audio alone
  for (const Metric& metric : metrics_) {
    json["mean_" + metric.name + "_ms"] = mean(metric.milliseconds);
    json["median_" + metric.name + "_ms"] = percentile(metric.milliseconds, 50);
    json["std_" + metric.name + "_ms"] = standard_deviation(metric.milliseconds);
    for (const double percent : settings_.percents)
      json["p" + percent_text(percent) + "_" + metric.name + "_ms"] = percentile(metric.milliseconds, percent);
  }
  return json;
}

}  // namespace weft
