#include "cache/remove_entries.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <tuple>
#include <utility>

#include <fmt/core.h>

#include "base/error.h"
#include "base/text.h"
#include "cache/cache_files.h"

namespace weft {
namespace {

constexpr std::int64_t kHour = std::int64_t{3600} * 1'000'000'000;  // in nanoseconds

std::int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

Removal remove_entry(const std::string& path, const FileSystem& file_system, std::vector<std::string>& failures) {
  if (file_system.remove(path) == 0) return Removal::removed;
  if (errno == ENOENT) return Removal::gone;
  failures.push_back(fmt::format("[{}] cannot be removed: {}", quote(path, 1000), system_error_text()));
  return Removal::failed;
}

CacheRoom remove_entries(const std::string& root, std::int64_t most_bytes, const std::string& kept,
                         const FileSystem& file_system) {
  const std::int64_t time = now();
  CacheRoom room;
  std::vector<CacheFile> entries;
  for (CacheFile& file : cache_files(root, file_system)) {
    if (file.use == CacheFile::entry) {
      room.bytes_left += file.status.bytes;
      entries.push_back(std::move(file));
    } else if (most_bytes <= 0 || std::abs(time - file.status.modified) > kHour) {
      if (remove_entry(file.path, file_system, room.removed.failures) != Removal::removed) continue;
      ++room.removed.temporary_files;
      room.removed.bytes += file.status.bytes;
    }
  }
  // Clocks of machines that share a folder differ a little. A time more than an hour ahead is wrong: that entry is
  // removed first.
  const auto last_use = [&](const CacheFile& file) {
    return file.status.modified > time + kHour ? std::numeric_limits<std::int64_t>::min() : file.status.modified;
  };
  std::sort(entries.begin(), entries.end(), [&](const CacheFile& a, const CacheFile& b) {
    return std::forward_as_tuple(last_use(a), a.kind, a.hash) < std::forward_as_tuple(last_use(b), b.kind, b.hash);
  });
  for (const CacheFile& entry : entries) {
    if (room.bytes_left <= most_bytes) break;
    if (entry.path == kept) continue;
    const Removal removal = remove_entry(entry.path, file_system, room.removed.failures);
    if (removal == Removal::failed) continue;
    room.bytes_left -= entry.status.bytes;
    if (removal == Removal::gone) continue;
    ++room.removed.entries;
    room.removed.bytes += entry.status.bytes;
  }
  return room;
}

}  // namespace weft
