#pragma once

// How a stretch of a launch list becomes something that is replayed as one. On the CPU that is the stretch itself,
// walked; a device with graphs of its own makes one of its launches.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/launch_list.h"
#include "runtime/replay_mode.h"

namespace weft {

// What it took to make a stretch ready for one run.
struct CaptureCost {
  std::int64_t nodes = 0;         // launches and host functions in a graph
  std::int64_t device_bytes = 0;  // that the device has less of
};

// A captured stretch. It replays what stands in its list when it is replayed: sizes and addresses may have changed, and
// the numbers of a batch.
class CapturedLaunches {
 public:
  virtual ~CapturedLaunches() = default;
  virtual void replay() = 0;
  // Whether replay() needs to capture nothing for the numbers in the list. One that is walked never does.
  virtual bool has_capture() const { return true; }
  // Does what replay() needs, and launches nothing.
  virtual CaptureCost prepare() { return {}; }
  // Drops what prepare() made for the numbers in the list, which are not to be replayed.
  virtual void forget() {}
};

class Capturer {
 public:
  virtual ~Capturer() = default;
  // Captures the launches [first, last) of a list, which outlives what is given back and stays where it is.
  virtual std::unique_ptr<CapturedLaunches> capture(const LaunchList& list, std::size_t first, std::size_t last) = 0;
};

class HostCapturer : public Capturer {
 public:
  std::unique_ptr<CapturedLaunches> capture(const LaunchList& list, std::size_t first, std::size_t last) override;
};

// A stretch of a Plan's steps that runs as one, or step by step.
struct Stretch {
  std::size_t first = 0;
  std::size_t last = 0;  // behind its last step
  bool is_captured = false;
};

// What a kernel's class, and what a step reads, allow.
CaptureClass capture_class(const PlanStep& step);

// The Plan's steps cut into stretches. `mode` is simple. Full: as few as possible. Piecewise: one for each call of a
// piece, those that the graph was split at uncaptured, and so is what needs its metadata in place. None: all
// uncaptured.
std::vector<Stretch> cut_for_capture(const Plan& plan, ReplayMode mode);

}  // namespace weft
