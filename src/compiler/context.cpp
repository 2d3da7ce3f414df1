#include "compiler/context.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "base/error.h"
#include "base/text.h"
#include "kernels/provider.h"

namespace weft {

const Kernel& Context::kernel_for(const std::string& op, const std::string& provider) const {
  const Kernel* kernel = kernels.find(op, provider == "native" ? "reference" : provider);
  CHECK(kernel != nullptr, "there is no kernel {}@{}", op, provider);
  return *kernel;
}

void Context::check_priority(const std::string& op, const std::vector<std::string>& providers) const {
  ops.at(op);
  const std::vector<std::string> known = kernels.providers(op);
  std::vector<std::string> names = known;
  names.push_back("native");
  names.push_back("reference");
  names.emplace_back(kMayBeFused);
  for (std::size_t i = 0; i < providers.size(); ++i) {
    const std::string& provider = providers[i];
    USER_CHECK(provider != kMayBeFused || i == 0,
               "[--ir-op-priority.{}] wanted fused as the first name alone, but is {}", op, fmt::join(providers, ","));
    if (provider == kMayBeFused) continue;
    if (std::find(names.begin(), names.end(), provider) != names.end()) continue;
    for (const ProviderEntry& entry : provider_table())
      USER_CHECK(entry.name != provider || *entry.absent == 0, "[--ir-op-priority.{}] {} is not in this program: {}",
                 op, provider, entry.absent);
    fail_user("[--ir-op-priority.{}] {} is not a provider of it{}", op, provider, suggestion(provider, names));
  }
}

PriorityScope::PriorityScope(Context& context, const std::string& op, std::vector<std::string> providers)
    : context_(context), op_(op) {
  context.check_priority(op, providers);
  const auto& user = context.priorities.user();
  if (const auto found = user.find(op); found != user.end()) before_ = found->second;
  context.priorities.set(op, std::move(providers));
}

PriorityScope::~PriorityScope() { context_.priorities.set(op_, std::move(before_)); }

}  // namespace weft
