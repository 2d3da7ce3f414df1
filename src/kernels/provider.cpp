#include "kernels/provider.h"

namespace weft {
namespace {

std::string origin_of_folder(const std::string& folder) { return "src/kernels/" + folder + "/"; }

}  // namespace

std::string origin_of_file(const std::string& folder, const std::string& file) {
  return origin_of_folder(folder) + file + ".cpp";
}

const ProviderEntry* folder_of(const Kernel& kernel) {
  for (const ProviderEntry& entry : provider_table()) {
    const std::string name = entry.name;
    const bool is_its_provider = kernel.provider == name || kernel.provider.starts_with(name + "_");
    if (is_its_provider && kernel.origin.starts_with(origin_of_folder(name))) return &entry;
  }
  return nullptr;
}

}  // namespace weft
