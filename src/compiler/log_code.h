#pragma once

// The topics schedule and output_code of WEFT_LOGS: how pieces run, and the code of their functions.

#include "compiler/pieces.h"

namespace weft {

// schedule: for each piece how many functions, kernels and primitives without a function it runs, and why it has no
// functions; +schedule: each step with its nodes, and why a native node is in no function.
void log_schedule(const Context& context, const Graph& split, TokenRange range, const PieceSchedules& schedules);

// output_code: the row program of each function that is not in the Context yet, call this before it is compiled;
// +output_code: also the function as C++, or as CUDA C++ where the device runs it.
void log_output_code(const Context& context, const Graph& split, TokenRange range, const PieceSchedules& schedules);

}  // namespace weft
