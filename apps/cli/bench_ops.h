#pragma once

// Times every kernel of an op on calls made from the op's samples, with as many rows as asked for; the linear family
// also on the shapes of a small model.
//
// A provider is timed on a weight as it would be loaded for it. Rounds are interleaved, so that what disturbs the
// machine disturbs all providers alike, and large weights take turns, so that they come from memory, as those of layers
// do; everything else lies in caches where it fits. `reference` is left out where it is not named and has a rival, as
// is the meaning of a composite.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "compiler/context.h"

namespace weft {

struct OpBenchOptions {
  std::vector<std::string> ops;        // empty: all that have a kernel and a sample
  std::vector<std::string> providers;  // empty: all
  std::vector<std::int64_t> rows = {1, 512};
  std::int64_t rounds = 5;
  // Seconds, from any start.
  std::function<double()> clock;
};

// What --batch-invariant costs one call.
struct InvarianceCost {
  std::string chosen;          // with it
  std::string without;         // the provider chosen without it
  std::optional<double> cost;  // time with it over time without it; nothing where the meaning of a composite runs
};

struct OpBenchRow {
  std::string op;
  std::string call;
  std::string provider;
  std::int64_t rows = 0;        // of the operand that counts them; 1 for an op without rows
  std::vector<double> seconds;  // of one call, by round
  // Of operands and results, as if plain. Of a table only what is picked, of KV pages nothing where they are written.
  std::int64_t bytes = 0;
  std::int64_t operations = 0;  // of the linear family: a multiplication and an addition for each product; else 0
  std::optional<InvarianceCost> invariance;  // when the option is on

  double best() const;  // above 0
  double median() const;
};

struct OpBenchRefusal {
  std::string op;
  std::string call;
  std::string provider;
  std::string reason;
};

// UserError for an op or provider that there is not, with the nearest name, and an op that cannot be measured.
void check_op_bench(const Context& context, const OpBenchOptions& options);

// Hands over each row as it was measured, and each call that a provider refuses. After check_op_bench.
void bench_ops(const Context& context, const OpBenchOptions& options,
               const std::function<void(const OpBenchRow&)>& on_row,
               const std::function<void(const OpBenchRefusal&)>& on_refusal);

}  // namespace weft
