#include "compiler/check/pattern_findings.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "compiler/pipeline.h"

namespace weft {
namespace {

// The report on a pattern by the pass that applies it, and the graph that this pass received.
struct Application {
  const PatternReport* report = nullptr;  // null when no pass applies the pattern
  std::size_t graph = 0;                  // index into `after` of find_as_compiled
};

Application application_of(const Pattern& pattern, const std::vector<PassRecord>& records) {
  std::size_t graph = 0;
  for (const PassRecord& record : records) {
    for (const PatternReport& report : record.result.patterns)
      if (report.pattern == pattern.name) return {&report, graph};
    graph += record.skipped ? 0 : 1;  // a skipped pass prints no graph
  }
  return {nullptr, graph};
}

// Turns the matches that the pass did not replace into misses.
void apply_report(PatternFindings& findings, const PatternReport& report) {
  if (report.off) {
    findings.off = report.off;
    return;
  }
  std::vector<std::string> replaced;
  for (const std::string& node : findings.matches) {
    const auto refused = std::find_if(report.near_misses.begin(), report.near_misses.end(),
                                      [&](const NearMiss& miss) { return miss.node == node; });
    if (refused != report.near_misses.end()) {
      findings.misses.push_back({{node, refused->reason}, FailedAttempt::Kind::near});
    } else if (report.matched == 0) {
      findings.misses.push_back(
          {{node, fmt::format("%{}: another pattern of the pass took its nodes", node)}, FailedAttempt::Kind::near});
    } else {
      replaced.push_back(node);
    }
  }
  findings.matches = std::move(replaced);
}

// Drops the near misses at nodes where another pattern of the same fusion matches.
void drop_matched(PatternFindings& findings, Graph& graph, const Pattern& pattern,
                  std::span<const FusionPattern> table) {
  const auto own = std::find_if(table.begin(), table.end(),
                                [&](const FusionPattern& entry) { return entry.pattern.name == pattern.name; });
  std::map<std::string, Node*> near;
  for (const FailedAttempt& miss : findings.misses)
    if (miss.kind == FailedAttempt::Kind::near) near.emplace(miss.node, nullptr);
  if (own == table.end() || near.empty()) return;
  for (const auto& node : graph.nodes())
    if (const auto found = near.find(node->result()->name); found != near.end()) found->second = node.get();
  const auto is_matched = [&](const std::string& name) {
    return std::any_of(table.begin(), table.end(), [&](const FusionPattern& entry) {
      if (entry.fusion != own->fusion || &entry == &*own) return false;
      PatternMatcher matcher(entry.pattern);
      Node* node = near.at(name);
      return entry.pattern.before.nodes[static_cast<std::size_t>(matcher.anchor())].name == node->name &&
             matcher.match(node).has_value();
    });
  };
  for (FailedAttempt& miss : findings.misses)
    if (miss.kind == FailedAttempt::Kind::near && is_matched(miss.node)) miss.kind = FailedAttempt::Kind::other;
}

std::vector<PatternReport> reports_without_pattern(const std::vector<PassRecord>& records,
                                                   std::span<const FusionPattern> table) {
  std::vector<PatternReport> reports;
  for (const PassRecord& record : records)
    for (const PatternReport& report : record.result.patterns)
      if (std::none_of(table.begin(), table.end(),
                       [&](const FusionPattern& entry) { return entry.pattern.name == report.pattern; }))
        reports.push_back(report);
  return reports;
}

}  // namespace

CompiledFindings find_as_compiled(const Graph& traced, std::span<const Pattern* const> patterns, const Context& context,
                                  TokenRange range) {
  const std::shared_ptr<Graph> graph = traced.clone();
  bound_rows(*graph, range);
  std::vector<std::shared_ptr<Graph>> after = {graph->clone()};  // the graph before the passes, then after each pass
  PassRunnerOptions options = pass_runner_options(context.options);
  options.dump_folder.clear();
  options.stop_after = Stage::pure;
  options.print_after = {"all"};
  options.print = [&](const std::string&, const Graph& now) { after.push_back(now.clone()); };
  PassContext passes = pass_context(context, range);
  const std::vector<PassRecord> records = run_passes(*graph, passes, passes_of(context), options);
  CompiledFindings all;
  for (const Pattern* pattern : patterns) {
    const Application application = application_of(*pattern, records);
    Graph& before = *after.at(application.graph);
    all.of_patterns.push_back(find_pattern(before, *pattern));
    drop_matched(all.of_patterns.back(), before, *pattern, context.patterns);
    if (application.report != nullptr) apply_report(all.of_patterns.back(), *application.report);
  }
  all.others = reports_without_pattern(records, context.patterns);
  return all;
}

PatternFindings find_as_compiled(const Graph& traced, const Pattern& pattern, const Context& context,
                                 TokenRange range) {
  const Pattern* const patterns[] = {&pattern};
  return find_as_compiled(traced, patterns, context, range).of_patterns[0];
}

}  // namespace weft
