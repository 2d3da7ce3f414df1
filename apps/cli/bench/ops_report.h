#pragma once

// Prints the results of `bench ops`. Only JSON shows refusals.

#include <iosfwd>
#include <string>
#include <vector>

#include "apps/cli/bench/ops.h"
#include "apps/cli/bench/rows.h"
#include "apps/cli/measured_peaks.h"
#include "base/json.h"

namespace weft {

class OpBenchReport {
 public:
  OpBenchReport(BenchFormat format, const Context& context, const MeasuredPeaks& peaks, std::ostream& out);
  void row(const OpBenchRow& row);
  void refusal(const OpBenchRefusal& refusal);
  void end();

 private:
  Json fields(const OpBenchRow& row) const;

  const Context& context_;
  MeasuredPeaks peaks_;
  BenchRows rows_;
  Json refused_ = Json::array();
};

}  // namespace weft
