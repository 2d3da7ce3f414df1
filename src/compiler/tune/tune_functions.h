#pragma once

// Times the variants of generated functions (codegen/row_tuning.h) at exact row counts: first how the loops over
// columns are cut, then, with the best cut, how the rows are shared among threads.
//
// A measurement is an entry of a tuning database, as for a call: the function's name is the op, its buffers are the
// operands, its tunings are the providers, and `default` is the standard provider.

#include <span>
#include <string>
#include <vector>

#include "codegen/row_program.h"
#include "compiler/context.h"
#include "compiler/tune/tune.h"

namespace weft {

struct FunctionAtSize {
  const RowProgram* program = nullptr;  // with the default tuning; the program must outlive the call
  std::int64_t rows = 1;
  std::string computes;  // the ops as text, for reports
};

inline constexpr const char* kDefaultTuning = "default";
// The attribute of an entry that describes what its function computes.
inline constexpr const char* kComputes = "computes";

// Whether the entry measures a function.
bool is_function(const TuningEntry& entry);

// Adds the measurements that the database lacks; equal functions at equal sizes are measured once. It stops as tune()
// does. Where no code can be generated, nothing is measured.
TuneReport tune_functions(const Context& context, std::span<const FunctionAtSize> functions, TuningDatabase& database,
                          const TuneOptions& options);

}  // namespace weft
