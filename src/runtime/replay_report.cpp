#include "runtime/replay_report.h"

namespace weft {

void ReplayReport::add(const Replay& replay) {
  for (const ReplayMode simple : {ReplayMode::piecewise, ReplayMode::full}) {
    if (replay.stretches(simple).empty()) continue;
    Capture& capture = captures.emplace_back(Capture{.plan = replay.plan().name, .mode = simple});
    for (const SizeGraph& size : replay.size_graphs())
      if (size.mode == simple) capture.sizes.push_back(size);
    for (const Stretch& stretch : replay.stretches(simple)) {
      capture.stretches += stretch.is_captured ? 1 : 0;
      (stretch.is_captured ? capture.captured_steps : capture.other_steps) += stretch.last - stretch.first;
    }
  }
  const ReplayCounts& counts = replay.counts();
  launch_graph_milliseconds += counts.launch_graph_milliseconds;
  runs += counts.runs;
  look_ups += counts.look_ups;
  allocations += counts.allocations;
}

}  // namespace weft
