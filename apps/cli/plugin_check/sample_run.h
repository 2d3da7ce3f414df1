#pragma once

// Calls made from an op's samples, and runs of one kernel on them in guarded memory.

#include <optional>
#include <string>
#include <vector>

#include "apps/cli/plugin_check/guarded_memory.h"
#include "compiler/context.h"

namespace weft::plugin_check {

struct TrialCall {
  std::vector<Tensor> operands;  // schema order; undefined for an absent optional tensor
  Attributes attributes;         // complete
  std::string text;              // what it is, for messages
};

// Every sample of the op, with f32, bf16 and f16 where one of its tensors takes the dtype under test.
std::vector<TrialCall> trial_calls(const Op& op);

// nullopt for absent operands.
std::vector<std::optional<Meta>> metas_of(const std::vector<Tensor>& tensors);

// The call with `rows` rows alone, from row `first` on, of every operand that has as many rows as the op's own; nothing
// when it has none, or its rows are not for themselves (attention, a reduction over dim 0).
std::optional<TrialCall> with_rows(const Op& op, const TrialCall& call, std::int64_t first, std::int64_t rows);

// "" when every element of `came` is that of `wanted` within the tolerance, else the first that is not. A NaN equals
// any NaN.
std::string difference(const Tensor& wanted, const Tensor& came, Tolerance tolerance);

struct TrialRun {
  std::optional<std::string> refusal;  // the kernel does not support the call; then nothing else is set
  std::vector<Tensor> results;         // in memory of their own
  std::string breach;                  // what it did beside its buffers, or to operands that are not its own
};

// `fill` stands in every result before the kernel runs.
TrialRun run_guarded(const Op& op, const Kernel& kernel, const OpTable& ops, const TrialCall& call, std::byte fill,
                     FaultRecord& record, ThreadPool& threads);

}  // namespace weft::plugin_check
