#pragma once

// Runs a Plan over bound tensors. What may be captured is captured as launch lists (runtime/launch_list.h) and
// replayed; a run with another token count only changes the sizes in them, and a bound tensor only the addresses that
// look into it. What is not captured is resolved step by step (runtime/step_by_step.h). Either way a run looks nothing
// up by name and allocates nothing, but to capture what it is the first to need.
//
// On a device (ReplaySettings::device) all bound tensors are the device's, or of memory that it shares with the host. A
// run then only queues: results are there once the device was synchronized. Captures are graphs of one size each.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/first_time_work.h"
#include "base/timeline.h"
#include "runtime/capture.h"
#include "runtime/check_replay.h"
#include "runtime/launch_key.h"
#include "runtime/launch_times.h"
#include "runtime/replay_mode.h"
#include "runtime/step_by_step.h"

namespace weft {

namespace cuda {
class StreamDevice;
}

struct ReplaySettings {
  // Runs everything that is captured a second time step by step, and compares every bit (runtime/check_replay.h).
  bool check = false;
  FirstTimeWork* first_time_work = nullptr;  // counts captures and memory; null: nobody counts
  Capturer* capturer = nullptr;              // null: the device's
  cuda::StreamDevice* device = nullptr;      // null: the CPU
  Timeline* timeline = nullptr;              // of captures and launches; null for none
  // The Plan's memory, large enough for it, in the place of its own: of Replays of which one at a time runs. A run then
  // writes over the results of the others' last.
  std::shared_ptr<Storage> arena = nullptr;
  std::function<void(const std::string&)> on_capture = {};  // told what was captured and how long that took
};

// A capture that serves the runs of one size alone.
struct SizeCapture {
  ReplayMode mode = ReplayMode::none;  // simple
  std::vector<std::int64_t> numbers;   // LaunchKey's, of all that is captured
  std::string text;                    // "s0 = 8, 8 sequences of 32 pages"
  double milliseconds = 0;
  CaptureCost cost;     // of all stretches
  std::string failure;  // of the device, for which it is not captured; runs of this size then go step by step
};

// Since the Replay was made.
struct ReplayCounts {
  std::int64_t runs = 0;
  std::int64_t captures = 0;  // stretches of steps
  double capture_milliseconds = 0;
  std::int64_t resolved = 0;  // changes of the symbols that went over a launch list
  // Views whose symbols were looked up by name, and arrays that were made or had to grow, once the Replay was there and
  // not to capture: none by runs, those of whoever asks for a view (tensor, a check).
  std::int64_t look_ups = 0;
  std::int64_t allocations = 0;
};

class Replay {
 public:
  // `groups`: those of the rank that runs it, null for a process that is alone.
  Replay(std::shared_ptr<const Plan> plan, ThreadPool& threads, const RankGroups* groups = nullptr,
         ReplaySettings settings = {});
  ~Replay();
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  const Plan& plan() const { return *bound_.plan; }
  std::int64_t arena_bytes() const { return bound_.arena->bytes(); }
  // What the runs so far took of it, in whole pages of the system: the most that one of them did, as nothing is given
  // back. By 2 MiB where pages are huge, and all of an arena below 1 MiB, which is cleared when it is made. Nothing
  // before the first run, and of a device's memory.
  std::optional<std::int64_t> arena_bytes_taken() const;

  // Gives input `index` (position among the graph's inputs) its tensor. It stays until bound again. UserError when the
  // type does not fit: `[forward] input kv_3 must be kv[..], but is ..`; DeviceError when it does not lie in the
  // memory of the Replay's device, to whose stream all launches go.
  void bind(std::size_t index, const Tensor& tensor);

  // Captures what `mode`, which is simple, captures; nothing when that was done. One capture serves every token count.
  void capture(ReplayMode mode);
  // The same for a run over what is bound, whose sizes a device captures apart.
  void capture_bound(ReplayMode mode);
  // Those that were captured apart, in the order in which they were.
  const std::vector<SizeCapture>& size_captures() const { return size_captures_; }
  // The stretches that `mode` runs in; none before it was captured.
  const std::vector<Stretch>& stretches(ReplayMode mode) const;

  // Runs every step over what is bound, captured first where that was not done. InternalError when an input is missing.
  // The symbols are read off the bound tensors; a value outside the plan's bounds is an InternalError. Where a symbol
  // is 0 nothing runs, or where there are results without rows, such as a sum over them all, every step by itself.
  void run(ReplayMode mode = ReplayMode::full);

  // Result `index` of the last run; a view of the arena or of a bound tensor. It and what it refers to are valid until
  // the next run. A device's is there once that was synchronized.
  const Tensor& result(std::size_t index) const;
  // What a view of the Plan looks into, valid until a step writes over it: in the last run's sizes, for an observer in
  // this run's.
  Tensor tensor(const PlanView& view) const;
  // The same where the host reads it: of a device whose memory it does not, a copy as it is now, which waits.
  Tensor tensor_on_host(const PlanView& view) const;

  const ReplayCounts& counts() const { return counts_; }

  // Called after every step with its index, for profiles; null for none.
  StepObserver observer;
  // Called before the first step of each run; null for none.
  std::function<void()> on_start;
  // Every kernel's call adds to it; null for none.
  LaunchTimes* launch_times = nullptr;

 private:
  struct SymbolSource {  // an extent that says what a symbol is
    std::size_t slot;
    std::size_t dim;
    std::size_t symbol;
  };
  struct Captured {
    std::vector<Stretch> stretches;
    std::vector<std::unique_ptr<CapturedLaunches>> launches;  // by stretch; null for those that are not captured
    LaunchKey key;                                            // of all of it
  };

  void place_scalars();
  void find_symbols();
  void number_results();
  void read_symbols();
  void resolve();
  bool capture_sizes(ReplayMode mode);
  SizeCapture capture_stretches(ReplayMode mode);
  void count_capture(double milliseconds);
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
  HostCapturer host_;
  std::size_t unbound_ = 0;  // inputs without a tensor

  std::vector<std::string> symbols_;
  std::vector<Interval> symbol_bounds_;
  std::vector<SymbolSource> symbol_sources_;
  std::vector<std::int64_t> values_, read_;  // of the symbols, in the last run and as they are read
  std::vector<std::int64_t> numbers_;        // of a run whose sizes are captured apart; capture() takes its memory
  bool is_resolved_ = false;                 // whether the list's sizes are those of values_

  std::vector<SymbolicView> result_views_;
  mutable std::vector<Tensor> results_;  // filled anew whenever somebody asks

  std::optional<StepByStep> steps_;      // made with all else
  std::unique_ptr<LaunchList> list_;     // once something was captured
  std::optional<Captured> captured_[3];  // by simple mode
  std::vector<SizeCapture> size_captures_;
  mutable ReplayCounts counts_;
};

}  // namespace weft
