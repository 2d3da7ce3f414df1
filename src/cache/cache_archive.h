#pragma once

// A compile cache in one file, for use on another machine: a zip archive with a member for each entry.
//
// Imported entries are run like entries of this machine, so an archive must come from a trusted source. The reader
// checks that it is complete and consistent, and does not check its origin.

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

// Stores every sound entry of the archive under the name that its own factors give; its member name is ignored.
// UserError when the file is no such archive, or when the cache is disabled.
CacheImport import_cache(CompileCache& cache, const std::string& path);

}  // namespace weft
