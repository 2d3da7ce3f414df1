#include "compiler/check/pattern_findings.h"

#include <algorithm>

#include "compiler/pipeline.h"

namespace weft {

PatternFindings find_as_compiled(const Graph& traced, const Pattern& pattern, const Context& context,
                                 TokenRange range) {
  const std::shared_ptr<Graph> graph = traced.clone();
  std::vector<std::shared_ptr<Graph>> after;  // one graph after each pass
  PassRunnerOptions options = pass_runner_options(context.options);
  options.stop_after = Stage::pure;
  options.print_after = {"all"};
  options.print = [&](const std::string&, const Graph& now) { after.push_back(now.clone()); };
  PassContext passes = pass_context(context, range);
  const std::vector<PassRecord> records = run_passes(*graph, passes, passes_of(context), options);
  std::size_t printed = 0;  // graphs in `after` when the record's pass begins; a skipped pass adds none
  for (const PassRecord& record : records) {
    const bool is_applied = std::any_of(record.result.patterns.begin(), record.result.patterns.end(),
                                        [&](const PatternReport& report) { return report.pattern == pattern.name; });
    if (is_applied) return find_pattern(*after[printed - 1], pattern);
    printed += record.skipped ? 0 : 1;
  }
  return find_pattern(*graph, pattern);
}

}  // namespace weft
