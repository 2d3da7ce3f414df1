#pragma once

// Explains why an entry was not found: the nearest entry, and the first factor in which it differs from the key.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cache/cache_key.h"

namespace weft {

// An entry on disk.
struct CacheListing {
  std::string kind;
  std::string hash;  // from the file's name
  std::string path;
  std::int64_t bytes = 0;     // of the whole file
  std::int64_t modified = 0;  // when it was stored or last found, in nanoseconds since 1970
  std::vector<CacheFactor> factors;
  std::string problem;        // why the entry is not usable; "" for none known
  bool is_of_no_use = false;  // no one can use it and this user owns it, so it may be removed
};

struct CacheDifference {
  std::string factor;
  std::optional<std::string> wanted;  // nullopt where only the entry has the factor
  std::optional<std::string> found;   // nullopt where only the key has it
};

struct CacheNeighbour {
  std::string hash;  // of the entry
  std::size_t equal_factors = 0;
  std::optional<CacheDifference> first_difference;  // nullopt for an entry with exactly this key
};

// The first factor, in the order of the key, that the entry does not have or has with another value; else the first
// factor that only the entry has.
std::optional<CacheDifference> first_difference(const CacheKey& key, const std::vector<CacheFactor>& factors);

// The entry of the key's kind, without a problem, that shares the most factors with the key. Ties are decided, in this
// order, by the most factors before the first difference, the fewest factors, the latest use, and the smallest hash.
// nullopt if there is no such entry. `except`, which is one of `entries`, is skipped.
std::optional<CacheNeighbour> nearest_entry(const CacheKey& key, std::span<const CacheListing> entries,
                                            const CacheListing* except = nullptr);

}  // namespace weft
