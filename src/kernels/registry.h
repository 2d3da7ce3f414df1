#pragma once

// All kernels of a Context, by op and provider. Order of registration never matters: lookups go by name.

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "kernels/kernel.h"
#include "kernels/packing.h"

namespace weft {

class KernelRegistry {
 public:
  // UserError, naming the kernel's origin, when (op, provider) is taken, the provider's name is invalid or the reserved
  // `native`, or there is no code.
  void add(Kernel kernel);
  // InternalError when a packing of that name is there.
  void add(Packing packing);
  // The origin of kernels that name none of their own, from here on.
  void set_origin(std::string origin) { origin_ = std::move(origin); }
  // Whether kernels from here on give their work to a queue (Kernel::launches).
  void set_launches(bool launches) { launches_ = launches; }

  // Asks every kernel `supported(device)`, keeps the refusals with their reason, and prepares the rest.
  void prepare(const DeviceDescription& device);

  // Null when there is none, or the device is not supported (then `refusal` says why).
  const Kernel* find(const std::string& op, const std::string& provider) const;
  std::string refusal(const std::string& op, const std::string& provider) const;
  // Names in sorted order.
  std::vector<std::string> providers(const std::string& op) const;
  std::vector<std::string> ops() const;
  // Every kernel, those whose device is not supported included, by op and provider.
  void for_each(const std::function<void(const Kernel&)>& body) const;
  const Packing* find_packing(const std::string& name) const;
  const std::map<std::string, Packing>& packings() const { return packings_; }

 private:
  struct Entry {
    Kernel kernel;
    std::string refusal;
  };
  std::string origin_;
  bool launches_ = false;
  std::map<std::string, std::map<std::string, Entry>> kernels_;
  std::map<std::string, Packing> packings_;
};

// The packing in which the provider's kernels want a weight; null where it has none that takes it.
const Packing* own_packing(const KernelRegistry& registry, const std::string& provider, const Meta& plain,
                           const DeviceDescription& device);

// One row per file of kernels/<provider>/, made by the build.
struct KernelEntry {
  const char* provider;
  const char* file;
  void (*define)(KernelRegistry&);
};
std::span<const KernelEntry> kernel_table();

}  // namespace weft

// Defines the registration function of src/kernels/<provider>/<stem>.cpp: KERNELS(cpu, rms_norm) { registry.add(...); }
#define KERNELS(provider, stem)                                      \
  namespace weft {                                                   \
  void define_kernels_##provider##_##stem(KernelRegistry& registry); \
  }                                                                  \
  void weft::define_kernels_##provider##_##stem([[maybe_unused]] KernelRegistry& registry)
