#include "runtime/launch_graph.h"

#include <algorithm>

#include "base/error.h"

namespace weft {
namespace {

class HostLaunches : public LaunchGraph {
 public:
  HostLaunches(const LaunchList& list, std::size_t first, std::size_t last) : list_(list), first_(first), last_(last) {}
  void replay() override { list_.run(first_, last_); }

 private:
  const LaunchList& list_;
  std::size_t first_;
  std::size_t last_;
};

bool may_be_in_launch_graph(const PlanStep& step, ReplayMode mode) {
  const LaunchGraphClass allowed = launch_graph_class(step);
  if (mode == ReplayMode::full) return allowed != LaunchGraphClass::never;
  return mode == ReplayMode::piecewise && !step.is_splitting && allowed == LaunchGraphClass::always;
}

}  // namespace

std::unique_ptr<LaunchGraph> HostLaunchGraphBuilder::capture(const LaunchList& list, std::size_t first,
                                                             std::size_t last) {
  return std::make_unique<HostLaunches>(list, first, last);
}

LaunchGraphClass launch_graph_class(const PlanStep& step) {
  const bool reads_batch = std::any_of(step.operands.begin(), step.operands.end(), [](const PlanView& view) {
    return view.slot >= 0 && view.meta.kind == MetaKind::batch;
  });
  if (reads_batch && step.kernel->launch_graph == LaunchGraphClass::always)
    return LaunchGraphClass::with_metadata_in_place;
  return step.kernel->launch_graph;
}

std::vector<Stretch> cut_for_launch_graphs(const Plan& plan, ReplayMode mode) {
  CHECK(is_simple(mode), "a run is in one mode, but got {}", replay_mode_text(mode));
  std::vector<Stretch> stretches;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const bool is_captured = may_be_in_launch_graph(plan.steps[i], mode);
    const bool is_other_piece =
        mode == ReplayMode::piecewise && i > 0 && plan.steps[i].piece != plan.steps[i - 1].piece;
    if (stretches.empty() || stretches.back().is_captured != is_captured || (is_captured && is_other_piece))
      stretches.push_back({.first = i, .is_captured = is_captured});
    stretches.back().last = i + 1;
  }
  return stretches;
}

}  // namespace weft
