#pragma once

// Reads Prometheus' text format 0.0.4 strictly.

#include <map>
#include <string>
#include <vector>

namespace weft {

struct MetricsText {
  std::map<std::string, std::string> types;  // by family
  std::map<std::string, double> samples;     // by name and labels, as in the text
  std::vector<std::string> breaches;         // what is wrong, with its line
};

MetricsText read_metrics(const std::string& text);

}  // namespace weft
