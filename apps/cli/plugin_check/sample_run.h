#pragma once

// Runs one kernel in guarded memory, on calls made from its op's samples.

#include <optional>
#include <string>
#include <vector>

#include "apps/cli/plugin_check/guarded_memory.h"
#include "compiler/context.h"
#include "compiler/run/sample_call.h"

namespace weft::plugin_check {

// Returns the call with only the rows [first, first + rows) of each operand that has as many rows as the op. Returns
// nothing if no operand does, or if the rows depend on each other (attention, a reduction over dim 0).
std::optional<SampleCall> with_rows(const Op& op, const SampleCall& call, std::int64_t first, std::int64_t rows);

struct TrialRun {
  std::optional<std::string> refusal;  // why the kernel does not support the call; if set, all else is empty
  std::vector<Tensor> results;         // copied from guarded memory
  std::string breach;                  // writes outside its buffers, or to operands that it must not write
};

// Each byte of the results is `fill` before the kernel runs.
TrialRun run_guarded(const Op& op, const Kernel& kernel, const OpTable& ops, const SampleCall& call, std::byte fill,
                     FaultRecord& record, ThreadPool& threads);

}  // namespace weft::plugin_check
