#include "cache/cache_key.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace weft {

CacheKey::CacheKey(std::string kind, std::vector<CacheFactor> factors)
    : kind_(std::move(kind)), factors_(std::move(factors)) {
  CHECK(is_kind(kind_), "[cache key] {} is not a kind", quote(kind_));
  const std::string* repeated = repeated_name(factors_);
  CHECK(repeated == nullptr, "[cache key] the factor {} is there twice", quote(*repeated));
  ContentHasher hasher;
  hasher.add(kind_).add(kCacheFormat).add(factors_.size());
  for (const CacheFactor& factor : factors_) hasher.add(factor.name).add(factor.value);
  hash_ = hasher.finish();
}

bool CacheKey::is_kind(std::string_view text) {
  constexpr std::size_t kLongest = 32;
  const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
  return !text.empty() && text.size() <= kLongest && is_letter(text[0]) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return is_letter(c) || is_digit(c) || c == '_'; });
}

const std::string* CacheKey::repeated_name(const std::vector<CacheFactor>& factors) {
  std::set<std::string_view> names;
  for (const CacheFactor& factor : factors)
    if (!names.insert(factor.name).second) return &factor.name;
  return nullptr;
}

}  // namespace weft
