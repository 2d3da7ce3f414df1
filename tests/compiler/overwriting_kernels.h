#pragma once

// Kernels of a provider `over` that really write over their arguments, for ops whose own kernels do or do not.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/test_context.h"

namespace weft {

// The overwritten arguments: ops and indices of their arguments.
using Overwritten = std::vector<std::pair<std::string, std::vector<int>>>;

// A Context in which each of these ops prefers its `over` kernel: the cpu kernel, with results in the memory of these
// arguments. It also has bump(x, y) = x + y, which donates x, with a kernel bump@over that overwrites x. These kernels
// fill the memory that they overwrite with garbage before they read their other arguments.
std::shared_ptr<Context> overwriting_context(const Overwritten& overwritten, std::vector<std::string> splitting_ops);

}  // namespace weft
