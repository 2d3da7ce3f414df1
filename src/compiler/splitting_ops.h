#pragma once

// Which ops force a cut. The default is `attention`; names that vLLM's users paste are read as Weft's.

#include <string>
#include <vector>

#include "base/options.h"

namespace weft {

// The names of -cc.splitting_ops, aliases resolved, in order and without repetition. Names that this program does not
// know are kept: an op of that name may come from elsewhere, and one that never occurs cuts nothing.
std::vector<std::string> resolve_splitting_ops(const CodeOptions& options);

}  // namespace weft
