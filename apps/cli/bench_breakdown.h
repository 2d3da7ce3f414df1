#pragma once

// Where the time of a model's steps goes: `weft bench model --breakdown`. The time of a step is the sum of three.
//
//   kernels   the calls of kernels, without their barriers. What a kernel does on one thread, because it is too little
//             to share or cannot be shared, is of it.
//   barriers  of every run that n threads share, its time less the n-th part of what all threads were in chunks. So
//             handing chunks out, waking a thread, waiting for the last one and unequal shares are barriers; what
//             chunks take longer because two threads want the same memory is kernels.
//   rest      what lies outside kernels' calls: tokens and batch made, inputs bound, launches chosen, the walk over
//             them.
//
// Repetitions that are measured alternate with plain ones, which say what measuring costs.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/thread_pool.h"
#include "engine/model_runner.h"

namespace weft {

// Of one step, on average over a repetition. Times in nanoseconds.
struct KernelTime {
  std::string kernel;  // as linear_int8@cpu
  double calls = 0;
  double kernels = 0, barriers = 0;
};
struct StepBreakdown {
  double wall = 0, kernels = 0, barriers = 0;  // of the fastest measured repetition
  double alone = 0;                            // of kernels: outside shared runs
  double plain = 0;                            // of the fastest repetition that was not measured
  double launches = 0, runs = 0;
  std::vector<KernelTime> by_kernel;  // the longest first; of repetitions of their own, as clocks take time

  double rest() const { return wall - kernels - barriers; }
  double cost_of_measuring() const { return wall / plain - 1; }
};

class StepMeter {
 public:
  // The runner has Plans. It and its threads outlive the meter and are used by nobody else.
  StepMeter(ModelRunner& runner, ThreadPool& threads);
  ~StepMeter();
  StepMeter(const StepMeter&) = delete;
  StepMeter& operator=(const StepMeter&) = delete;

  // `repetition` took `plain` nanoseconds for its `steps`; it is run twice more, measured.
  void measure(const std::function<void()>& repetition, std::int64_t steps, double plain);
  StepBreakdown breakdown() const { return best_; }

 private:
  void measure_parts(const std::function<void()>& repetition, double steps);
  void measure_kernels(const std::function<void()>& repetition, double steps);
  // What a run took in which threads did not compute.
  double barriers(const RunTimes& times) const;

  ModelRunner& runner_;
  ThreadPool& threads_;
  LaunchTimes launches_;
  RunTimes runs_;
  StepBreakdown best_;
};

// Keys that begin with `step_`, all of one step and in nanoseconds but for the percentages, and `kernels`.
void add_breakdown(Json& row, const StepBreakdown& breakdown);
// Two tables: the three parts, and each kernel's.
std::string breakdown_markdown(const std::string& test, const StepBreakdown& breakdown);

}  // namespace weft
