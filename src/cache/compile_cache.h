#pragma once

// The compile cache stores bytes on disk under keys, for this process and for concurrent and later ones.
//
//   CompileCache cache({.root = default_cache_root(environment), .warn = say});
//   if (const auto entry = cache.find(key)) return load(entry->payload());
//   cache.store(key, compiled);
//
// A failure of the cache is never an error of its user. Whatever is wrong with the folder, an entry or the disk, find()
// is a miss and store() stores nothing, and the cache warns. Several processes may use one folder at once: an entry
// becomes visible only when it is complete, and an entry that one process removes stays readable for another process
// that has found it.
//
// An entry is loaded only if every byte is as it was stored and no one but this user could have written it; see
// cache/cache_files.h. An entry does not record who made it, so the ownership of the folder is the only protection.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/file_system.h"
#include "base/files.h"
#include "cache/cache_difference.h"
#include "cache/cache_files.h"
#include "cache/cache_key.h"

namespace weft {

inline constexpr std::int64_t kDefaultCacheBytes = std::int64_t{4} << 30;

struct CompileCacheSettings {
  std::string root;                              // the folder; created at the first store
  std::int64_t most_bytes = kDefaultCacheBytes;  // of all entries together
  // Receives each different warning once. Of the warnings for rejected entries, and of those for entries that cannot be
  // stored, it receives only the first, because they mostly have one cause. Must not throw; any thread that uses the
  // cache may call it.
  std::function<void(const std::string&)> warn = {};
};

// An entry that was found. It is mapped for the lifetime of this object.
class CacheEntry {
 public:
  CacheEntry(MappedFile file, std::span<const std::byte> payload) : file_(std::move(file)), payload_(payload) {}

  const std::string& path() const { return file_.path(); }
  // Its address is a multiple of 64 bytes.
  std::span<const std::byte> payload() const { return payload_; }

 private:
  MappedFile file_;
  std::span<const std::byte> payload_;
};

struct CacheCounters {
  std::int64_t hits = 0;
  std::int64_t misses = 0;    // hits + misses = look-ups
  std::int64_t rejected = 0;  // misses because an entry was damaged or may not be trusted
  std::int64_t failures = 0;  // look-ups and stores that failed in the folder or the system
  std::int64_t stores = 0;
};

struct CachePruned {
  std::int64_t entries = 0;
  std::int64_t bytes = 0;  // of all removed files
  std::int64_t temporary_files = 0;
  std::vector<std::string> bad = {};   // the problems of removed entries that were damaged or untrusted
  std::vector<std::string> left = {};  // the problems of bad entries that must stay, such as another user's
  // Why files were not removed although they had to be, `[path] cannot be removed: Read-only file system`.
  std::vector<std::string> failures = {};
};

// Thread-safe.
class CompileCache {
 public:
  // Disabled: finds nothing and stores nothing.
  CompileCache() = default;
  // Reads and creates nothing yet. Disabled if there is no root.
  explicit CompileCache(CompileCacheSettings settings, const FileSystem& file_system = host_file_system());

  bool enabled() const { return !settings_.root.empty(); }
  const std::string& root() const { return settings_.root; }
  std::int64_t most_bytes() const { return settings_.most_bytes; }

  // The entry of the key, with every byte checked, or nullopt. A damaged entry is removed where possible. The entry
  // counts as used now. Throws nothing.
  std::optional<CacheEntry> find(const CacheKey& key);

  // Stores an entry and returns whether it was stored completely. The directory is not fsynced: after a crash the entry
  // may be missing, which is only a cache miss. An existing entry is replaced. Then the least recently used entries are
  // removed until all are within `most_bytes`; the new entry is kept. Throws nothing.
  bool store(const CacheKey& key, std::span<const std::byte> payload);

  // Why find() misses: the nearest entry of the key's kind. nullopt if there is no entry of that kind, or if the folder
  // cannot be read. Reads the headers of all entries.
  std::optional<CacheNeighbour> explain(const CacheKey& key) const;

  // Whether this object has stored the entry.
  bool has_stored(const std::string& hash) const;

  CacheCounters counters() const;

  // For maintaining a folder. UserError if the folder may not be used (cache/cache_files.h), DeviceError if the system
  // fails; a folder that does not exist counts as empty.

  enum class Read : bool { headers, everything };
  // All entries, sorted by kind and hash. Entries with a problem are included; their factors may be missing.
  std::vector<CacheListing> list(Read read = Read::headers) const;

  // Removes every entry for which list(Read::everything) reports a problem, unless it belongs to another user, and the
  // temporary files of killed processes. Then removes the least recently used entries until the rest has at most
  // `most_bytes`. With 0 bytes nothing is left; a process that stores at that moment fails to store. A folder with the
  // name of an entry is never removed, because its files may be of use to someone: it is a failure.
  CachePruned prune(std::int64_t most_bytes);

 private:
  std::optional<CacheEntry> open(const CacheKey& key);
  void reject(const std::string& reason, const std::string& path_to_remove);
  void note_failure(const std::string& reason);
  void note_loss(const std::string& reason);
  void warn(const std::string& message);
  void refresh(const CacheKey& key, const std::string& path);
  void make_room(std::int64_t stored_bytes, const std::string& path);

  CompileCacheSettings settings_;
  const FileSystem* file_system_ = &host_file_system();

  mutable std::mutex mutex_;  // guards the members below
  CacheCounters counters_;
  std::set<std::string> warnings_;
  bool has_told_of_rejection_ = false;
  bool has_told_of_loss_ = false;
  std::set<ContentHash> refreshed_;
  std::set<std::string> stored_;
  std::int64_t bytes_until_count_ = 0;  // that may be stored before the next count of all entries
};

}  // namespace weft
