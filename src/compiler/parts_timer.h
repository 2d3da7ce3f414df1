#pragma once

// Times what a fused op stands for: its meaning, each part of it by the kernel that would run it in a model, one after
// another. KernelTimer times the fused kernel beside it. Or an op as a model computes it: by whoever is chosen for it.

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <vector>

#include "compiler/context.h"
#include "runtime/replay.h"

namespace weft {

// The ops that only fusions put into graphs: of each pattern what `after` has and `before` has not.
std::set<std::string> fused_ops(const Context& context);

enum class TimedForm : std::uint8_t { parts, op };

class PartsTimer {
 public:
  // Operands in schema order, undefined where absent; all may be written over. Kernels are chosen for `range`. The
  // Context outlives the timer.
  PartsTimer(const Context& context, const Op& op, const std::vector<Tensor>& operands, const Attributes& attributes,
             TokenRange range, TimedForm form = TimedForm::parts);

  // Seconds of one run, by a clock that gives seconds from any start.
  double seconds(const std::function<double()>& clock);

 private:
  std::unique_ptr<Replay> replay_;
};

}  // namespace weft
