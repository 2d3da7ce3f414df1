#pragma once

// What an entry of the compile cache was made from. Whoever makes a key answers for it: everything that can change the
// entry is a factor, and no factor is a path, a name, a time or a piece of the environment, which would part equal
// entries.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/content_hash.h"

namespace weft {

// The version of the files of entries. It is part of each key: an entry of another version has another name.
inline constexpr std::uint32_t kCacheFormat = 1;

struct CacheFactor {
  std::string name;
  std::string value;  // as text; for long content its hash

  friend bool operator==(const CacheFactor&, const CacheFactor&) = default;
};

class CacheKey {
 public:
  // InternalError unless `kind` is a kind and the names of the factors differ from each other. Their order counts: put
  // first what differs least often.
  CacheKey(std::string kind, std::vector<CacheFactor> factors);

  // rows, device_rows, plans or tuning; the folder of its entries. 1 to 32 of a-z, 0-9 and _, a letter first.
  static bool is_kind(std::string_view text);
  // The name that two factors have, or nothing.
  static const std::string* repeated_name(const std::vector<CacheFactor>& factors);

  const std::string& kind() const { return kind_; }
  const std::vector<CacheFactor>& factors() const { return factors_; }
  // Of the kind, the version of the format and the factors.
  const ContentHash& hash() const { return hash_; }

  friend bool operator==(const CacheKey&, const CacheKey&) = default;

 private:
  std::string kind_;
  std::vector<CacheFactor> factors_;
  ContentHash hash_;
};

}  // namespace weft
