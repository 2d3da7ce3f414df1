#include "apps/cli/csv.h"

#include <vector>

#include <fmt/ranges.h>

#include "base/json.h"

namespace weft {
namespace {

std::string csv_field(const Json& value) {
  if (value.is_null()) return "\"\"";
  std::string quoted = "\"";
  for (char c : value.is_string() ? value.get<std::string>() : json_text(value))
    quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

}  // namespace

std::string csv_line(const Json& row, bool names) {
  std::vector<std::string> fields;
  for (const auto& [key, value] : row.items())
    if (!value.is_array()) fields.push_back(names ? key : csv_field(value));
  return fmt::format("{}\n", fmt::join(fields, ","));
}

}  // namespace weft
