#include "kernels/provider.h"

namespace weft {
namespace {

std::string origin_of_folder(const std::string& folder) { return "src/kernels/" + folder + "/"; }

}  // namespace

std::string origin_of_file(const std::string& folder, const std::string& file) {
  return origin_of_folder(folder) + file + ".cpp";
}

const ProviderEntry* folder_of(const Kernel& kernel) {
  for (const ProviderEntry& entry : provider_table())
    if (kernel.origin.starts_with(origin_of_folder(entry.name))) return &entry;
  return nullptr;
}

}  // namespace weft
