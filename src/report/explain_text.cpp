#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>

#include <fmt/ranges.h>

#include "compiler/piece_graph.h"
#include "options/options_text.h"
#include "report/explain.h"
#include "report/reported_choices.h"
#include "report/size_report.h"

namespace weft {
namespace {

std::string refused_text(const std::vector<Refusal>& refused) {
  std::string text;
  for (const Refusal& refusal : refused) text += fmt::format("; {} was refused: {}", refusal.provider, refusal.reason);
  return text;
}

std::string passes_text(const CompileRecord& record) {
  std::string text;
  for (const PassRecord& pass : record.passes) {
    std::vector<std::string> counts;
    for (const auto& [name, count] : pass.result.counts)
      if (count != 0) counts.push_back(fmt::format("{} {}", count, name));
    if (pass.skipped) counts = {"skipped"};
    text += fmt::format("  {:<34}{:>8.3f} ms {:>6} to {:<6} nodes{}{}\n", pass.name, pass.milliseconds,
                        pass.nodes_before, pass.nodes_after, counts.empty() ? "" : "  ", fmt::join(counts, ", "));
  }
  for (const auto& [step, milliseconds] : record.steps)
    text += fmt::format("  {:<34}{:>8.3f} ms\n", step, milliseconds);
  return text;
}

// A reason without the names of values, which differ from layer to layer.
std::string without_names(const std::string& reason) {
  std::string text;
  for (std::size_t i = 0; i < reason.size(); ++i) {
    text += reason[i];
    if (reason[i] != '%') continue;
    while (i + 1 < reason.size() && (std::isalnum(static_cast<unsigned char>(reason[i + 1])) != 0 ||
                                     reason[i + 1] == '_' || reason[i + 1] == '.'))
      ++i;
  }
  return text;
}

// A fusion's gain, and its source: ", tuned: 1.31x as fast as its parts, moves 9.4 MB less of 21.2 at 512 rows". If the
// fusion computes more or less than its parts, the text ends with ", and 0.2 M instructions less of 1.4".
std::string profit_text(const std::optional<Profit>& profit, TokenRange range) {
  if (!profit) return "";
  const auto millions = [](auto count) { return static_cast<double>(count) / 1e6; };
  const Work &before = profit->before, &after = profit->after;
  std::string text =
      fmt::format("{}{}, moves {:.2f} MB less of {:.2f} at {} rows", profit->measured.empty() ? "" : ", ",
                  profit->measured, millions(before.bytes - after.bytes), millions(before.bytes), range.hi);
  if (before.instructions != after.instructions)
    text += fmt::format(", and {:.2f} M instructions {} of {:.2f}",
                        std::abs(millions(before.instructions - after.instructions)),
                        after.instructions < before.instructions ? "less" : "more", millions(before.instructions));
  return text;
}

// The result of each pattern. Near misses for the same reason are printed once, with the text of the first.
std::string fusions_text(const CompileRecord& record) {
  std::string text;
  for (const PassRecord& pass : record.passes)
    for (const PatternReport& report : pass.result.patterns) {
      if (report.off) text += fmt::format("  {:>4}   {}: {}\n", "off", report.pattern, *report.off);
      if (report.matched > 0)
        text +=
            fmt::format("  {:>4} x {}{}\n", report.matched, report.pattern, profit_text(report.profit, record.range));
      std::map<std::string, std::pair<int, std::string>> reasons;  // how often, and the first
      for (const NearMiss& miss : report.near_misses)
        ++reasons.try_emplace(without_names(miss.reason), 0, miss.reason).first->second.first;
      for (const auto& [reason, seen] : reasons)
        text += fmt::format("  {:>4} x not {}: {}\n", seen.first, report.pattern, seen.second);
    }
  return text;
}

// One line for all nodes of an op that have the same choice.
std::string choices_text(const std::string& title, const std::vector<NodeChoice>& nodes) {
  std::map<std::string, int> counts;
  for (const NodeChoice& node : nodes)
    ++counts[fmt::format("{:<45} {:<10} {}{}", node.op, node.choice.provider, node.choice.reason,
                         refused_text(node.choice.refused))];
  std::string text = counts.empty() ? "" : title + "\n";
  for (const auto& [line, count] : counts) text += fmt::format("  {:>4} x {}\n", count, line);
  return text;
}

std::string pieces_text(const Graph& split, const Options& options) {
  std::map<std::string, int> calls;
  for (const auto& call : split.nodes()) ++calls[call->name];
  std::string text = fmt::format("  {} calls of {} pieces\n", split.nodes().size(), split.pieces.size());
  for (const auto& piece : split.pieces)
    text += fmt::format("  {:>4} x {:<8}{} nodes{}{}\n", calls[piece->name], piece->name, piece->nodes().size(),
                        piece->kind == DefinitionKind::splitting ? ", splitting" : "",
                        is_eager_piece(options, split.name, piece->name) ? ", op by op by --eager-piece" : "");
  return text;
}

std::string clones_text(const CompileRecord& record) {
  std::string text;
  for (const PassRecord& pass : record.passes)
    for (const auto& [node, reason] : pass.result.kept_clones)
      text += fmt::format("  copy %{} stays: {}\n", node, reason);
  return text;
}

std::string times_text(const StartTimes::Parts& parts) {
  std::vector<std::string> texts;
  for (const auto& [name, milliseconds] : parts) texts.push_back(fmt::format("{} {:.1f}", name, milliseconds));
  return fmt::format("{}", fmt::join(texts, ", "));
}

// The cost of each captured size on a device.
std::string size_graphs_text(const ReplayReport::Capture& capture) {
  std::size_t width = 14;
  for (const SizeGraph& size : capture.sizes) width = std::max(width, size.text.size());
  std::string text = fmt::format("graphs of {}, {}:\n  {:<{}}  {:>10}{:>12}{:>14}\n", capture.plan,
                                 replay_mode_text(capture.mode), "size", width, "launches", "ms", "device bytes");
  for (const SizeGraph& size : capture.sizes)
    text += size.failure.empty() ? fmt::format("  {:<{}}  {:>10}{:>12.3f}{:>14}\n", size.text, width, size.cost.nodes,
                                               size.milliseconds, size.cost.device_bytes)
                                 : fmt::format("  {:<{}}  not captured: {}\n", size.text, width, size.failure);
  return text;
}

// "replay: FULL up to 512 tokens; forward FULL: 393 of 393 steps in 1 list; captured in 0.20 ms; in 2 runs 0 look-ups
// and 0 allocations", and the first-time work before and after the model was ready.
std::string replay_text(const ReplayReport& report) {
  std::string text = fmt::format("replay: {}", replay_mode_text(report.mode));
  if (!report.sizes.empty()) text += fmt::format(" up to {} tokens", report.sizes.back());
  for (const ReplayReport::Capture& capture : report.captures)
    text += fmt::format("; {} {}: {} of {} steps in {} list{}", capture.plan, replay_mode_text(capture.mode),
                        capture.captured_steps, capture.captured_steps + capture.other_steps, capture.stretches,
                        capture.stretches == 1 ? "" : "s");
  if (report.is_lazy) text += "; captured when first run";
  if (!report.captures.empty()) text += fmt::format("; captured in {:.2f} ms", report.launch_graph_milliseconds);
  text += fmt::format("; in {} runs {} look-ups and {} allocations", report.runs, report.look_ups, report.allocations);
  std::vector<std::string> work;
  for (std::size_t i = 0; i < kFirstTimeKinds; ++i)
    work.push_back(fmt::format("{} {} and {}", first_time_text(static_cast<FirstTime>(i)),
                               report.first_time[i].before_ready, report.first_time[i].after_ready));
  text += fmt::format("\nfirst-time work before and after ready: {}\n", fmt::join(work, ", "));
  for (const ReplayReport::Capture& capture : report.captures)
    if (!capture.sizes.empty()) text += size_graphs_text(capture);
  return text;
}

std::string mebibytes(std::int64_t bytes) { return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20)); }

std::string cache_text(const CacheUse& cache) {
  if (!cache.enabled) return "compile cache: these plans are not kept\n";
  if (cache.hit) return fmt::format("compile cache: plans found, {}\n", cache.entry);
  const auto& difference = cache.first_difference;
  const std::string why =
      difference ? fmt::format("; the nearest entry differs in {}: wanted {}, found {}", difference->factor,
                               difference->wanted.value_or("none"), difference->found.value_or("none"))
                 : "; there is no entry to compare with";
  return fmt::format("compile cache: plans compiled and stored{}\n", why);
}

std::string device_functions_text(const DeviceFunctions& said) {
  std::string text =
      fmt::format("generated for the device: {} of {} functions are launched", said.launched, said.functions);
  if (!said.code.empty()) text += ", " + said.code;
  if (!said.compiler.empty()) text += " of " + said.compiler;
  for (const auto& [function, reason] : said.on_host) text += fmt::format("; the host runs {}: {}", function, reason);
  if (said.launched + said.on_host.size() < said.functions)
    text += fmt::format("; the host runs the others in the order of the stream: {}", said.reason);
  if (!said.host_problem.empty()) text += fmt::format("; nothing is compiled for the host: {}", said.host_problem);
  return text + "\n";
}

}  // namespace

std::string explain_text(const Explanation& explanation) {
  std::string text = fmt::format("weft {}: {}\n", explanation.version, explanation.model);
  for (const OptionDifference& difference : explanation.differences)
    text += fmt::format("option {}\n", difference.text());
  if (explanation.records.empty()) text += "nothing was compiled: every op runs at once, through the same choice\n";
  for (const CompileRecord& record : explanation.records) {
    text += fmt::format("\n{}, {} to {} rows\n", record.graph, record.range.lo, record.range.hi);
    text += "passes\n" + passes_text(record);
    if (const std::string fusions = fusions_text(record); !fusions.empty()) text += "fusions\n" + fusions;
    const ReportedChoices choices = reported_choices(record);
    text += choices_text("kernels", choices.runs);
    text += choices_text("written out in smaller ops", choices.written_out);
    if (record.split->stage == Stage::split) text += "pieces\n" + pieces_text(*record.split, explanation.options);
    text += clones_text(record);
  }
  text += sizes_text(explanation.records, explanation.tuning);
  const auto& memory = explanation.memory;
  text += fmt::format(
      "\nmemory: weights {}, activations {} planned ({}), KV pages for the longest sequence {}{}\n",
      mebibytes(memory.weights), mebibytes(memory.activations_planned),
      memory.activations_measured ? mebibytes(*memory.activations_measured) + " measured" : "no step was measured",
      mebibytes(memory.kv_cache),
      memory.kv_cache_measured ? fmt::format(" ({} measured)", mebibytes(*memory.kv_cache_measured)) : "");
  if (explanation.device_functions) text += device_functions_text(*explanation.device_functions);
  text += replay_text(explanation.replay);
  for (const GuardReport& report : explanation.guards) text += "guards: " + guard_report_text(report) + "\n";
  text += cache_text(explanation.cache);
  text += fmt::format("time: {:.1f} ms ({})\n", explanation.times.total, times_text(explanation.times.phases));
  if (!explanation.times.compile.empty()) text += fmt::format("compile: {}\n", times_text(explanation.times.compile));
  return text;
}

}  // namespace weft
