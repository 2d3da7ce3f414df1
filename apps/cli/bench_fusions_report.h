#pragma once

// Prints what `bench ops --fusions` measured: markdown, CSV and JSON lines as rows come, JSON as one object at the end.

#include <iosfwd>

#include <nlohmann/json.hpp>

#include "apps/cli/bench_fusions.h"
#include "apps/cli/bench_model.h"

namespace weft {

class FusionBenchReport {
 public:
  FusionBenchReport(BenchFormat format, const Context& context, std::ostream& out);
  void row(const FusionBenchRow& row);
  void end();

 private:
  BenchFormat format_;
  std::ostream& out_;
  nlohmann::ordered_json machine_;
  nlohmann::ordered_json rows_ = nlohmann::ordered_json::array();  // of JSON
  bool first_ = true;
};

}  // namespace weft
