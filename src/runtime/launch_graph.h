#pragma once

// Captures a stretch of a launch list so that it is replayed as one unit. On the CPU a captured stretch is the stretch
// itself, which replay walks. A device with graphs makes one graph of the stretch's launches.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/launch_list.h"
#include "runtime/replay_mode.h"

namespace weft {

// The cost of making a stretch ready for one run.
struct LaunchGraphCost {
  std::int64_t nodes = 0;         // launches and host functions in the graph
  std::int64_t device_bytes = 0;  // device memory that the graph takes
};

// A captured stretch. It replays the current content of its list: sizes, addresses and the values of a batch may have
// changed since the capture.
class LaunchGraph {
 public:
  virtual ~LaunchGraph() = default;
  virtual void replay() = 0;
  // Whether a capture exists for the values in the list, so that replay() need not make one. Always true for a stretch
  // that replay walks.
  virtual bool has_capture() const { return true; }
  // Makes what replay() needs, and launches nothing.
  virtual LaunchGraphCost prepare() { return {}; }
  // Drops what prepare() made for the values in the list. They are not replayed again.
  virtual void forget() {}
};

class LaunchGraphBuilder {
 public:
  virtual ~LaunchGraphBuilder() = default;
  // Captures the launches [first, last) of a list. The list must outlive the result and must not move.
  virtual std::unique_ptr<LaunchGraph> capture(const LaunchList& list, std::size_t first, std::size_t last) = 0;
};

class HostLaunchGraphBuilder : public LaunchGraphBuilder {
 public:
  std::unique_ptr<LaunchGraph> capture(const LaunchList& list, std::size_t first, std::size_t last) override;
};

// A stretch of a Plan's steps that runs either as one unit or step by step.
struct Stretch {
  std::size_t first = 0;
  std::size_t last = 0;  // one past its last step
  bool is_captured = false;
};

// How the step may be captured, by its kernel's class and by what the step reads.
LaunchGraphClass launch_graph_class(const PlanStep& step);

// Cuts the Plan's steps into stretches. `mode` is simple. Full: as few stretches as possible. Piecewise: one captured
// stretch for each call of a piece; the steps that the graph was split at and the steps that need their metadata in
// place are not captured. None: nothing is captured.
std::vector<Stretch> cut_for_launch_graphs(const Plan& plan, ReplayMode mode);

}  // namespace weft
