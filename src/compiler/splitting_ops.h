#pragma once

// The ops at which a graph is split. The default is `attention`; vLLM's names of ops are accepted as aliases.

#include <string>
#include <vector>

#include "options/options.h"

namespace weft {

// The names of -cc.splitting_ops in order, with aliases resolved and duplicates removed. Unknown names are kept: the op
// may be in a plugin, and a name that never occurs splits nothing.
std::vector<std::string> resolve_splitting_ops(const CodeOptions& options);

}  // namespace weft
