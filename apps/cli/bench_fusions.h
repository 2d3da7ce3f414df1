#pragma once

// Times each fused op against the two ops that it means: `weft bench ops --fusions`.
//
// A fused op is one whose meaning is two calls, the second of a result of the first; all three are run by the kernels
// that the priority lists choose. Rounds are interleaved with a plain copy that reads, writes over and writes as many
// bytes as the fused op, with ordinary stores. Calls too large for a core's own caches take turns through 128 MiB of
// buffers, so that they come from memory; smaller ones find their operands where the op before them would have left
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
  std::vector<std::int64_t> columns = {576, 4096, 14336};  // of the codes, or whatever the op's first result is
  std::int64_t group = 0;  // the group_size of ops that have one; 0: that of their sample
  std::int64_t rounds = 15;
  std::function<double()> clock;  // seconds, from any start
};

// One way to the same results.
struct FusionContender {
  std::string kernels;          // as silu_and_mul@cpu, two joined by +
  std::int64_t bytes = 0;       // of operands and results, of both calls where there are two
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

// The ops that are fused, by name.
std::vector<std::string> fused_ops(const OpTable& ops);

// UserError for an op that is not there or is not fused.
void check_fusion_bench(const Context& context, const FusionBenchOptions& options);

// Hands over each row as it was measured, on the op's first sample with these rows, columns and group. UserError where
// it cannot have that many columns. After check_fusion_bench.
void bench_fusions(const Context& context, const FusionBenchOptions& options,
                   const std::function<void(const FusionBenchRow&)>& on_row);

}  // namespace weft
