#pragma once

// Prints rows of measurements in the four formats of the bench verbs: markdown, CSV and JSON lines as rows come, JSON
// as one object when whoever measures ends. The machine stands in every row of CSV and JSON lines.

#include <iosfwd>
#include <string_view>

#include "apps/cli/bench_model.h"
#include "base/json.h"
#include "compiler/context.h"

namespace weft {

// What every row says of it: processor, instruction sets, threads.
Json machine_fields(const Context& context);

// Samples in seconds, as a list of microseconds.
Json microseconds(const std::vector<double>& seconds);

class BenchRows {
 public:
  BenchRows(BenchFormat format, Json machine, std::ostream& out);

  // Only in markdown: what stands before the rows and after them.
  void text(std::string_view markdown);
  // The line in markdown; its fields in the others.
  void row(std::string_view markdown, const Json& fields);
  // Only in JSON: the machine, the rows, and what else is to be said.
  void end(const Json& more = Json::object());

 private:
  BenchFormat format_;
  Json machine_;
  std::ostream& out_;
  Json rows_ = Json::array();  // of JSON
  bool first_ = true;
};

}  // namespace weft
