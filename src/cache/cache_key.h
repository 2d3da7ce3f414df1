#pragma once

// The key of a compile cache entry: everything that the entry was made from. The code that makes a key must ensure two
// things: each fact that can change the entry is a factor; and no factor is a path, a name, a time or an environment
// variable, because such a factor would give equal entries different keys.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/content_hash.h"

namespace weft {

// The version of the entry files. It is part of each key: an entry of another version has another name.
inline constexpr std::uint32_t kCacheFormat = 1;

struct CacheFactor {
  std::string name;
  std::string value;  // as text; the hash where the content is long

  friend bool operator==(const CacheFactor&, const CacheFactor&) = default;
};

class CacheKey {
 public:
  // InternalError unless `kind` is a kind and the factors have different names. The order of the factors matters: put
  // those that differ least often first.
  CacheKey(std::string kind, std::vector<CacheFactor> factors);

  // A kind is the name of its entries' folder, such as rows, device_rows, plans or tuning: 1 to 32 of a-z, 0-9 and _,
  // of which the first is a letter.
  static bool is_kind(std::string_view text);
  // A name that two factors share; null if there is none.
  static const std::string* repeated_name(const std::vector<CacheFactor>& factors);

  const std::string& kind() const { return kind_; }
  const std::vector<CacheFactor>& factors() const { return factors_; }
  // The hash of the kind, the format version and the factors.
  const ContentHash& hash() const { return hash_; }

  friend bool operator==(const CacheKey&, const CacheKey&) = default;

 private:
  std::string kind_;
  std::vector<CacheFactor> factors_;
  ContentHash hash_;
};

}  // namespace weft
