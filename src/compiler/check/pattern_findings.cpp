#include "compiler/check/pattern_findings.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "compiler/pipeline.h"

namespace weft {
namespace {

// What the pass reports of a pattern, and the graph that the pass received.
struct Application {
  const PatternReport* report = nullptr;  // null when no pass applies the pattern
  std::size_t graph = 0;                  // an index of `after` in find_as_compiled
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

}  // namespace

std::vector<PatternFindings> find_as_compiled(const Graph& traced, std::span<const Pattern* const> patterns,
                                              const Context& context, TokenRange range) {
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
  std::vector<PatternFindings> all;
  std::set<std::string> matched;
  for (const Pattern* pattern : patterns) {
    all.push_back(find_pattern(*after.at(application_of(*pattern, records).graph), *pattern));
    matched.insert(all.back().matches.begin(), all.back().matches.end());
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    // Nothing is missing where another of the patterns matches.
    for (FailedAttempt& miss : all[i].misses)
      if (miss.kind == FailedAttempt::Kind::near && matched.contains(miss.node)) miss.kind = FailedAttempt::Kind::other;
    const Application application = application_of(*patterns[i], records);
    if (application.report != nullptr) apply_report(all[i], *application.report);
  }
  return all;
}

PatternFindings find_as_compiled(const Graph& traced, const Pattern& pattern, const Context& context,
                                 TokenRange range) {
  const Pattern* const patterns[] = {&pattern};
  return find_as_compiled(traced, patterns, context, range)[0];
}

}  // namespace weft
