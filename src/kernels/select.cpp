#include "kernels/select.h"

#include <algorithm>

#include "base/error.h"

namespace weft {

std::vector<std::string> PriorityLists::list(const std::string& op) const {
  std::vector<std::string> names;
  auto append = [&](const std::vector<std::string>& more) {
    for (const std::string& name : more)
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  };
  if (auto found = user_.find(op); found != user_.end()) append(found->second);
  append(defaults_);
  append({"native"});
  return names;
}

Choice select_kernel(const KernelRegistry& registry, const PriorityLists& priorities, const std::string& op,
                     const KernelRequest& request, bool batch_invariant) {
  Choice choice;
  for (const std::string& provider : priorities.list(op)) {
    if (provider == "native") {
      // The reference kernel where the op is a primitive; none where its meaning stands in its place.
      choice.provider = "native";
      choice.reason = choice.refused.empty() ? "first in the priority list" : "the last resort, which is always there";
      return choice;
    }
    const Kernel* kernel = registry.find(op, provider);
    if (kernel == nullptr) {
      std::string reason = registry.refusal(op, provider);
      choice.refused.push_back({provider, reason.empty() ? "has no kernel for " + op : reason});
      continue;
    }
    if (batch_invariant && !kernel->batch_invariant) {
      choice.refused.push_back({provider, "depends on the other rows of the batch"});
      continue;
    }
    const Verdict verdict = kernel->supports(request);
    if (!verdict) {
      choice.refused.push_back({provider, verdict.reason()});
      continue;
    }
    choice.provider = provider;
    choice.kernel = kernel;
    choice.reason =
        choice.refused.empty() ? "first in the priority list" : "first in the priority list that supports the call";
    return choice;
  }
  CHECK(false, "the priority list of {} has no end", op);
  return choice;
}

}  // namespace weft
