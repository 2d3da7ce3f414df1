#include "cache/cache_difference.h"

#include <algorithm>
#include <string_view>
#include <tuple>

namespace weft {
namespace {

const CacheFactor* factor_named(const std::vector<CacheFactor>& factors, std::string_view name) {
  const auto found = std::find_if(factors.begin(), factors.end(), [&](const auto& each) { return each.name == name; });
  return found == factors.end() ? nullptr : &*found;
}

bool has(const std::vector<CacheFactor>& factors, const CacheFactor& wanted) {
  return std::find(factors.begin(), factors.end(), wanted) != factors.end();
}

std::size_t leading_equal(const CacheKey& key, const std::vector<CacheFactor>& factors) {
  const auto differs = [&](const CacheFactor& wanted) { return !has(factors, wanted); };
  const auto first = std::find_if(key.factors().begin(), key.factors().end(), differs);
  return static_cast<std::size_t>(first - key.factors().begin());
}

std::size_t all_equal(const CacheKey& key, const std::vector<CacheFactor>& factors) {
  return static_cast<std::size_t>(std::count_if(key.factors().begin(), key.factors().end(),
                                                [&](const CacheFactor& wanted) { return has(factors, wanted); }));
}

}  // namespace

std::optional<CacheDifference> first_difference(const CacheKey& key, const std::vector<CacheFactor>& factors) {
  for (const CacheFactor& wanted : key.factors()) {
    const CacheFactor* found = factor_named(factors, wanted.name);
    if (found == nullptr) return CacheDifference{wanted.name, wanted.value, std::nullopt};
    if (found->value != wanted.value) return CacheDifference{wanted.name, wanted.value, found->value};
  }
  for (const CacheFactor& found : factors)
    if (factor_named(key.factors(), found.name) == nullptr)
      return CacheDifference{found.name, std::nullopt, found.value};
  return std::nullopt;
}

std::optional<CacheNeighbour> nearest_entry(const CacheKey& key, std::span<const CacheListing> entries,
                                            const CacheListing* except) {
  const CacheListing* nearest = nullptr;
  std::tuple<std::size_t, std::size_t, std::int64_t, std::int64_t> most;
  for (const CacheListing& entry : entries) {
    if (&entry == except || entry.kind != key.kind() || !entry.problem.empty()) continue;
    const std::tuple rank(all_equal(key, entry.factors), leading_equal(key, entry.factors),
                          -static_cast<std::int64_t>(entry.factors.size()), entry.modified);
    if (nearest != nullptr && (rank < most || (rank == most && nearest->hash <= entry.hash))) continue;
    nearest = &entry;
    most = rank;
  }
  if (nearest == nullptr) return std::nullopt;
  return CacheNeighbour{nearest->hash, std::get<0>(most), first_difference(key, nearest->factors)};
}

}  // namespace weft
