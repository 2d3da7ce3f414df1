#pragma once

// The compile cache: bytes on disk under keys, for this process and those that run beside and after it.
//
//   CompileCache cache({.root = default_cache_root(environment), .warn = say});
//   if (const auto entry = cache.find(key)) return load(entry->payload());
//   cache.store(key, compiled);
//
// It never stands in the way of an answer. Whatever is wrong with the folder, an entry or the disk, a look-up is a miss
// and what is stored is lost, with a warning. Any number of processes may use one folder at once: an entry appears
// whole or not at all, and what one process removes stays readable for another that has found it.
//
// An entry is loaded only if every byte is as it was stored and nobody but this user could have written it; see
// cache/cache_files.h. Nothing in it says who made it, so a folder of one's own is all the protection there is.

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
  std::string root;                              // the folder; made when something is stored
  std::int64_t most_bytes = kDefaultCacheBytes;  // of all entries together
  // Takes each different warning once, and the first alone of entries that are rejected and of what cannot be stored,
  // since whatever befell one mostly befell all; must not throw, and may be called
  // from any thread that uses the cache.
  std::function<void(const std::string&)> warn = {};
};

// An entry that was found, mapped for as long as this object lives.
class CacheEntry {
 public:
  CacheEntry(MappedFile file, std::span<const std::byte> payload) : file_(std::move(file)), payload_(payload) {}

  const std::string& path() const { return file_.path(); }
  // At an address that is a multiple of 64 bytes.
  std::span<const std::byte> payload() const { return payload_; }

 private:
  MappedFile file_;
  std::span<const std::byte> payload_;
};

struct CacheCounters {
  std::int64_t hits = 0;
  std::int64_t misses = 0;    // hits and misses are all look-ups
  std::int64_t rejected = 0;  // misses where something was, and was damaged or not to be trusted
  std::int64_t failures = 0;  // look-ups and stores that the folder or the system did not let happen
  std::int64_t stores = 0;
};

struct CachePruned {
  std::int64_t entries = 0;
  std::int64_t bytes = 0;  // of all that was removed
  std::int64_t temporary_files = 0;
  std::vector<std::string> bad = {};   // what was wrong with those of the entries that were none, or not to be trusted
  std::vector<std::string> left = {};  // with those that are there still: another user's, or the folder's do not go
};

// Thread-safe.
class CompileCache {
 public:
  // Disabled: finds nothing and stores nothing.
  CompileCache() = default;
  // Nothing is read or made yet. Disabled if there is no root.
  explicit CompileCache(CompileCacheSettings settings, const FileSystem& file_system = host_file_system());

  bool enabled() const { return !settings_.root.empty(); }
  const std::string& root() const { return settings_.root; }
  std::int64_t most_bytes() const { return settings_.most_bytes; }

  // The entry of the key, with every byte checked, or nothing. An entry that is damaged is removed where that is
  // possible. The entry counts as used now. Throws nothing.
  std::optional<CacheEntry> find(const CacheKey& key);

  // Whether the entry is there, whole, when it returns; a machine that stops right then may have lost its name: a miss.
  // One that was there is replaced. Then the entries that were not used
  // for longest are removed until all are within `most_bytes`; the new one is kept. Throws nothing.
  bool store(const CacheKey& key, std::span<const std::byte> payload);

  // Why find() misses: the nearest entry of the key's kind. Nothing if there is no entry of that kind, or the folder
  // cannot be read. Reads the headers of all entries.
  std::optional<CacheNeighbour> explain(const CacheKey& key) const;

  // Whether this object has stored it.
  bool has_stored(const std::string& hash) const;

  CacheCounters counters() const;

  // For those who look after a folder. UserError if it may not be used (cache/cache_files.h), DeviceError if the system
  // fails; nothing is there where there is no folder.

  enum class Read : bool { headers, everything };
  // All entries by kind and hash, also those with a problem, of which factors may be missing.
  std::vector<CacheListing> list(Read read = Read::headers) const;

  // Removes every entry of which list(Read::everything) tells a problem, unless it is another user's, and what killed
  // processes left; then entries, those not used for longest first, until the others have at most `most_bytes`
  // together. With 0 bytes nothing is left; a process that stores at that moment fails to.
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

  mutable std::mutex mutex_;  // of what follows
  CacheCounters counters_;
  std::set<std::string> warnings_;
  bool has_told_of_rejection_ = false;
  bool has_told_of_loss_ = false;
  std::set<ContentHash> refreshed_;
  std::set<std::string> stored_;
  std::int64_t bytes_until_count_ = 0;  // that may still be stored before the entries are counted again
};

}  // namespace weft
