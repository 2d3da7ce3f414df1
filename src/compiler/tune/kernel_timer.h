#pragma once

// Times one kernel on one call. Operands, results and scratch are allocated once and reused: results of a compiled
// model also use memory that was used before, and page faults of fresh memory would be most of the measured time.

#include <functional>
#include <memory>
#include <vector>

#include "compiler/run/run_kernel.h"

namespace weft {

// A measurement lasts about this long: a shorter call is repeated.
inline constexpr double kTimingBatchSeconds = 0.002;

class KernelTimer {
 public:
  // Operands are in schema order, undefined where absent. The kernel may overwrite those that it declares as written,
  // so the caller must not share them. An operand that is not laid out like the result in its storage is copied at each
  // run, as a model must do. The Context and the kernel must outlive the timer.
  KernelTimer(const Context& context, const Op& op, const Kernel& kernel, std::vector<Tensor> operands,
              Attributes attributes);
  KernelTimer(KernelTimer&&) = default;

  // For an operand that is only read: each run uses the next of these tensors, all of the operand's type, in a cycle;
  // the first run uses index `first`.
  void take_turns(std::size_t operand, std::vector<Tensor> tensors, std::size_t first = 0);

  // Seconds of one run, the mean of `repeats`. `clock` returns seconds from any origin.
  double seconds(const std::function<double()>& clock, int repeats = 1);

  // The results of the last run.
  const std::vector<Tensor>& results() const { return results_; }

 private:
  struct Copied {
    Tensor from, to;
  };
  void run();

  const Context& context_;
  const Kernel& kernel_;
  Attributes attributes_;
  bool is_empty_;
  std::vector<Tensor> operands_, results_;
  std::vector<Copied> copied_;
  std::shared_ptr<Storage> scratch_;
  std::vector<TensorView> operand_views_, result_views_;
  std::size_t turning_ = 0;  // the operand that cycles through turns_
  std::vector<Tensor> turns_;
  std::vector<TensorView> turn_views_;
  std::size_t turn_ = 0;
};

// The tensor and enough copies that together they exceed the caches. A cycle through them reads from memory, as a model
// reads the weights of its layers.
std::vector<Tensor> copies_beyond_caches(const Tensor& tensor);

// A tensor with the same contents in memory of its own; a batch is not copied, as nothing writes to it.
Tensor duplicate(const Tensor& tensor);

}  // namespace weft
