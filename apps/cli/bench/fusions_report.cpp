#include "apps/cli/bench/fusions_report.h"

#include <fmt/format.h>

namespace weft {
namespace {

Json fields_of(const FusionBenchRow& row) {
  return {{"op", row.op},
          {"call", row.call},
          {"rows", row.rows},
          {"columns", row.columns},
          {"turns", row.iterations},
          {"unfused", row.unfused.kernels},
          {"unfused_bytes", row.unfused.bytes},
          {"unfused_us", row.unfused.best() * 1e6},
          {"fused", row.fused.kernels},
          {"fused_bytes", row.fused.bytes},
          {"fused_us", row.fused.best() * 1e6},
          {"ratio", row.ratio()},
          {"copy_us", row.copy.best() * 1e6},
          {"percent_of_copy", row.percent_of_copy()},
          {"unfused_samples_us", microseconds(row.unfused.seconds)},
          {"fused_samples_us", microseconds(row.fused.seconds)},
          {"copy_samples_us", microseconds(row.copy.seconds)}};
}

std::string markdown_head() {
  return fmt::format("| {:<90} | {:>11} | {:>10} | {:>11} | {:>10} | {:>5} | {:>10} | {:>9} | parts |\n", "call",
                     "parts bytes", "best us", "fused bytes", "best us", "ratio", "copy us", "% of copy") +
         fmt::format("| {:-<90} | {:->10}: | {:->9}: | {:->10}: | {:->9}: | {:->4}: | {:->9}: | {:->8}: | ----- |\n",
                     "", "", "", "", "", "", "", "");
}

std::string markdown_line(const FusionBenchRow& row) {
  return fmt::format("| {:<90} | {:>11} | {:>10.2f} | {:>11} | {:>10.2f} | {:>5.2f} | {:>10.2f} | {:>9.1f} | {} |\n",
                     row.call, row.unfused.bytes, row.unfused.best() * 1e6, row.fused.bytes, row.fused.best() * 1e6,
                     row.ratio(), row.copy.best() * 1e6, row.percent_of_copy(), row.unfused.kernels);
}

}  // namespace

FusionBenchReport::FusionBenchReport(BenchFormat format, const Context& context, std::ostream& out)
    : rows_(format, machine_fields(context), out) {
  rows_.text(fmt::format("{}, {}, {} threads\n\n", context.device.name, cpu_features_text(context.device.features),
                         context.threads->threads()) +
             markdown_head());
}

void FusionBenchReport::row(const FusionBenchRow& row) { rows_.row(markdown_line(row), fields_of(row)); }

void FusionBenchReport::end() { rows_.end(); }

}  // namespace weft
