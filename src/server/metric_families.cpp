#include "server/metric_families.h"

#include <cmath>

#include <fmt/format.h>

#include "base/text.h"

namespace weft {
namespace {

using enum MetricType;
using V = MetricValues;
constexpr auto kModel = MetricScope::model;
constexpr auto kProcess = MetricScope::process;

constexpr MetricFamily kFamilies[] = {
    {"num_requests_running", gauge, kModel, "Sequences that hold KV pages.", &V::running},
    {"num_requests_waiting", gauge, kModel, "Sequences that wait to be scheduled.", &V::waiting},
    {"num_requests_waiting_by_reason", gauge, kModel, "Sequences that wait, by what they wait for.",
     &V::waiting_by_reason, Buckets::none, "reason", "capacity deferred"},
    {"kv_cache_usage_perc", gauge, kModel, "Share of the KV pages that sequences hold; 1 is all.", &V::page_usage},
    {"engine_sleep_state", gauge, kModel, "1 for the state of the engine.", &V::sleep_state, Buckets::none,
     "sleep_state", "awake weights_offloaded discard_all"},
    {"cache_config_info", gauge, MetricScope::engine, "The configuration of the KV pages, as labels.",
     &V::cache_config},

    {"prompt_tokens_total", counter, kModel, "Prompt tokens of sequences that have a first token.", &V::prompt_tokens},
    {"prompt_tokens_by_source_total", counter, kModel, "The same by where their keys and values came from.",
     &V::prompt_tokens_by_source, Buckets::none, "source", "local_compute local_cache_hit external_kv_transfer"},
    {"prompt_tokens_cached_total", counter, kModel, "Those whose keys and values were not computed.",
     &V::cached_prompt_tokens},
    {"prompt_tokens_cached_by_source_total", counter, kModel, "The same by where they were.",
     &V::cached_prompt_tokens_by_source, Buckets::none, "source", "device host p2p disk external_unspecified"},
    {"generation_tokens_total", counter, kModel, "Generated tokens.", &V::generation_tokens},
    {"prefix_cache_queries_total", counter, kModel, "Prompt tokens that were looked up in the prefix cache.",
     &V::prefix_queries},
    {"prefix_cache_hits_total", counter, kModel, "Prompt tokens that were found in the prefix cache.", &V::prefix_hits},
    {"spec_decode_num_draft_tokens_total", counter, kModel, "Tokens that speculative decoding proposed.",
     &V::proposed_tokens},
    {"spec_decode_num_accepted_tokens_total", counter, kModel, "Of these, tokens that became part of an answer.",
     &V::kept_tokens},
    {"num_preemptions_total", counter, kModel, "Sequences that lost their KV pages and started over.", &V::preemptions},
    {"request_success_total", counter, kModel, "Finished sequences.", &V::finished, Buckets::none, "finished_reason",
     "stop length abort error repetition"},
    {"admission_rejections_total", counter, MetricScope::model_name, "Requests that were refused for a full queue.",
     &V::rejections, Buckets::none, "reason", "max_num_queued_reqs max_num_queued_tokens"},
    {"tool_call_parser_invocations_total", counter, kModel, "Answers that were searched for tool calls.",
     &V::tool_parser_calls},

    {"time_to_first_token_seconds", histogram, kModel, "From the request's arrival to the first token.",
     &V::first_token_time, Buckets::first},
    {"inter_token_latency_seconds", histogram, kModel, "Between two tokens of a sequence.", &V::inter_token_time,
     Buckets::between},
    {"request_time_per_output_token_seconds", histogram, kModel, "Mean time of a sequence's tokens after the first.",
     &V::time_per_token, Buckets::between},
    {"e2e_request_latency_seconds", histogram, kModel, "From the request's arrival to its end.", &V::total_time,
     Buckets::latency},
    {"request_queue_time_seconds", histogram, kModel, "From the request's arrival to its first step.", &V::queue_time,
     Buckets::latency},
    {"request_inference_time_seconds", histogram, kModel, "From the first step to the last token.", &V::inference_time,
     Buckets::latency},
    {"request_prefill_time_seconds", histogram, kModel, "From the first step to the first token.", &V::prefill_time,
     Buckets::latency},
    {"request_decode_time_seconds", histogram, kModel, "From the first token to the last one.", &V::decode_time,
     Buckets::latency},
    {"request_prompt_tokens", histogram, kModel, "Prompt tokens of a sequence.", &V::request_prompt_tokens,
     Buckets::tokens},
    {"request_generation_tokens", histogram, kModel, "Generated tokens of a sequence.", &V::request_generation_tokens,
     Buckets::tokens},
    {"request_max_num_generation_tokens", histogram, kModel, "The same: each choice counts as a request of its own.",
     &V::request_generation_tokens, Buckets::tokens},
    {"request_params_max_tokens", histogram, kModel, "Most tokens that a sequence may have.", &V::request_max_tokens,
     Buckets::tokens},
    {"request_prefill_kv_computed_tokens", histogram, kModel,
     "Prompt tokens of a sequence whose keys and values were computed.", &V::request_computed_tokens, Buckets::tokens},
    {"iteration_tokens_total", histogram, kModel, "Tokens that a step of the engine computes.", &V::iteration_tokens,
     Buckets::iteration},
    {"request_params_n", histogram, kModel, "Choices that a request asks for.", &V::request_choices, Buckets::choices},
    {"request_num_preemptions", histogram, kModel, "How often a sequence lost its KV pages.", &V::request_preemptions,
     Buckets::preemptions},

    {"http_requests_total", counter, kProcess, "HTTP requests by path, method and class of status.", &V::http_requests,
     Buckets::none, "handler method status"},
    {"http_request_duration_seconds", histogram, kProcess, "From a request's head to the end of its response.",
     &V::http_times, Buckets::http, "handler method"},
    {"process_virtual_memory_bytes", gauge, kProcess, "Virtual memory size in bytes.", &V::virtual_bytes},
    {"process_resident_memory_bytes", gauge, kProcess, "Resident memory size in bytes.", &V::resident_bytes},
    {"process_start_time_seconds", gauge, kProcess, "Start time of the process since unix epoch in seconds.",
     &V::start_time},
    {"process_cpu_seconds_total", counter, kProcess, "Total user and system CPU time spent in seconds.",
     &V::cpu_seconds},
    {"process_open_fds", gauge, kProcess, "Number of open file descriptors.", &V::open_files},
    {"process_max_fds", gauge, kProcess, "Maximum number of open file descriptors.", &V::max_files},
};

constexpr const char* kTypes[] = {"gauge", "counter", "histogram"};

// As Prometheus' Python library writes them, so that a whole number has ".0".
std::string number_text(double value) {
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

std::string escaped(std::string_view text) {
  return replace_all(replace_all(replace_all(text, "\\", "\\\\"), "\"", "\\\""), "\n", "\\n");
}

std::string label(std::string_view name, std::string_view value) {
  return fmt::format("{}=\"{}\"", name, escaped(value));
}

class FamilyWriter {
 public:
  FamilyWriter(const MetricFamily& family, const MetricLabels& labels, std::string& out)
      : family_(family), out_(out), labels_(split_text(family.labels, ' ')) {
    const MetricScope scope = family.scope;
    name_ = (scope == MetricScope::process ? "" : labels.prefix) + std::string(family.name);
    if (scope == MetricScope::model || scope == MetricScope::engine) base_.push_back(label("engine", "0"));
    if (scope == MetricScope::model || scope == MetricScope::model_name)
      base_.push_back(label("model_name", labels.model_name));
    out_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name_, family.help, name_,
                        kTypes[static_cast<std::size_t>(family.type)]);
  }

  void write(double value) { sample("", base_, value); }
  void write(const LabeledValues& values) {
    const std::vector<std::string> names = split_text(family_.label_values, ' ');
    for (std::size_t i = 0; i < names.size(); ++i) sample("", with({names[i]}), values[i]);
  }
  void write(const Histogram& histogram) { write(histogram, base_); }
  void write(const CountsByLabels& counts) {
    for (const auto& [values, count] : counts) sample("", with(values), count);
  }
  void write(const HistogramsByLabels& histograms) {
    for (const auto& [values, histogram] : histograms) write(histogram, with(values));
  }
  void write(const InfoLabels& info) {
    std::vector<std::string> all = base_;
    for (const auto& [name, value] : info) all.push_back(label(name, value));
    sample("", all, 1);
  }

 private:
  std::vector<std::string> with(const LabelValues& values) const {
    std::vector<std::string> all = base_;
    for (std::size_t i = 0; i < values.size(); ++i) all.push_back(label(labels_[i], values[i]));
    return all;
  }

  void write(const Histogram& histogram, const std::vector<std::string>& labels) {
    double below = 0;
    for (std::size_t i = 0; i < histogram.counts().size(); ++i) {
      below += static_cast<double>(histogram.counts()[i]);
      const bool is_last = i == histogram.bounds().size();
      std::vector<std::string> all = labels;
      all.push_back(label("le", is_last ? "+Inf" : number_text(histogram.bounds()[i])));
      sample("_bucket", all, below);
    }
    sample("_count", labels, below);
    sample("_sum", labels, histogram.sum());
  }

  void sample(std::string_view suffix, const std::vector<std::string>& labels, double value) {
    out_ += name_;
    out_ += suffix;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      out_ += i == 0 ? '{' : ',';
      out_ += labels[i];
    }
    out_ += labels.empty() ? " " : "} ";
    out_ += number_text(value) + "\n";
  }

  const MetricFamily& family_;
  std::string& out_;
  std::vector<std::string> labels_, base_;
  std::string name_;
};

// 1, 2, 5, 10, 20, 50, ... up to `most`.
std::vector<double> token_bounds(std::int64_t most) {
  std::vector<double> bounds;
  for (std::int64_t power = 1; power <= most; power *= 10)
    for (const std::int64_t digit : {1, 2, 5})
      if (digit * power <= most) bounds.push_back(static_cast<double>(digit * power));
  return bounds;
}

}  // namespace

std::span<const MetricFamily> metric_families() { return kFamilies; }

std::vector<double> bucket_bounds(Buckets buckets, std::int64_t max_model_len) {
  switch (buckets) {
    case Buckets::none:
      return {};
    case Buckets::latency:
      return {0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680};
    case Buckets::first:
      return {0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75,
              1,     2.5,   5,    7.5,  10,   20,   40,   80,  160,  640, 2560};
    case Buckets::between:
      return {0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80};
    case Buckets::iteration:
      return {1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384};
    case Buckets::tokens:
      return token_bounds(max_model_len);
    case Buckets::choices:
      return {1, 2, 5, 10, 20};
    case Buckets::preemptions:
      return {1, 2, 3, 4, 5, 10, 20};
    case Buckets::http:
      return {0.1, 0.5, 1};
  }
  return {};
}

MetricValues make_metric_values(std::int64_t max_model_len) {
  MetricValues values;
  for (const MetricFamily& family : kFamilies)
    if (const auto* member = std::get_if<Histogram MetricValues::*>(&family.source))
      values.*(*member) = Histogram(bucket_bounds(family.buckets, max_model_len));
  return values;
}

std::string metrics_text(const MetricValues& values, const MetricLabels& labels) {
  std::string text;
  for (const MetricFamily& family : kFamilies) {
    FamilyWriter writer(family, labels, text);
    std::visit([&](const auto member) { writer.write(values.*member); }, family.source);
  }
  return text;
}

}  // namespace weft
