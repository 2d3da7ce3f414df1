#include "apps/cli/plan_report.h"

#include <algorithm>
#include <map>
#include <utility>

#include "report/reported_choices.h"

namespace weft {
namespace {

// The number of nodes that run, by op and provider.
std::map<std::pair<std::string, std::string>, int> choice_counts(const CompileRecord& record) {
  std::map<std::pair<std::string, std::string>, int> counts;
  for (const NodeChoice& node : reported_choices(record).runs) ++counts[{node.op, node.choice.provider}];
  return counts;
}

// The number of matches of each pattern that matched.
std::map<std::string, int> fusion_counts(const CompileRecord& record) {
  std::map<std::string, int> counts;
  for (const PassRecord& pass : record.passes)
    for (const PatternReport& pattern : pass.result.patterns)
      if (pattern.matched > 0) counts[pattern.pattern] += pattern.matched;
  return counts;
}

Json graph_json(const CompileRecord& record) {
  Json choices = Json::array(), fusions = Json::array();
  for (const auto& [choice, count] : choice_counts(record))
    choices.push_back({{"op", choice.first}, {"provider", choice.second}, {"count", count}});
  for (const auto& [pattern, matched] : fusion_counts(record))
    fusions.push_back({{"pattern", pattern}, {"matched", matched}});
  return {{"graph", record.graph},
          {"range", {record.range.lo, record.range.hi}},
          {"choices", choices},
          {"fusions", fusions}};
}

Json per_token(const PlannedStep& step, std::int64_t amount) {
  return static_cast<double>(amount) / static_cast<double>(step.rows);
}

// At the peak rates; nullopt where no rate is known.
std::optional<double> tokens_per_second(const PlannedStep& step, const PeakRates& peaks) {
  const double seconds = peaks.seconds(step.work);
  return seconds > 0 ? std::optional(static_cast<double>(step.rows) / seconds) : std::nullopt;
}

Json step_json(const PlannedStep& step, const PeakRates& peaks) {
  const StepWork& work = step.work;
  const std::string limit = peaks.limit_of(work);
  return {{"rows", step.rows},
          {"depth", step.cached},
          {"bytes",
           {{"weights", work.weight_bytes},
            {"kv_cache_read", work.kv_read_bytes},
            {"kv_cache_written", work.kv_written_bytes},
            {"total", work.least_bytes()},
            {"activations", work.activation_bytes}}},
          {"operations",
           {{"products", work.product_operations},
            {"attention", work.attention_operations},
            {"total", work.operations()},
            {"of_16_bits", work.operations_of_16_bits},
            {"of_8_bits", work.operations_of_8_bits}}},
          {"bytes_per_token", per_token(step, work.least_bytes())},
          {"operations_per_token", per_token(step, work.operations())},
          {"tokens_per_second", optional_json(tokens_per_second(step, peaks))},
          {"limit", limit.empty() ? Json(nullptr) : Json(limit)}};
}

std::string size_text(double bytes) {
  constexpr double kMebi = 1 << 20;
  if (bytes < kMebi) return fmt::format("{:.1f} KiB", bytes / 1024);
  return bytes < 1024 * kMebi ? fmt::format("{:.1f} MiB", bytes / kMebi)
                              : fmt::format("{:.2f} GiB", bytes / kMebi / 1024);
}

std::string size_text(std::int64_t bytes) { return size_text(static_cast<double>(bytes)); }

std::string operations_text(double operations) {
  return operations < 1e9 ? fmt::format("{:.2f} M", operations / 1e6) : fmt::format("{:.2f} G", operations / 1e9);
}

std::string graph_text(const CompileRecord& record) {
  std::string text = fmt::format("\n{}, {} to {} rows\nfusions\n", record.graph, record.range.lo, record.range.hi);
  const auto fusions = fusion_counts(record);
  for (const auto& [pattern, matched] : fusions) text += fmt::format("  {:>4} x {}\n", matched, pattern);
  if (fusions.empty()) text += "  none\n";
  text += "kernels\n";
  for (const auto& [choice, count] : choice_counts(record))
    text += fmt::format("  {:>4} x {:<45} {}\n", count, choice.first, choice.second);
  return text;
}

std::string step_text(const char* name, const PlannedStep& step, const PeakRates& peaks) {
  const StepWork& work = step.work;
  const auto rows = static_cast<double>(step.rows);
  std::string text = fmt::format(
      "{}: a step of {} after {} tokens\n  bytes       {} a token; the step reads weights {}, KV pages {}, writes KV "
      "pages {}; activations {}\n  operations  {} a token; products {}, attention {} in the step\n",
      name, step.rows, step.cached, size_text(static_cast<double>(work.least_bytes()) / rows),
      size_text(work.weight_bytes), size_text(work.kv_read_bytes), size_text(work.kv_written_bytes),
      size_text(work.activation_bytes), operations_text(static_cast<double>(work.operations()) / rows),
      operations_text(static_cast<double>(work.product_operations)),
      operations_text(static_cast<double>(work.attention_operations)));
  if (const auto rate = tokens_per_second(step, peaks))
    text += fmt::format("  at the peak rates {:.1f} tokens/s, limited by {}\n", *rate, peaks.limit_of(work));
  return text;
}

std::string target_text(const DeviceDescription& device) {
  std::string text =
      fmt::format("{}, {}, {} threads", device_text(device.id), cpu_features_text(device.features), device.threads);
  if (device.compute_capability > 0) text += fmt::format(", sm_{}", device.compute_capability);
  return text;
}

}  // namespace

Json plan_json(const PlanReport& report) {
  Json graphs = Json::array();
  for (const CompileRecord& record : report.records) graphs.push_back(graph_json(record));
  const PlannedMemory& memory = report.memory;
  const DeviceDescription& device = report.device;
  return {{"weft", report.version},
          {"model", report.model},
          {"architecture", report.architecture},
          {"weights_from", report.weights_from},
          {"target",
           {{"device", device_text(device.id)},
            {"cpu_features", cpu_features_text(device.features)},
            {"n_threads", device.threads},
            {"compute_capability", device.compute_capability > 0 ? Json(device.compute_capability) : Json(nullptr)}}},
          {"graphs", graphs},
          {"memory",
           {{"weights", memory.weights},
            {"kv_cache_per_token", memory.kv_per_token},
            {"states_per_token", memory.states_per_token},
            {"max_model_len", report.context_length},
            {"kv_cache", memory.kv_cache},
            {"activations_planned", memory.activations},
            {"total", memory.total()}}},
          {"decode", step_json(report.decode, report.peaks)},
          {"prompt", step_json(report.prompt, report.peaks)},
          {"peak_rates", peak_rates_json(report.peaks)}};
}

std::string plan_report_text(const PlanReport& report) {
  std::string text = fmt::format("weft {}: {}, {}; weights as the {} describes them\ntarget: {}\n", report.version,
                                 report.model, report.architecture, report.weights_from, target_text(report.device));
  if (report.records.empty()) text += "nothing is compiled: every op runs at once, through the same choice\n";
  for (const CompileRecord& record : report.records) text += graph_text(record);
  const PlannedMemory& memory = report.memory;
  const std::string states = memory.states_per_token == 0
                                 ? ""
                                 : fmt::format(", of which {} are states of recurrent layers, in pages of {} tokens",
                                               size_text(memory.states_per_token), memory.page_tokens);
  text += fmt::format(
      "\nmemory: at most {}: weights {}, KV pages {} for one sequence of {} tokens ({} a token{}), activations {}\n",
      size_text(memory.total()), size_text(memory.weights), size_text(memory.kv_cache), report.context_length,
      size_text(memory.kv_per_token), states, size_text(memory.activations));
  text += step_text("decode", report.decode, report.peaks) + step_text("prompt", report.prompt, report.peaks);
  text += "peak rates: " + peak_rates_text(report.peaks);
  return text + "\n";
}

}  // namespace weft
