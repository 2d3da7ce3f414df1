#pragma once

// `weft bench ops --fusions` times each fused op against its parts.
//
// A fused op is an op that only fusions put into graphs. Its parts are the ops of its definition, which a model runs
// when nothing is fused: with the kernels that the priority lists choose, or in generated code where they choose none.
// Rounds are interleaved with a plain copy that reads, overwrites and writes as many bytes as the fused op must, with
// ordinary stores. Calls that are too large for a core's own caches cycle through 128 MiB of buffers, so that their
// data comes from memory. Smaller calls find their operands in the caches, where the op before them would have left
// them.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "compiler/context.h"

namespace weft {

struct FusionBenchOptions {
  std::vector<std::string> ops;  // empty: all fused ops
  std::vector<std::int64_t> rows = {1, 512};
  std::vector<std::int64_t> columns = {576, 4096, 14336};  // of the op's first result, such as the codes
  std::int64_t group = 0;  // group_size for ops that have one; 0: that of the op's sample
  std::int64_t rounds = 15;
  std::function<double()> clock;  // seconds, from any start
};

// One implementation of the same results.
struct FusionContender {
  std::string kernels;          // such as silu_and_mul@cpu, several joined by +; `generated` for generated code
  std::int64_t bytes = 0;       // of operands and results of all kernels; of KV pages only the written bytes
  std::vector<double> seconds;  // time of one run, by round

  double best() const;  // above 0
};

struct FusionBenchRow {
  std::string op;
  std::string call;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t iterations = 1;  // number of buffers that the runs cycle through
  FusionContender unfused, fused, copy;

  double ratio() const { return unfused.best() / fused.best(); }
  double percent_of_copy() const { return 100 * copy.best() / fused.best(); }
};

// Returns the names of the fused ops that one process can measure: all but those over ranks.
std::vector<std::string> benched_fusions(const Context& context);

// Throws UserError for an op that does not exist or is not fused.
void check_fusion_bench(const Context& context, const FusionBenchOptions& options);

// Calls on_row with each row when it is measured. The call is the op's sample with these rows, columns and group
// (`resized`). Throws UserError if the op cannot have that many columns. Call check_fusion_bench first.
void bench_fusions(const Context& context, const FusionBenchOptions& options,
                   const std::function<void(const FusionBenchRow&)>& on_row);

}  // namespace weft
