#include "compiler/check/batch_invariance.h"

#include <algorithm>
#include <map>

#include <fmt/ranges.h>

namespace weft {

std::vector<std::string> switched_off_by_batch_invariance(const Context& context) {
  if (!context.options.batch_invariant) return {};
  std::map<std::string, std::vector<std::string>> ops;  // by provider
  context.kernels.for_each([&](const Kernel& kernel) {
    const std::vector<std::string> listed = context.priorities.list(kernel.op);
    const bool is_listed = std::find(listed.begin(), listed.end(), kernel.provider) != listed.end();
    if (!kernel.batch_invariant && is_listed) ops[kernel.provider].push_back(kernel.op);
  });
  if (ops.empty()) return {"--batch-invariant switches off none of the kernels that would be chosen from"};
  std::vector<std::string> sentences;
  for (const auto& [provider, names] : ops)
    sentences.push_back(
        fmt::format("--batch-invariant switches off {} for {}: a row's result could depend on the other rows of its "
                    "batch",
                    provider, fmt::join(names, ", ")));
  return sentences;
}

}  // namespace weft
