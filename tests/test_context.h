#pragma once

// Contexts for tests, the instruction sets to test, and the folder of their dumps.

#include <memory>
#include <string>
#include <vector>

#include "compiler/context.h"
#include "compiler/run/sample_call.h"

namespace weft {

// A Context with everything of the program, limited to a level of instruction sets ("host" for no limit).
std::shared_ptr<Context> test_context(const std::string& cpu_features = "host", int threads = 2);

// The same without generated code: default choices are kernels.
std::shared_ptr<Context> kernel_context();

// The levels of instruction sets that this host has, lowest first. With a limit (WEFT_CPU_FEATURES) only that one;
// under ThreadSanitizer only the highest, because threads share the same data at each level.
std::vector<std::string> cpu_features_to_try();
// The highest of those with equally wide vectors, lowest first: generated code and the kernels of rows and of attention
// are the same for the others.
std::vector<std::string> vector_features_to_try();

// One and two threads; under ThreadSanitizer only two.
std::vector<int> thread_counts_to_try();
// The ceiling that WEFT_CPU_FEATURES names if this host lacks it, so that tests under it would repeat those of the
// highest level that the host has; else an empty string.
std::string unreached_ceiling();

// How the dumps after a pass of the pipeline begin: "12-lower.".
std::string dump_prefix(const std::string& pass);

}  // namespace weft
