#pragma once

// The table of metrics, and their text for Prometheus: names, labels and buckets are vLLM's.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "server/metric_values.h"

namespace weft {

enum class MetricType { gauge, counter, histogram };

// Which labels every sample of a family has, and whether its name has the prefix.
enum class MetricScope {
  model,       // engine and model_name, with the prefix
  engine,      // engine, with the prefix
  model_name,  // model_name, with the prefix
  process,     // none, without the prefix
};

enum class Buckets { none, latency, first, between, iteration, tokens, choices, preemptions, http };

using MetricSource =
    std::variant<double MetricValues::*, LabeledValues MetricValues::*, Histogram MetricValues::*,
                 CountsByLabels MetricValues::*, HistogramsByLabels MetricValues::*, InfoLabels MetricValues::*>;

struct MetricFamily {
  std::string_view name;
  MetricType type;
  MetricScope scope;
  std::string_view help;
  MetricSource source;
  Buckets buckets = Buckets::none;
  std::string_view labels = {};        // further labels, separated by spaces
  std::string_view label_values = {};  // those of the only label of LabeledValues, separated by spaces
};

std::span<const MetricFamily> metric_families();

// Upper bounds of the buckets. Those of tokens end at the largest that is at most `max_model_len`.
std::vector<double> bucket_bounds(Buckets buckets, std::int64_t max_model_len);

// Values of which all histograms have the buckets of their families.
MetricValues make_metric_values(std::int64_t max_model_len);

struct MetricLabels {
  std::string prefix;  // "vllm:"
  std::string model_name;
};

// Prometheus' text format 0.0.4.
std::string metrics_text(const MetricValues& values, const MetricLabels& labels);

}  // namespace weft
