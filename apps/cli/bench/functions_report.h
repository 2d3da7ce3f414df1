#pragma once

// Prints the results of `bench functions`.

#include <iosfwd>
#include <string>

#include "apps/cli/bench/functions.h"
#include "apps/cli/bench/rows.h"
#include "base/json.h"

namespace weft {

class FunctionBenchReport {
 public:
  // `clock_rate` is in cycles per second.
  FunctionBenchReport(BenchFormat format, const Context& context, double clock_rate, std::int64_t bytes,
                      std::ostream& out);
  // `source` is the graph, or the op and its dtype.
  void row(const std::string& source, const FunctionBenchRow& row);
  // Reports an op that has no generated function. Only JSON shows it.
  void refusal(const std::string& source, const std::string& reason);
  void end();

 private:
  BenchRows rows_;
  double clock_rate_;
  std::string head_;  // head of the table, printed before the first row
  Json refused_ = Json::array();
};

}  // namespace weft
