#pragma once

// Times one kernel on one call. Operands, results and scratch lie ready and stay: in a compiled model, too, results lie
// where memory has been before, and the system's work for fresh memory would be most of what is measured.

#include <functional>
#include <memory>
#include <vector>

#include "compiler/run_kernel.h"

namespace weft {

// A measurement lasts about this long: a call that is shorter is repeated.
inline constexpr double kTimingBatchSeconds = 0.002;

class KernelTimer {
 public:
  // Operands in schema order, undefined where absent; the kernel may write over those that it declares to, so they are
  // nobody else's. One that does not lie as the result in its place is copied at each run, as a model has to. The
  // Context and the kernel outlive the timer.
  KernelTimer(const Context& context, const Op& op, const Kernel& kernel, std::vector<Tensor> operands,
              Attributes attributes);
  KernelTimer(KernelTimer&&) = default;

  // Each run takes the next of these tensors, all of the operand's type, for an operand that is only read; the first
  // run takes number `first`.
  void take_turns(std::size_t operand, std::vector<Tensor> tensors, std::size_t first = 0);

  // Seconds of one run, the mean of `repeats` by a clock that gives seconds from any start.
  double seconds(const std::function<double()>& clock, int repeats = 1);

  // As the last run left them.
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
  std::size_t turning_ = 0;  // the operand whose views take turns
  std::vector<Tensor> turns_;
  std::vector<TensorView> turn_views_;
  std::size_t turn_ = 0;
};

// The tensor and copies of it that together exceed the caches, so that in turn they come from memory, as the weights of
// a model's layers do.
std::vector<Tensor> copies_beyond_caches(const Tensor& tensor);

// Another tensor with the same contents; of a batch the same, as nobody writes to it.
Tensor duplicate(const Tensor& tensor);

}  // namespace weft
