#pragma once

// Runs a Plan over bound tensors. Steps that may be captured are captured as launch lists (runtime/launch_list.h) and
// replayed: another token count only changes the sizes in the lists, and a bound tensor only changes the addresses into
// it. The other steps are resolved when they run (runtime/step_by_step.h). A run looks up no names and allocates
// nothing, except to make a capture that it is the first to need.
//
// On a device (ReplaySettings::device) all bound tensors are in the device's memory, or in memory that it shares with
// the host. A run then only queues work: results are ready once the device was synchronized. Each captured graph serves
// one size.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/first_time_work.h"
#include "base/timeline.h"
#include "runtime/check_replay.h"
#include "runtime/launch_graph.h"
#include "runtime/launch_key.h"
#include "runtime/launch_times.h"
#include "runtime/replay_mode.h"
#include "runtime/step_by_step.h"

namespace weft {

namespace cuda {
class StreamDevice;
}

struct ReplaySettings {
  // Runs captured stretches a second time step by step, and compares every bit (runtime/check_replay.h).
  bool check = false;
  FirstTimeWork* first_time_work = nullptr;     // counts captures and memory; may be null
  LaunchGraphBuilder* graph_builder = nullptr;  // null: the device's
  cuda::StreamDevice* device = nullptr;         // null: the CPU
  Timeline* timeline = nullptr;                 // of captures and launches; null for none
  // Memory to use as the Plan's arena, at least as large as the Plan needs; null: the Replay allocates its own. Replays
  // that run one at a time may share one arena. A run then overwrites the results of the other Replays' last runs.
  std::shared_ptr<Storage> arena = nullptr;
  std::function<void(const std::string&)> on_launch_graph = {};  // receives what was captured and the time it took
};

// A capture that serves only the runs of one size.
struct SizeGraph {
  ReplayMode mode = ReplayMode::none;  // simple
  std::vector<std::int64_t> numbers;   // LaunchKey's numbers, over all captured launches
  std::string text;                    // "s0 = 8, 8 sequences of 32 pages"
  double milliseconds = 0;
  LaunchGraphCost cost;  // over all stretches
  std::string failure;   // the device's error; without a capture, runs of this size go step by step
};

// Counts since the Replay was constructed.
struct ReplayCounts {
  std::int64_t runs = 0;
  std::int64_t captures = 0;  // stretches of steps
  double launch_graph_milliseconds = 0;
  std::int64_t resolved = 0;  // changes of the symbols that updated a launch list
  // Counts name look-ups and allocations after construction, outside capture. run() does none; tensor() and checks may.
  std::int64_t look_ups = 0;
  std::int64_t allocations = 0;
};

class Replay {
 public:
  // `groups` are those of the rank that runs the Plan; null for a process without ranks.
  Replay(std::shared_ptr<const Plan> plan, ThreadPool& threads, const RankGroups* groups = nullptr,
         ReplaySettings settings = {});
  ~Replay();
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  const Plan& plan() const { return *bound_.plan; }
  std::int64_t arena_bytes() const { return bound_.arena->bytes(); }
  // Bytes of the arena that the runs so far touched, in whole pages of the system. This is the largest of all runs,
  // because the arena is never shrunk. Huge pages count by 2 MiB. An arena below 1 MiB counts as a whole, because it is
  // cleared when it is made. nullopt before the first run, and for device memory.
  std::optional<std::int64_t> arena_bytes_taken() const;

  // Binds a tensor to input `index` (its position among the graph's inputs) until another one is bound. UserError when
  // the type does not fit: `[forward] input kv_3 must be kv[..], but is ..`. DeviceError when the tensor is not in the
  // memory of the Replay's device; all launches go to that device's stream.
  void bind(std::size_t index, const Tensor& tensor);

  // Makes the captures of `mode`, which is simple; does nothing when they exist. One capture serves every token count.
  void capture(ReplayMode mode);
  // The same, and captures the sizes of the bound tensors where a device captures each size separately.
  void capture_bound(ReplayMode mode);
  // The captures of single sizes, in the order in which they were made.
  const std::vector<SizeGraph>& size_graphs() const { return size_graphs_; }
  // The stretches that `mode` runs in; empty before it was captured.
  const std::vector<Stretch>& stretches(ReplayMode mode) const;

  // Runs every step over the bound tensors; captures first where that was not done. InternalError when an input is not
  // bound. The values of the symbols are read from the bound tensors; a value outside the Plan's bounds is an
  // InternalError. Where a symbol is 0 and no result has elements, nothing runs; where a result has elements, such as a
  // sum over all rows, the steps run uncaptured.
  void run(ReplayMode mode = ReplayMode::full);

  // Result `index` of the last run: a view of the arena or of a bound tensor. It is valid until the next run. On a
  // device the data is ready once the device was synchronized.
  const Tensor& result(std::size_t index) const;
  // The tensor that a view of the Plan refers to, valid until a step writes over it. Its sizes are those of the last
  // run; for an observer, those of the current run.
  Tensor tensor(const PlanView& view) const;
  // The same in memory that the host can read. Where the host cannot read the device's memory, this waits and copies.
  Tensor tensor_on_host(const PlanView& view) const;

  const ReplayCounts& counts() const { return counts_; }

  // Called after every step with its index, for profiles; may be null.
  StepObserver observer;
  // Called before the first step of each run; may be null.
  std::function<void()> on_start;
  // Every kernel call adds its time to it; may be null.
  LaunchTimes* launch_times = nullptr;

 private:
  struct SymbolSource {  // an extent that gives the value of a symbol
    std::size_t slot;
    std::size_t dim;
    std::size_t symbol;
  };
  struct Captured {
    std::vector<Stretch> stretches;
    std::vector<std::unique_ptr<LaunchGraph>> launches;  // by stretch; null where it is not captured
    LaunchKey key;                                       // of all captured launches
  };

  void place_scalars();
  void find_symbols();
  void number_results();
  void read_symbols();
  void resolve();
  bool capture_sizes(ReplayMode mode);
  SizeGraph build_launch_graphs(ReplayMode mode);
  void count_launch_graph(double milliseconds);
  template <class Run>
  void launch(std::size_t step, const StepObserver& observe, Run run);
  SymbolicView numbered(const PlanView& view) const;
  bool hides_memory() const;  // from the host
  bool gives_rows_alone() const;
  bool shows_launches() const;
  void run_captured(const Captured& captured, const StepObserver& observe);
  void run_checked(const Captured& captured);
  void run_steps(std::size_t first, std::size_t last, const StepObserver& observe);
  void run_all_steps(const StepObserver& observe) { run_steps(0, plan().steps.size(), observe); }

  BoundPlan bound_;
  ReplaySettings settings_;
  HostLaunchGraphBuilder host_;
  std::size_t unbound_ = 0;  // inputs without a tensor

  std::vector<std::string> symbols_;
  std::vector<Interval> symbol_bounds_;
  std::vector<SymbolSource> symbol_sources_;
  std::vector<std::int64_t> values_, read_;  // of the symbols: in the last run, and while they are read
  std::vector<std::int64_t> numbers_;        // of a run whose size has its own capture; capture() reserves its memory
  bool is_resolved_ = false;                 // whether the list is resolved for values_

  std::vector<SymbolicView> result_views_;
  mutable std::vector<Tensor> results_;  // filled at each call of result()

  std::optional<StepByStep> steps_;      // set by the constructor
  std::unique_ptr<LaunchList> list_;     // once something was captured
  std::optional<Captured> captured_[3];  // by simple mode
  std::vector<SizeGraph> size_graphs_;
  mutable ReplayCounts counts_;
};

}  // namespace weft
