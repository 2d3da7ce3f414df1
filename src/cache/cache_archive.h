#pragma once

// A compile cache in one file, to take to another machine: a zip archive with a member for each entry.
//
// What is imported is run like what this machine compiled, so an archive is as good as the one it came from. That it is
// whole and fits together is checked; where it came from is not.

#include <cstddef>
#include <string>
#include <vector>

#include "cache/compile_cache.h"

namespace weft {

struct CacheExport {
  std::size_t entries = 0;
  std::vector<std::string> problems;  // of the entries that were left out
};

// Writes all sound entries of the cache. Equal entries give equal bytes. UserError when there are none or the file
// cannot be written.
CacheExport export_cache(const CompileCache& cache, const std::string& path);

struct CacheImport {
  std::size_t entries = 0;
  std::vector<std::string> problems;  // of the members that were left out
};

// Stores every entry of the archive that is sound, under the name that its own factors give; what the archive calls it
// does not count. UserError when the file is no such archive, or the cache is disabled.
CacheImport import_cache(CompileCache& cache, const std::string& path);

}  // namespace weft
