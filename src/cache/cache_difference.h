#pragma once

// Why an entry was not found: the entry that is nearest to what was wanted, and the first factor in which it differs.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cache/cache_key.h"

namespace weft {

// An entry as it lies on disk.
struct CacheListing {
  std::string kind;
  std::string hash;  // as its name says
  std::string path;
  std::int64_t bytes = 0;     // of the whole file
  std::int64_t modified = 0;  // when it was stored or last found, in nanoseconds since 1970
  std::vector<CacheFactor> factors;
  std::string problem;        // why it is not used; "" where nothing is known against it
  bool is_of_no_use = false;  // by its problem, to anybody, and it is this user's own: it may as well be removed
};

struct CacheDifference {
  std::string factor;
  std::optional<std::string> wanted;  // nothing where only the entry has the factor
  std::optional<std::string> found;   // nothing where only the key has it
};

struct CacheNeighbour {
  std::string hash;  // of the entry
  std::size_t equal_factors = 0;
  std::optional<CacheDifference> first_difference;  // nothing for an entry of the key itself
};

// The first factor, in the order of the key, that the entry has not or with another value; then those that only the
// entry has.
std::optional<CacheDifference> first_difference(const CacheKey& key, const std::vector<CacheFactor>& factors);

// The entry of the key's kind, without a problem, that shares the most factors with it; of these the one with the most
// in front of the first difference, then the one with the fewest factors, the one used last, the first by hash. Nothing
// if there is none. `except`, one of them, does not count.
std::optional<CacheNeighbour> nearest_entry(const CacheKey& key, std::span<const CacheListing> entries,
                                            const CacheListing* except = nullptr);

}  // namespace weft
