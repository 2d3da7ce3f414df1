#pragma once

// Times generated functions against a copy of the bytes they move: `weft bench functions`.
//
// A function runs on so many rows that what it reads and writes exceeds the caches, in rounds that alternate with a
// plain copy (bench_copy.h), all threads at work; and on a few rows that lie in one core's first cache, on one thread,
// which says what computing alone takes. Bytes are those of the cache lines that a row's elements lie in; what all rows
// share is not counted.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "compiler/context.h"
#include "runtime/plan.h"

namespace weft {

struct FunctionBenchOptions {
  std::int64_t bytes = 0;  // moved at least; beyond the caches
  std::int64_t rounds = 5;
  std::function<double()> clock;  // seconds, from any start
};

struct FunctionBenchRow {
  std::string function;  // its name
  std::string call;      // rows_..(f32[s0, 576], f32[576]) -> i8[s0, 576]
  std::int64_t rows = 0;
  std::int64_t row_bytes = 0;                 // moved for a row; what is written over counts twice
  std::vector<double> seconds, copy_seconds;  // of all rows, by round
  double row_seconds = 0;                     // of a row in a core's own cache, on one thread

  double best() const;       // above 0
  double copy_best() const;  // above 0
  double percent_of_copy() const { return 100 * copy_best() / best(); }
};

// The steps of a Plan that call generated functions, each function once.
std::vector<const PlanStep*> generated_steps(const Plan& plan);

// Nothing for a function without rows of its own: all it reads and writes is the same whatever the row count.
std::optional<FunctionBenchRow> bench_function(const Context& context, const Plan& plan, const PlanStep& step,
                                               const FunctionBenchOptions& options);

// The op's first sample as a Plan whose row count is a symbol, every op computed by its meaning; as many columns as
// asked for where its shapes allow. Null for an op that has no such sample in this dtype.
std::shared_ptr<const Plan> native_plan(Context& context, const Op& op, DType dtype, std::int64_t columns);

}  // namespace weft
