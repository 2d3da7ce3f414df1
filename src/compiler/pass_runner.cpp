#include "compiler/pass_runner.h"

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "base/stopwatch.h"
#include "ir/print.h"
#include "ir/verify.h"

namespace weft {
namespace {

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void dump(const Graph& graph, const PassContext& context, const PassRunnerOptions& options, std::size_t number,
          const std::string& pass) {
  if (options.dump_folder.empty()) return;
  const std::string name = fmt::format("{}/{:02}-{}.{}.{}-{}.graph", options.dump_folder, number, pass, graph.name,
                                       context.range.lo, context.range.hi);
  write_then_rename(name, display(graph));
}

}  // namespace

std::vector<PassRecord> run_passes(Graph& graph, PassContext& context, std::span<const PassRow> rows,
                                   const PassRunnerOptions& options) {
  std::vector<PassRecord> records;
  InferredResults inferred;
  if (!options.dump_folder.empty()) make_folders(options.dump_folder);
  dump(graph, context, options, 0, "trace");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const PassRow& row = rows[i];
    if (graph.stage > row.needs) continue;  // the graph was parsed from a text of a later stage
    if (options.stop_after && (row.needs > *options.stop_after || row.leaves > *options.stop_after)) break;
    PassRecord record;
    record.name = row.name;
    record.nodes_before = record.nodes_after = static_cast<int>(graph.nodes().size());
    if (contains(options.skip, row.name)) {
      USER_CHECK(row.needs == row.leaves, "[--skip-pass] {} cannot be skipped: later passes need stage {}", row.name,
                 stage_text(row.leaves));
      record.skipped = true;
      records.push_back(std::move(record));
      continue;
    }
    CHECK(graph.stage == row.needs, "pass {} needs a graph of stage {}, but it is {}", row.name, stage_text(row.needs),
          stage_text(graph.stage));
    const TimelineScope event(context.timeline, "pass", [&] {
      return TimelineEvent{row.name, {{"graph", graph.name}}};
    });
    Stopwatch watch;
    record.result = row.run(graph, context);
    record.milliseconds = watch.lap("pass");
    record.nodes_after = static_cast<int>(graph.nodes().size());
    dump(graph, context, options, i + 1, row.name);
    CHECK(graph.stage == row.leaves, "pass {} left a graph of stage {}, not {}", row.name, stage_text(graph.stage),
          stage_text(row.leaves));
    watch.lap("dump");
    if (options.verify) verify_after_pass(graph, context.ops, row.name, inferred);
    record.verify_milliseconds = watch.lap("verify");
    if (options.print && (contains(options.print_after, row.name) || contains(options.print_after, "all")))
      options.print(row.name, graph);
    records.push_back(std::move(record));
  }
  return records;
}

}  // namespace weft
