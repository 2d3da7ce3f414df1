#include "apps/cli/bench/functions_report.h"

#include <utility>

#include <fmt/format.h>

namespace weft {
namespace {

Json machine_fields(const Context& context, double clock_rate) {
  Json fields = machine_fields(context);
  fields["clock_ghz"] = clock_rate / 1e9;
  return fields;
}

}  // namespace

FunctionBenchReport::FunctionBenchReport(BenchFormat format, const Context& context, double clock_rate,
                                         std::int64_t bytes, std::ostream& out)
    : rows_(format, machine_fields(context, clock_rate), out), clock_rate_(clock_rate) {
  head_ = fmt::format(
      "{}, {}, {} threads at {:.2f} GHz; {:.0f} MiB moved\n\n| {:<44} | {:<22} | {:>9} | {:>7} | {:>9} "
      "| {:>14} |\n| {:-<44} | {:-<22} | {:->8}: | {:->6}: | {:->8}: | {:->13}: |\n",
      context.device.name, cpu_features_text(context.device.features), context.threads->threads(), clock_rate / 1e9,
      static_cast<double>(bytes) / (1 << 20), "source", "function", "row bytes", "GB/s", "% of copy", "cycles, cached",
      "", "", "", "", "", "");
}

void FunctionBenchReport::row(const std::string& source, const FunctionBenchRow& row) {
  const double moved = static_cast<double>(row.row_bytes) * static_cast<double>(row.rows);
  const Json fields = {{"source", source},
                       {"function", row.function},
                       {"call", row.call},
                       {"rows", row.rows},
                       {"row_bytes", row.row_bytes},
                       {"best_us", row.best() * 1e6},
                       {"gb_s", moved / row.best() / 1e9},
                       {"copy_us", row.copy_best() * 1e6},
                       {"copy_gb_s", moved / row.copy_best() / 1e9},
                       {"percent_of_copy", row.percent_of_copy()},
                       {"cached_row_ns", row.row_seconds * 1e9},
                       {"cached_row_cycles", row.row_seconds * clock_rate_},
                       {"samples_us", microseconds(row.seconds)},
                       {"copy_samples_us", microseconds(row.copy_seconds)}};
  rows_.text(std::exchange(head_, ""));
  rows_.row(
      fmt::format("| {:<44} | {:<22} | {:>9} | {:>7.2f} | {:>9.1f} | {:>14.1f} |\n", source, row.function,
                  row.row_bytes, fields["gb_s"].get<double>(), row.percent_of_copy(), row.row_seconds * clock_rate_),
      fields);
}

void FunctionBenchReport::refusal(const std::string& source, const std::string& reason) {
  refused_.push_back({{"source", source}, {"reason", reason}});
}

void FunctionBenchReport::end() { rows_.end({{"refused", refused_}}); }

}  // namespace weft
