#pragma once

// A compile cache in its own folder, the warnings that it printed, and keys and payloads for it.

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>

#include "cache/compile_cache.h"
#include "tests/base/failing_file_system.h"
#include "tests/base/temporary_folder.h"

namespace weft {

// The host's, but does not wait for the disk: a test of hundreds of stores would take most of its time for that. Not
// for several threads.
inline const FileSystem& hasty_disk() {
  class HastyDisk final : public FailingFileSystem {
   public:
    HastyDisk() : FailingFileSystem(0, 0) {}
    int sync(int) const override { return 0; }
  };
  static const HastyDisk disk;
  return disk;
}

// Differs with `number` in the last of three factors.
inline CacheKey numbered_key(int number, const std::string& kind = "rows") {
  return CacheKey(kind, {{"emitter", "1"}, {"features", "avx2"}, {"graph", std::to_string(number)}});
}

// Differs with `number` from its first byte on.
inline std::vector<std::byte> numbered_payload(int number, std::size_t count = 1000) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i)
    bytes[i] = static_cast<std::byte>((i + 1) * static_cast<std::size_t>(number * 2 + 1) + i / 251);
  return bytes;
}

class CacheCase {
 public:
  std::string root() const { return folder_ / "cache"; }
  std::string kind_folder(const std::string& kind = "rows") const { return entry_folder(root(), kind); }
  std::string path_of(const CacheKey& key) const { return kind_folder(key.kind()) + "/" + entry_name(key.hash()); }

  // Another cache for the same folder, as in another process.
  std::unique_ptr<CompileCache> open(const FileSystem& file_system = hasty_disk(),
                                     std::int64_t most_bytes = kDefaultCacheBytes) {
    return std::make_unique<CompileCache>(
        CompileCacheSettings{root(), most_bytes, [this](const std::string& warning) { warnings.push_back(warning); }},
        file_system);
  }

  // The names in the folder of a kind.
  std::size_t files(const std::string& kind = "rows") const {
    std::error_code ignored;
    const std::filesystem::directory_iterator all(kind_folder(kind), ignored);
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
  }

  TemporaryFolder& folder() { return folder_; }

  std::vector<std::string> warnings;

 private:
  TemporaryFolder folder_;
};

// Whether the cache finds the payload of this number under its key. The test fails if it finds another payload.
inline std::optional<bool> finds(CompileCache& cache, int number, std::size_t count = 1000,
                                 const std::string& kind = "rows") {
  const std::optional<CacheEntry> entry = cache.find(numbered_key(number, kind));
  if (!entry) return std::nullopt;
  const std::vector<std::byte> wanted = numbered_payload(number, count);
  return std::equal(wanted.begin(), wanted.end(), entry->payload().begin(), entry->payload().end());
}

inline std::string file_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Overwrites the file in place, as a program would that knows nothing of the cache.
inline void put_text(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

inline void set_modified(const std::string& path, std::int64_t seconds) {
  const timespec times[] = {{.tv_sec = seconds, .tv_nsec = 0}, {.tv_sec = seconds, .tv_nsec = 0}};
  ::utimensat(AT_FDCWD, path.c_str(), times, 0);
}

inline std::int64_t modified_of(const std::string& path) {
  struct stat status {};
  ::stat(path.c_str(), &status);
  return status.st_mtim.tv_sec;
}

}  // namespace weft
