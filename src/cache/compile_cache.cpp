#include "cache/compile_cache.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/sort.h"
#include "base/text.h"
#include "cache/entry_file.h"
#include "cache/remove_entries.h"

namespace weft {
namespace {

std::string entry_path(const std::string& root, const CacheKey& key) {
  return entry_folder(root, key.kind()) + "/" + entry_name(key.hash());
}

// Reports an entry that cannot be trusted. A look-up does not remove such an entry.
class UntrustedEntry : public UserError {
 public:
  UntrustedEntry(const std::string& reason, bool is_own) : UserError(reason), is_own_(is_own) {}
  bool is_own() const { return is_own_; }

 private:
  bool is_own_;
};

void check_trusted(const FileStatus& status, const std::string& path) {
  const std::string reason = status.kind == FileKind::regular ? distrust(status) : "it is not a file";
  if (!reason.empty())
    throw UntrustedEntry(fmt::format("[{}] is not used: {}", quote(path, 1000), reason), is_of_this_user(status));
}

// `status` is what the path had before the file is opened.
MappedFile map_trusted(const std::string& path, const FileStatus& status, const FileSystem& file_system) {
  check_trusted(status, path);
  if (status.bytes == 0) parse_entry({}, path);  // reports what is wrong: an empty file cannot be mapped
  MappedFile file(path, file_system);
  // The path may have changed meanwhile: check the file that was opened.
  check_trusted(file.status(), path);
  return file;
}

}  // namespace

CompileCache::CompileCache(CompileCacheSettings settings, const FileSystem& file_system)
    : settings_(std::move(settings)), file_system_(&file_system) {}

std::optional<CacheEntry> CompileCache::find(const CacheKey& key) {
  std::optional<CacheEntry> entry;
  if (enabled()) {
    try {
      entry = open(key);
    } catch (const BadEntry& error) {
      reject(error.what(), entry_path(root(), key));
    } catch (const UntrustedEntry& error) {
      reject(error.what(), "");
    } catch (const std::exception& error) {
      note_failure(error.what());
    }
  }
  const std::lock_guard lock(mutex_);
  ++(entry ? counters_.hits : counters_.misses);
  return entry;
}

std::optional<CacheEntry> CompileCache::open(const CacheKey& key) {
  // Each look-up checks the folders again, because another user may have replaced them.
  if (!is_usable_folder(root(), *file_system_)) return std::nullopt;
  if (!is_usable_folder(entry_folder(root(), key.kind()), *file_system_)) return std::nullopt;
  const std::string path = entry_path(root(), key);
  const FileStatus status = file_status(path, *file_system_);
  if (status.kind == FileKind::missing) return std::nullopt;
  MappedFile file = map_trusted(path, status, *file_system_);
  const EntryFile entry = parse_entry(file.bytes(), path);
  check_name(entry, key.kind(), key.hash().hex(), path);
  check_payload(entry, path);
  refresh(key, path);
  return CacheEntry(std::move(file), entry.payload);
}

bool CompileCache::store(const CacheKey& key, std::span<const std::byte> payload) {
  if (!enabled()) return false;
  try {
    const std::vector<std::byte> header = entry_header(key, payload);
    const auto bytes = static_cast<std::int64_t>(header.size() + payload.size());
    USER_CHECK(bytes <= settings_.most_bytes, "[compile cache] an entry of {} bytes is not kept: all have at most {}",
               bytes, settings_.most_bytes);
    const std::string folder = entry_folder(root(), key.kind());
    make_usable_folder(root(), *file_system_);
    make_usable_folder(folder, *file_system_);
    const std::span<const std::byte> parts[] = {header, payload};
    write_private_then_rename(folder, entry_name(key.hash()), parts, *file_system_);
    {
      const std::lock_guard lock(mutex_);
      ++counters_.stores;
      stored_.insert(key.hash().hex());
      refreshed_.insert(key.hash());
    }
    make_room(bytes, entry_path(root(), key));
    return true;
  } catch (const std::exception& error) {
    note_loss(error.what());
    return false;
  }
}

std::optional<CacheNeighbour> CompileCache::explain(const CacheKey& key) const {
  try {
    return nearest_entry(key, list());
  } catch (const Error&) {
    return std::nullopt;  // find() warns about it
  }
}

bool CompileCache::has_stored(const std::string& hash) const {
  const std::lock_guard lock(mutex_);
  return stored_.count(hash) != 0;
}

CacheCounters CompileCache::counters() const {
  const std::lock_guard lock(mutex_);
  return counters_;
}

// A used entry must not be among the first that are removed. One touch of each entry is enough. Where touching is not
// permitted, the entry keeps its time.
void CompileCache::refresh(const CacheKey& key, const std::string& path) {
  {
    const std::lock_guard lock(mutex_);
    if (!refreshed_.insert(key.hash()).second) return;
  }
  file_system_->touch(path);
}

// Counting the entries takes a system call for each of them, so it does not follow every store. A process counts again
// after it has stored at most a sixteenth of the limit; meanwhile, stores of other processes may exceed the limit.
void CompileCache::make_room(std::int64_t stored_bytes, const std::string& path) {
  constexpr std::int64_t kPart = 16;
  {
    const std::lock_guard lock(mutex_);
    bytes_until_count_ -= stored_bytes;
    if (bytes_until_count_ >= 0) return;
  }
  try {
    const CacheRoom room = remove_entries(root(), settings_.most_bytes, path, *file_system_);
    const std::lock_guard lock(mutex_);
    bytes_until_count_ = std::min(settings_.most_bytes / kPart, settings_.most_bytes - room.bytes_left);
  } catch (const std::exception& error) {
    warn(error.what());
  }
}

CachePruned CompileCache::prune(std::int64_t most_bytes) {
  if (!enabled()) return {};
  CachePruned bad;
  std::vector<CacheListing> left;
  for (CacheListing& entry : list(Read::everything)) {
    if (entry.problem.empty()) continue;
    if (!entry.is_of_no_use) {
      left.push_back(std::move(entry));
    } else if (remove_entry(entry.path, *file_system_, bad.failures) == Removal::removed) {
      ++bad.entries;
      bad.bytes += entry.bytes;
      bad.bad.push_back(std::move(entry.problem));
    }
  }
  CachePruned pruned = remove_entries(root(), most_bytes, "", *file_system_).removed;
  for (CacheListing& entry : left)
    if (file_status(entry.path, *file_system_).kind != FileKind::missing)
      pruned.left.push_back(std::move(entry.problem));
  pruned.entries += bad.entries;
  pruned.bytes += bad.bytes;
  pruned.bad = std::move(bad.bad);
  // remove_entries may have tried to remove the same bad entries.
  pruned.failures.insert(pruned.failures.end(), bad.failures.begin(), bad.failures.end());
  sort_without_repeats(pruned.failures);
  return pruned;
}

std::vector<CacheListing> CompileCache::list(Read read) const {
  std::vector<CacheListing> listings;
  if (!enabled()) return listings;
  for (const CacheFile& file : cache_files(root(), *file_system_)) {
    if (file.use != CacheFile::entry) continue;
    CacheListing listing{file.kind, file.hash, file.path, file.status.bytes, file.status.modified, {}, ""};
    try {
      const MappedFile mapped = map_trusted(file.path, file.status, *file_system_);
      const EntryFile entry = parse_entry(mapped.bytes(), file.path);
      listing.factors = entry.key.factors();
      check_name(entry, file.kind, file.hash, file.path);
      if (read == Read::everything) check_payload(entry, file.path);
    } catch (const BadEntry& error) {
      listing.problem = error.what();
      listing.is_of_no_use = true;
    } catch (const UntrustedEntry& error) {
      listing.problem = error.what();
      listing.is_of_no_use = error.is_own();
    } catch (const Error& error) {
      listing.problem = error.what();
    }
    listings.push_back(std::move(listing));
  }
  return listings;
}

void CompileCache::reject(const std::string& reason, const std::string& path_to_remove) {
  if (!path_to_remove.empty()) file_system_->remove(path_to_remove);
  {
    const std::lock_guard lock(mutex_);
    ++counters_.rejected;
    if (std::exchange(has_told_of_rejection_, true)) return;
  }
  warn(reason + "; others like it are not reported");
}

void CompileCache::note_failure(const std::string& reason) {
  {
    const std::lock_guard lock(mutex_);
    ++counters_.failures;
  }
  warn(reason);
}

// Only the first loss is reported: later stores most likely fail for the same reason, with another path.
void CompileCache::note_loss(const std::string& reason) {
  {
    const std::lock_guard lock(mutex_);
    ++counters_.failures;
    if (std::exchange(has_told_of_loss_, true)) return;
  }
  warn(reason);
}

void CompileCache::warn(const std::string& message) {
  {
    const std::lock_guard lock(mutex_);
    if (!warnings_.insert(message).second) return;
  }
  if (settings_.warn) settings_.warn(message);
}

}  // namespace weft
