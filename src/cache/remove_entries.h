#pragma once

// Keeps a compile cache within its limit: the entries that were not used for longest go.

#include <cstdint>
#include <string>

#include "base/file_system.h"
#include "cache/compile_cache.h"

namespace weft {

struct CacheRoom {
  CachePruned removed;
  std::int64_t bytes_left = 0;  // of all entries
};

// Removes entries until the others have at most `most_bytes` together; `kept`, the path of one, is not removed. When an
// entry was used is the time of its file; one that claims to be of the future goes first, as its clock was wrong, and
// equal ones go in the order of their names. Files that a killed process left go when nothing was written to them for
// an hour, and all of them when nothing may be left. What cannot be removed is counted as left. The errors of
// cache_files.
CacheRoom remove_entries(const std::string& root, std::int64_t most_bytes, const std::string& kept,
                         const FileSystem& file_system);

}  // namespace weft
