#pragma once

// Prints rows of measurements in the four formats of the bench verbs. Markdown, CSV and JSON lines are printed row by
// row; JSON is printed as one object at the end. Each row of CSV and JSON lines contains the facts about the machine.

#include <iosfwd>
#include <string_view>

#include "apps/cli/bench/model.h"
#include "base/json.h"
#include "compiler/context.h"

namespace weft {

// Returns the facts about the machine for each row: processor, instruction sets, threads.
Json machine_fields(const Context& context);

// Converts samples in seconds to a list of microseconds.
Json microseconds(const std::vector<double>& seconds);

class BenchRows {
 public:
  BenchRows(BenchFormat format, Json machine, std::ostream& out);

  // Prints text before or after the rows, only in markdown.
  void text(std::string_view markdown);
  // Prints the line in markdown, and the fields in the other formats.
  void row(std::string_view markdown, const Json& fields);
  // Prints, only in JSON, the machine, the rows and the fields of `more`.
  void end(const Json& more = Json::object());

 private:
  BenchFormat format_;
  Json machine_;
  std::ostream& out_;
  Json rows_ = Json::array();  // only for JSON
  bool first_ = true;
};

}  // namespace weft
