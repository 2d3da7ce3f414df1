#pragma once

// What is known of the providers as such: one row per folder of src/kernels/, those left out of this program included.

#include <span>
#include <string>

namespace weft {

struct ProviderEntry {
  const char* name;
  const char* absent;        // why this program is without it; "" for one it has
  std::string (*version)();  // of the library behind it; null for code of this program
};

// In the order of names; made by the build.
std::span<const ProviderEntry> provider_table();

}  // namespace weft

// Defines, in src/kernels/<name>/provider.cpp, what gives the version: PROVIDER(onednn) { return "2.6.3"; }
#define PROVIDER(name)                   \
  namespace weft {                       \
  std::string provider_version_##name(); \
  }                                      \
  std::string weft::provider_version_##name()
