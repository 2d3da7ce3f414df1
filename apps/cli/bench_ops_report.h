#pragma once

// Prints what `bench ops` measured: markdown, CSV and JSON lines as rows come, JSON as one object at the end, which
// alone has the refusals. The machine and its roof stand before the table, or in every row of CSV and JSON lines.

#include <iosfwd>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "apps/cli/bench_model.h"
#include "apps/cli/bench_ops.h"
#include "apps/cli/bench_roof.h"

namespace weft {

class OpBenchReport {
 public:
  OpBenchReport(BenchFormat format, const Context& context, const MachineRoof& roof, std::ostream& out);
  void row(const OpBenchRow& row);
  void refusal(const OpBenchRefusal& refusal);
  void end();

 private:
  nlohmann::ordered_json fields(const OpBenchRow& row) const;

  BenchFormat format_;
  const Context& context_;
  MachineRoof roof_;
  std::ostream& out_;
  nlohmann::ordered_json machine_;
  nlohmann::ordered_json rows_ = nlohmann::ordered_json::array();     // of JSON
  nlohmann::ordered_json refused_ = nlohmann::ordered_json::array();  // likewise
  bool first_ = true;
};

}  // namespace weft
