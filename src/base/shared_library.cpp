#include "base/shared_library.h"

#include <dlfcn.h>

#include "base/first_time_work.h"

namespace weft {

std::optional<SharedLibrary> SharedLibrary::open(const std::string& name, std::string& problem) {
  if (FirstTimeWork* work = FirstTimeScope::work()) work->begin(FirstTime::load, name);
  // RTLD_LOCAL: the symbols of this library must not replace those of another.
  void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle != nullptr) return SharedLibrary(name, handle);
  const char* words = dlerror();
  problem = words == nullptr ? "the loader gives no reason" : words;
  return std::nullopt;
}

void* SharedLibrary::find_address(const char* symbol) const { return dlsym(handle_, symbol); }

}  // namespace weft
