#pragma once

// `weft bench model --breakdown` measures where the time of a model's steps goes. The time of a step is the sum of
// three parts.
//
//   kernels   the calls of kernels, without their barriers. This includes work that a kernel does on one thread because
//             the work is too small to share or cannot be shared.
//   barriers  for each run that n threads share: the time of the run minus 1/n of the time that all threads spent in
//             chunks. This covers handing out chunks, waking threads, waiting for the last thread, and unequal shares.
//             If chunks are slower because threads compete for memory, that time counts as kernels.
//   rest      all time outside kernel calls: making tokens and the batch, binding inputs, choosing launches, and
//             iterating over them.
//
// Measured repetitions alternate with plain ones, which show the cost of measuring.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/json.h"
#include "engine/run/model_runner.h"
#include "parallel/thread_pool.h"

namespace weft {

// All numbers are for one step, averaged over a repetition. Times are in nanoseconds.
struct KernelTime {
  std::string kernel;  // such as linear_int8@cpu
  double calls = 0;
  double kernels = 0, barriers = 0;
};
struct StepBreakdown {
  double wall = 0, kernels = 0, barriers = 0;  // of the fastest measured repetition
  double alone = 0;                            // part of kernels: outside shared runs
  double plain = 0;                            // of the fastest repetition that was not measured
  double launches = 0, runs = 0;
  std::vector<KernelTime> by_kernel;  // longest first; from separate repetitions, because clocks cost time

  double rest() const { return wall - kernels - barriers; }
  double cost_of_measuring() const { return wall / plain - 1; }
};

class StepMeter {
 public:
  // The runner must have Plans. The runner and the threads must outlive the meter, and nothing else may use them.
  StepMeter(ModelRunner& runner, ThreadPool& threads);
  ~StepMeter();
  StepMeter(const StepMeter&) = delete;
  StepMeter& operator=(const StepMeter&) = delete;

  // `repetition` took `plain` nanoseconds for its `steps`. This runs it twice more and measures it.
  void measure(const std::function<void()>& repetition, std::int64_t steps, double plain);
  StepBreakdown breakdown() const { return best_; }

 private:
  void measure_parts(const std::function<void()>& repetition, double steps);
  void measure_kernels(const std::function<void()>& repetition, double steps);
  // Returns the part of a run's time in which threads did not compute.
  double barriers(const RunTimes& times) const;

  ModelRunner& runner_;
  ThreadPool& threads_;
  LaunchTimes launches_;
  RunTimes runs_;
  StepBreakdown best_;
};

// Adds the keys `step_*` (for one step, in nanoseconds or percent) and `kernels`.
void add_breakdown(Json& row, const StepBreakdown& breakdown);
// Returns two tables: the three parts of a step, and the times of each kernel.
std::string breakdown_markdown(const std::string& test, const StepBreakdown& breakdown);

}  // namespace weft
