#pragma once

// Prints the results of `bench ops --fusions`.

#include <iosfwd>

#include "apps/cli/bench/fusions.h"
#include "apps/cli/bench/rows.h"

namespace weft {

class FusionBenchReport {
 public:
  FusionBenchReport(BenchFormat format, const Context& context, std::ostream& out);
  void row(const FusionBenchRow& row);
  void end();

 private:
  BenchRows rows_;
};

}  // namespace weft
