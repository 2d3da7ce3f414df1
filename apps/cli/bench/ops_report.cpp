#include "apps/cli/bench/ops_report.h"

#include <fmt/ranges.h>

#include "compiler/check/batch_invariance.h"

namespace weft {
namespace {

Json machine_fields(const Context& context, const MeasuredPeaks& peaks) {
  Json fields = machine_fields(context);
  fields["peak_gb_s"] = peaks.read_bytes / 1e9;
  fields["peak_gflop_s"] = peaks.operations / 1e9;
  fields["peak_gflop_s_16_bits"] = peaks.operations_of_16_bits / 1e9;
  fields["peak_gflop_s_8_bits"] = peaks.operations_of_8_bits / 1e9;
  return fields;
}

std::string markdown_head(bool batch_invariant) {
  std::string head = fmt::format("| {:<70} | {:<9} | {:>10} | {:>10} | {:>9} | {:>7} | {:>7} | {:>9} |", "call",
                                 "provider", "best us", "median us", "bytes", "GB/s", "GFLOP/s", "% of peak");
  if (batch_invariant) head += fmt::format(" {:<9} | {:<10} | {:>5} |", "chosen", "without it", "cost");
  head += fmt::format("\n| {:-<70} | {:-<9} | {:->9}: | {:->9}: | {:->8}: | {:->6}: | {:->6}: | {:->8}: |", "", "", "",
                      "", "", "", "", "");
  if (batch_invariant) head += fmt::format(" {:-<9} | {:-<10} | {:->4}: |", "", "", "");
  return head + "\n";
}

std::string markdown_line(const OpBenchRow& row, const Json& fields) {
  const std::string rate = row.operations > 0 ? fmt::format("{:.1f}", fields["gflop_s"].get<double>()) : "";
  std::string line = fmt::format("| {:<70} | {:<9} | {:>10.2f} | {:>10.2f} | {:>9} | {:>7.2f} | {:>7} | {:>9.1f} |",
                                 row.call, row.provider, row.best() * 1e6, row.median() * 1e6, row.bytes,
                                 fields["gb_s"].get<double>(), rate, fields["percent_of_peak"].get<double>());
  if (row.invariance)
    line += fmt::format(" {:<9} | {:<10} | {:>5} |", row.invariance->chosen, row.invariance->without,
                        row.invariance->cost ? fmt::format("{:.2f}", *row.invariance->cost) : "");
  return line + "\n";
}

}  // namespace

OpBenchReport::OpBenchReport(BenchFormat format, const Context& context, const MeasuredPeaks& peaks, std::ostream& out)
    : context_(context), peaks_(peaks), rows_(format, machine_fields(context, peaks), out) {
  rows_.text(
      fmt::format("{}, {}, {} threads: reads {:.1f} GB/s, computes {:.1f} GFLOP/s in f32, {:.1f} in bf16, {:.1f} in "
                  "int8\n\n",
                  context.device.name, cpu_features_text(context.device.features), context.threads->threads(),
                  peaks.read_bytes / 1e9, peaks.operations / 1e9, peaks.operations_of_16_bits / 1e9,
                  peaks.operations_of_8_bits / 1e9) +
      markdown_head(context.options.batch_invariant));
}

Json OpBenchReport::fields(const OpBenchRow& row) const {
  const double best = row.best(), bytes = static_cast<double>(row.bytes);
  const double operations = static_cast<double>(row.operations);
  Json fields = {{"op", row.op},
                 {"call", row.call},
                 {"provider", row.provider},
                 {"rows", row.rows},
                 {"best_us", best * 1e6},
                 {"median_us", row.median() * 1e6},
                 {"bytes", row.bytes},
                 {"gb_s", bytes / best / 1e9},
                 {"gflop_s", row.operations > 0 ? Json(operations / best / 1e9) : Json(nullptr)},
                 {"percent_of_peak", peaks_.percent(bytes, operations, row.operand, best)}};
  fields["samples_us"] = microseconds(row.seconds);
  if (row.invariance) {
    fields["chosen"] = row.invariance->chosen;
    fields["chosen_without"] = row.invariance->without;
    fields["cost"] = row.invariance->cost ? Json(*row.invariance->cost) : Json(nullptr);
  }
  return fields;
}

void OpBenchReport::row(const OpBenchRow& row) {
  const Json measured = fields(row);
  rows_.row(markdown_line(row, measured), measured);
}

void OpBenchReport::refusal(const OpBenchRefusal& refusal) {
  refused_.push_back(
      {{"op", refusal.op}, {"call", refusal.call}, {"provider", refusal.provider}, {"reason", refusal.reason}});
}

void OpBenchReport::end() {
  const std::vector<std::string> switched_off = switched_off_by_batch_invariance(context_);
  rows_.end({{"refused", refused_}, {"switched_off", switched_off}});
  if (!switched_off.empty()) rows_.text(fmt::format("\n{}\n", fmt::join(switched_off, "\n")));
}

}  // namespace weft
