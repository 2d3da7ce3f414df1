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

// Loads the library and lets it register. It stays loaded as long as the process lives, since it may have started
// threads. UserError when it is not a library, has no entry, was built for another version of the header, or fails.
Plugin load_plugin(const std::string& path);

}  // namespace weft
