#pragma once

// What the passes of one graph are run with, as the Context says.

#include <vector>

#include "compiler/pass_runner.h"

namespace weft {

// The context of passes that run on one graph for one range. It refers to the Context, and to `priorities` if given.
PassContext pass_context(const Context& context, TokenRange range);
PassContext pass_context(const Context& context, TokenRange range, const PriorityLists& priorities);

// The built-in passes and the Context's own; each of the latter runs after all others of its stage.
std::vector<PassRow> passes_of(const Context& context);

// Sets the bounds of the governing symbol, which the passes see, to the range.
void bound_rows(Graph& graph, TokenRange range);

// The runner's options that follow from the Context's options.
PassRunnerOptions pass_runner_options(const Options& options);

}  // namespace weft
