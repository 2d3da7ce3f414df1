#pragma once

// Times each fused op against its parts: `weft bench ops --fusions`.
//
// A fused op is one that only fusions put into graphs. Its parts are the ops that it means, as a model runs them where
// nothing is fused: by the kernels that the priority lists choose, in generated code where they choose none. Rounds are
// interleaved with a plain copy that reads, writes over and writes as many bytes as the fused op has to, with ordinary
// stores. Calls too large for a core's own caches take turns through 128 MiB of buffers, so that they come from memory;
// smaller ones find their operands where the op before them would have left them.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "compiler/context.h"

namespace weft {

struct FusionBenchOptions {
  std::vector<std::string> ops;  // empty: all fused ops
  std::vector<std::int64_t> rows = {1, 512};
  std::vector<std::int64_t> columns = {576, 4096, 14336};  // of the codes, or whatever the op's first result is
  std::int64_t group = 0;  // the group_size of ops that have one; 0: that of their sample
  std::int64_t rounds = 15;
  std::function<double()> clock;  // seconds, from any start
};

// One way to the same results.
struct FusionContender {
  std::string kernels;          // as silu_and_mul@cpu, several joined by +, `generated` for generated code
  std::int64_t bytes = 0;       // of operands and results, of all kernels; of KV pages that are written what is written
  std::vector<double> seconds;  // of one run, by round

  double best() const;  // above 0
};

struct FusionBenchRow {
  std::string op;
  std::string call;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t turns = 1;  // buffers that took turns
  FusionContender unfused, fused, copy;

  double ratio() const { return unfused.best() / fused.best(); }
  double percent_of_copy() const { return 100 * copy.best() / fused.best(); }
};

// The fused ops that can be measured by one process, by name: not those over ranks.
std::vector<std::string> benched_fusions(const Context& context);

// UserError for an op that is not there or is not fused.
void check_fusion_bench(const Context& context, const FusionBenchOptions& options);

// Hands over each row as it was measured, on the op's sample with these rows, columns and group (`resized`).
// UserError where it cannot have that many columns. After check_fusion_bench.
void bench_fusions(const Context& context, const FusionBenchOptions& options,
                   const std::function<void(const FusionBenchRow&)>& on_row);

}  // namespace weft
