#include "kernels/registry.h"

#include <algorithm>

#include "base/error.h"
#include "options/options.h"

namespace weft {
namespace {

bool is_name(std::string_view text) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; };
  return !text.empty() && letter(text[0]) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

}  // namespace

void KernelRegistry::add(Kernel kernel) {
  if (kernel.origin.empty()) kernel.origin = origin_;
  kernel.launches = kernel.launches || launches_;
  const std::string op = kernel.op, provider = kernel.provider, origin = kernel.origin;
  USER_CHECK(is_name(provider), "[{}@{}] a provider's name must match [a-z_][a-z0-9_]* ({})", op, provider, origin);
  USER_CHECK(provider != "native", "[{}@native] the name is reserved: native is the op's meaning ({})", op, origin);
  USER_CHECK(provider != kMayBeFused, "[{}@{}] the name is reserved: in priorities it allows fusions ({})", op,
             provider, origin);
  USER_CHECK(kernel.run != nullptr || kernel.prepare != nullptr, "[{}@{}] has no code ({})", op, provider, origin);
  const auto [entry, added] = kernels_[op].emplace(provider, Entry{std::move(kernel), ""});
  USER_CHECK(added, "[{}@{}] is already registered, by {} ({})", op, provider, entry->second.kernel.origin, origin);
}

void KernelRegistry::add(Packing packing) {
  std::string name = packing.name;
  CHECK(packings_.emplace(name, std::move(packing)).second, "packing {} is already registered", name);
}

void KernelRegistry::prepare(const DeviceDescription& device) {
  for (auto& [op, providers] : kernels_) {
    for (auto& [provider, entry] : providers) {
      const Verdict verdict = entry.kernel.supported(device);
      entry.refusal = verdict ? "" : verdict.reason();
      if (verdict && entry.kernel.prepare) entry.kernel.prepare(entry.kernel, device);
      CHECK(!verdict || entry.kernel.run != nullptr, "[{}@{}] has no code for {}", op, provider, device.name);
    }
  }
}

const Kernel* KernelRegistry::find(const std::string& op, const std::string& provider) const {
  auto providers = kernels_.find(op);
  if (providers == kernels_.end()) return nullptr;
  auto entry = providers->second.find(provider);
  if (entry == providers->second.end() || !entry->second.refusal.empty()) return nullptr;
  return &entry->second.kernel;
}

std::string KernelRegistry::refusal(const std::string& op, const std::string& provider) const {
  auto providers = kernels_.find(op);
  if (providers == kernels_.end()) return "";
  auto entry = providers->second.find(provider);
  return entry == providers->second.end() ? "" : entry->second.refusal;
}

std::vector<std::string> KernelRegistry::providers(const std::string& op) const {
  std::vector<std::string> names;
  if (auto found = kernels_.find(op); found != kernels_.end())
    for (const auto& [provider, entry] : found->second) names.push_back(provider);
  return names;
}

std::vector<std::string> KernelRegistry::ops() const {
  std::vector<std::string> names;
  for (const auto& [op, providers] : kernels_) names.push_back(op);
  return names;
}

void KernelRegistry::for_each(const std::function<void(const Kernel&)>& body) const {
  for (const auto& [op, providers] : kernels_)
    for (const auto& [provider, entry] : providers) body(entry.kernel);
}

const Packing* KernelRegistry::find_packing(const std::string& name) const {
  auto found = packings_.find(name);
  return found == packings_.end() ? nullptr : &found->second;
}

const Packing* own_packing(const KernelRegistry& registry, const std::string& provider, const Meta& plain,
                           const DeviceDescription& device) {
  for (const auto& [name, packing] : registry.packings())
    if (packing.provider == provider && packing.accepts(plain, device)) return &packing;
  return nullptr;
}

}  // namespace weft
