#pragma once

// Loads shared libraries that were built against include/weft/weft_plugin.h.

#include <string>

#include "plugin/registrations.h"

namespace weft {

struct Plugin {
  std::string path;
  std::string name;
  std::string version;
  Registrations registrations;
};

// Loads the library and calls its registration. It stays loaded until the process ends, since it may have started
// threads. UserError if it is not a library, has no entry function, was built for another version of the header, or
// fails.
Plugin load_plugin(const std::string& path);

}  // namespace weft
