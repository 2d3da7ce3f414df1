#pragma once

// The ops at which a graph is split. The default is `attention`; vLLM's names of ops are accepted.

#include <string>
#include <vector>

#include "ir/op.h"

namespace weft {

// The names of -cc.splitting_ops in order as ops of this program, without duplicates. vLLM's ops without a counterpart
// here are left out. UserError, with the nearest name, for what is neither vLLM's nor in `ops`.
std::vector<std::string> resolve_splitting_ops(const std::vector<std::string>& given, const OpTable& ops);

// The names among those given that are vLLM's ops without a counterpart here: no graph has them.
std::vector<std::string> splitting_ops_without_counterpart(const std::vector<std::string>& given);

}  // namespace weft
