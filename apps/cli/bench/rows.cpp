#include "apps/cli/bench/rows.h"

#include <ostream>

#include "apps/cli/csv.h"

namespace weft {

Json machine_fields(const Context& context) {
  return {{"cpu_info", context.device.name},
          {"cpu_features", cpu_features_text(context.device.features)},
          {"n_threads", context.threads->threads()}};
}

Json microseconds(const std::vector<double>& seconds) {
  Json values = Json::array();
  for (const double value : seconds) values.push_back(value * 1e6);
  return values;
}

BenchRows::BenchRows(BenchFormat format, Json machine, std::ostream& out)
    : format_(format), machine_(std::move(machine)), out_(out) {}

void BenchRows::text(std::string_view markdown) {
  if (format_ == BenchFormat::markdown) out_ << markdown << std::flush;
}

void BenchRows::row(std::string_view markdown, const Json& fields) {
  Json all = machine_;
  all.update(fields);
  switch (format_) {
    case BenchFormat::markdown:
      out_ << markdown;
      break;
    case BenchFormat::csv:
      if (first_) out_ << csv_line(all, true);
      out_ << csv_line(all, false);
      break;
    case BenchFormat::json:
      rows_.push_back(fields);
      break;
    case BenchFormat::json_lines:
      out_ << json_text(all) << "\n";
      break;
  }
  out_ << std::flush;
  first_ = false;
}

void BenchRows::end(const Json& more) {
  if (format_ != BenchFormat::json) return;
  Json all = {{"machine", machine_}, {"rows", rows_}};
  all.update(more);
  out_ << json_text(all, 2) << "\n";
}

}  // namespace weft
