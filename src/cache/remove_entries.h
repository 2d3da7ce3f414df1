#pragma once

// Keeps a compile cache within its limit by removing the least recently used entries.

#include <cstdint>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "cache/compile_cache.h"

namespace weft {

enum class Removal { removed, gone, failed };  // gone: another process has removed the file

// Removes a file. A failure is added to `failures`: `[path] cannot be removed: Read-only file system`.
Removal remove_entry(const std::string& path, const FileSystem& file_system, std::vector<std::string>& failures);

struct CacheRoom {
  CachePruned removed;
  std::int64_t bytes_left = 0;  // of all entries
};

// Removes entries until the rest has at most `most_bytes` together; `kept`, the path of an entry, is not removed. The
// time of an entry's file is the time of its last use. Entries with a time in the future are removed first, because
// their clock was wrong; entries with equal times are removed in the order of their names. Temporary files of killed
// processes are removed when they were not written to for an hour, and all of them when `most_bytes` is 0. A file that
// cannot be removed counts as left, and is among the failures. Throws the errors of cache_files.
CacheRoom remove_entries(const std::string& root, std::int64_t most_bytes, const std::string& kept,
                         const FileSystem& file_system);

}  // namespace weft
