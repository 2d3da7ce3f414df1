#pragma once

// Runs of one kernel in guarded memory, on calls made from its op's samples.

#include <optional>
#include <string>
#include <vector>

#include "apps/cli/plugin_check/guarded_memory.h"
#include "compiler/context.h"
#include "compiler/sample_call.h"

namespace weft::plugin_check {

// The call with `rows` rows alone, from row `first` on, of every operand that has as many rows as the op's own; nothing
// when it has none, or its rows are not for themselves (attention, a reduction over dim 0).
std::optional<SampleCall> with_rows(const Op& op, const SampleCall& call, std::int64_t first, std::int64_t rows);

struct TrialRun {
  std::optional<std::string> refusal;  // the kernel does not support the call; then nothing else is set
  std::vector<Tensor> results;         // in memory of their own
  std::string breach;                  // what it did beside its buffers, or to operands that are not its own
};

// `fill` stands in every result before the kernel runs.
TrialRun run_guarded(const Op& op, const Kernel& kernel, const OpTable& ops, const SampleCall& call, std::byte fill,
                     FaultRecord& record, ThreadPool& threads);

}  // namespace weft::plugin_check
