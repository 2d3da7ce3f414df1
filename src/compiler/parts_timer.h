#pragma once

// Times what a fused op stands for: its parts, each by the kernel that would run it in a model, one after another.
// KernelTimer times the fused kernel beside it. Or an op as a model computes it: by whoever is chosen for it.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "compiler/context.h"
#include "runtime/replay.h"

namespace weft {

// The ops that only fusions put into graphs: of each pattern what `after` has and `before` has not.
std::set<std::string> fused_ops(const Context& context);

// How a call is run: as what the op means, whose parts may be fused ops, too; as the op; or as what stands in a graph
// before any fusion.
enum class TimedForm : std::uint8_t { parts, op, unfused };

// One call as a model would run it, its inputs the operands that are there, all of which may be written over. Kernels
// are chosen for `range`.
std::shared_ptr<const Plan> plan_of_call(const Context& context, const Op& op,
                                         const std::vector<std::optional<Meta>>& operands, const Attributes& attributes,
                                         TokenRange range, TimedForm form);

class PartsTimer {
 public:
  // Operands in schema order, undefined where absent; all may be written over. The Context outlives the timer.
  PartsTimer(const Context& context, const Op& op, const std::vector<Tensor>& operands, const Attributes& attributes,
             TokenRange range, TimedForm form = TimedForm::parts);
  // Runs what plan_of_call gave for operands of these types.
  PartsTimer(const Context& context, std::shared_ptr<const Plan> plan, const std::vector<Tensor>& operands);

  // Seconds of one run, by a clock that gives seconds from any start.
  double seconds(const std::function<double()>& clock);

 private:
  std::unique_ptr<Replay> replay_;
};

}  // namespace weft
