#pragma once

// Prints what `bench functions` measured.

#include <iosfwd>
#include <string>

#include "apps/cli/bench_functions.h"
#include "apps/cli/bench_rows.h"
#include "base/json.h"

namespace weft {

class FunctionBenchReport {
 public:
  // `clock_rate`: cycles a second.
  FunctionBenchReport(BenchFormat format, const Context& context, double clock_rate, std::int64_t bytes,
                      std::ostream& out);
  // `source`: the graph, or the op and its dtype.
  void row(const std::string& source, const FunctionBenchRow& row);
  // An op of which there is no function, in JSON alone.
  void refusal(const std::string& source, const std::string& reason);
  void end();

 private:
  BenchRows rows_;
  double clock_rate_;
  std::string head_;  // of the table, printed when there is a row
  Json refused_ = Json::array();
};

}  // namespace weft
