#pragma once

// Times the variants of generated functions (codegen/row_tuning.h) at exact counts of rows: first how its loops over
// columns are cut, then, with the best of that, how its rows are shared among threads.
//
// A measurement is an entry of a tuning database like that of a call: the function's name for the op, its buffers for
// the operands, tunings for the providers, `default` the standard one.

#include <span>
#include <string>
#include <vector>

#include "codegen/row_program.h"
#include "compiler/context.h"
#include "compiler/tune.h"

namespace weft {

struct FunctionAtSize {
  const RowProgram* program = nullptr;  // with the default tuning; it outlives the call
  std::int64_t rows = 1;
  std::string computes;  // the ops, for people
};

inline constexpr const char* kDefaultTuning = "default";
// The attribute of an entry that says what its function computes.
inline constexpr const char* kComputes = "computes";

// Whether an entry is of a function.
bool is_function(const TuningEntry& entry);

// Adds what the database lacks; equal functions at equal sizes are one. Ends as tune() does. Where no code can be
// generated nothing is measured.
TuneReport tune_functions(const Context& context, std::span<const FunctionAtSize> functions, TuningDatabase& database,
                          const TuneOptions& options);

}  // namespace weft
