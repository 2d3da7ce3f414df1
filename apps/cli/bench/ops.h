#pragma once

// Times each kernel of an op on calls made from the op's samples, with the requested row counts. It times the linear
// family also on the shapes of a small model.
//
// A provider is timed with a weight in the packing that it would have after loading. Rounds are interleaved, so that
// disturbances of the machine affect all providers equally. Large weights alternate, so that they come from memory, as
// the weights of layers do; all other data stays in the caches if it fits. `reference` is measured only if it is named
// or is the only provider; the same holds for the definition of a composite op.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "compiler/context.h"

namespace weft {

struct OpBenchOptions {
  std::vector<std::string> ops;        // empty: all ops that have a kernel and a sample
  std::vector<std::string> providers;  // empty: all
  std::vector<std::int64_t> rows = {1, 512};
  std::int64_t rounds = 5;
  // Returns seconds from any start.
  std::function<double()> clock;
};

// The cost of --batch-invariant for one call.
struct InvarianceCost {
  std::string chosen;          // the provider chosen with the option
  std::string without;         // the provider chosen without the option
  std::optional<double> cost;  // time with it / time without it; nothing if a composite op's definition runs
};

struct OpBenchRow {
  std::string op;
  std::string call;
  std::string provider;
  std::int64_t rows = 0;        // of the operand that counts rows; 1 for an op without rows
  std::vector<double> seconds;  // time of one call, by round
  // Bytes of operands and results, as if all were plain. Of a table only the gathered rows count; written KV pages do
  // not count.
  std::int64_t bytes = 0;
  std::int64_t operations = 0;               // for the linear family, two for each product (multiply, add); else 0
  DType operand = DType::f32;                // of these: the type of the layer's input
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

// Throws UserError for an unknown op or provider, with the nearest name, and for an op that cannot be measured.
void check_op_bench(const Context& context, const OpBenchOptions& options);

// Calls on_row with each row when it is measured, and on_refusal with each call that a provider refuses. Call
// check_op_bench first.
void bench_ops(const Context& context, const OpBenchOptions& options,
               const std::function<void(const OpBenchRow&)>& on_row,
               const std::function<void(const OpBenchRefusal&)>& on_refusal);

}  // namespace weft
