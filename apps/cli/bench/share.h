#pragma once

// The time that a test of `bench model` would take if the machine read memory and multiplied at its peak rates.

#include "apps/cli/bench/model.h"
#include "apps/cli/peak_rates.h"
#include "engine/compile/model_compilation.h"

namespace weft {

// Adds the least times of the test's steps, each with all weights and pages from memory. Call it before the model drops
// what only compiling needs.
LeastTime least_time(ModelCompilation& model, const BenchTest& test, const PeakRates& peaks);

}  // namespace weft
