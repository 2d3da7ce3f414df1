#pragma once

// `weft bench functions` times generated functions against a copy of the bytes that they move.
//
// A function runs in two ways. First on all threads, with enough rows that its data exceeds the caches, in rounds that
// alternate with a plain copy (copy.h). Then on one thread, with a few rows that fit in a core's L1 cache, which
// gives the time of the computation alone. Bytes are those of the cache lines that contain a row's elements; data that
// all rows share is not counted.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "compiler/context.h"
#include "runtime/plan.h"

namespace weft {

struct FunctionBenchOptions {
  std::int64_t bytes = 0;  // least number of bytes to move; must exceed the caches
  std::int64_t rounds = 5;
  std::function<double()> clock;  // seconds, from any start
};

struct FunctionBenchRow {
  std::string function;  // its name
  std::string call;      // rows_..(f32[s0, 576], f32[576]) -> i8[s0, 576]
  std::int64_t rows = 0;
  std::int64_t row_bytes = 0;                 // moved for a row; overwritten bytes count twice
  std::vector<double> seconds, copy_seconds;  // time of all rows, by round
  double row_seconds = 0;                     // time of a row in a core's own cache, on one thread

  double best() const;       // above 0
  double copy_best() const;  // above 0
  double percent_of_copy() const { return 100 * copy_best() / best(); }
};

// Returns the steps of a Plan that call generated functions, one step for each function.
std::vector<const PlanStep*> generated_steps(const Plan& plan);

// Returns nothing for a function without rows, which reads and writes the same data for each row count.
std::optional<FunctionBenchRow> bench_function(const Context& context, const Plan& plan, const PlanStep& step,
                                               const FunctionBenchOptions& options);

// Returns the op's first sample as a Plan with a symbol as its row count, in which each op is computed by its
// definition. It has `columns` columns where the op's shapes allow this. Returns null if the op has no such sample in
// this dtype.
std::shared_ptr<const Plan> native_plan(Context& context, const Op& op, DType dtype, std::int64_t columns);

}  // namespace weft
