#pragma once

// Times the parts of a fused op, each by the kernel that would run it in a model, one after another, for comparison
// with the fused kernel, which KernelTimer times. It can also time an op as a model computes it: by the provider that
// is chosen for it.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "compiler/context.h"
#include "runtime/replay.h"

namespace weft {

// The ops that only fusions put into graphs: for each pattern, the ops of `after` that `before` does not have.
std::set<std::string> fused_ops(const Context& context);

// How a call runs. parts: as the op's meaning, whose parts may be fused ops. op: as the op itself. unfused: as the
// nodes of a graph before any fusion.
enum class TimedForm : std::uint8_t { parts, op, unfused };

// One call as a model would run it. The Plan's inputs are the operands that are present; a run may overwrite all of
// them. Kernels are chosen for `range`.
std::shared_ptr<const Plan> plan_of_call(const Context& context, const Op& op,
                                         const std::vector<std::optional<Meta>>& operands, const Attributes& attributes,
                                         TokenRange range, TimedForm form);

class PartsTimer {
 public:
  // Operands are in schema order, undefined where absent; a run may overwrite all of them. The Context must outlive
  // the timer.
  PartsTimer(const Context& context, const Op& op, const std::vector<Tensor>& operands, const Attributes& attributes,
             TokenRange range, TimedForm form = TimedForm::parts);
  // Runs a Plan that plan_of_call returned for operands of these types.
  PartsTimer(const Context& context, std::shared_ptr<const Plan> plan, const std::vector<Tensor>& operands);

  // Seconds of one run. `clock` returns seconds from any origin.
  double seconds(const std::function<double()>& clock);

 private:
  std::unique_ptr<Replay> replay_;
};

}  // namespace weft
