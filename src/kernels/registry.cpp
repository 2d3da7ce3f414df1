#include "kernels/registry.h"

#include "base/error.h"

namespace weft {

void KernelRegistry::add(Kernel kernel) {
  CHECK(kernel.provider != "native", "[{}] the provider name native is reserved: it is the op's meaning", kernel.op);
  CHECK(kernel.run != nullptr || kernel.prepare != nullptr, "[{}@{}] has no code", kernel.op, kernel.provider);
  std::string op = kernel.op, provider = kernel.provider;
  const bool added = kernels_[op].emplace(provider, Entry{std::move(kernel), ""}).second;
  CHECK(added, "kernel {}@{} is already registered", op, provider);
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

const Packing* KernelRegistry::find_packing(const std::string& name) const {
  auto found = packings_.find(name);
  return found == packings_.end() ? nullptr : &found->second;
}

}  // namespace weft
