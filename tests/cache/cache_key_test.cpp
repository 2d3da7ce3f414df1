#include "cache/cache_key.h"

#include <set>

#include "base/error.h"
#include "tests/property.h"

namespace weft::cache_key_test {

TEST(CacheKey, NamesEqualContentAlikeWhereverItIsMade) {
  const CacheKey key("rows", {{"llvm", "19"}, {"graph", "abc"}});
  EXPECT_EQ(key.hash(), CacheKey("rows", {{"llvm", "19"}, {"graph", "abc"}}).hash());
  // The key is the same on all machines and in all builds while the format has this version.
  EXPECT_EQ(key.hash().hex(), "69c9bff77bc9c305bbbfe329bf99303f");
}

TEST(CacheKey, DiffersWithEveryPartOfEveryFactorAndTheirOrder) {
  const std::vector<CacheKey> keys{CacheKey("rows", {{"a", "1"}, {"b", "2"}}),
                                   CacheKey("plan", {{"a", "1"}, {"b", "2"}}),
                                   CacheKey("rows", {{"b", "2"}, {"a", "1"}}),
                                   CacheKey("rows", {{"a", "1"}, {"b", "3"}}),
                                   CacheKey("rows", {{"a", "1"}, {"c", "2"}}),
                                   CacheKey("rows", {{"a", "1b"}, {"", "2"}}),
                                   CacheKey("rows", {{"a", "1"}}),
                                   CacheKey("rows", {}),
                                   CacheKey("rows", {{"a", ""}, {"b", "12"}}),
                                   CacheKey("rows", {{"a", "1"}, {"b", "2"}, {"", ""}})};
  std::set<ContentHash> hashes;
  for (const CacheKey& key : keys) hashes.insert(key.hash());
  EXPECT_EQ(hashes.size(), keys.size());
}

TEST(CacheKey, TwoKeysHaveOneNameOnlyIfTheyAreEqual) {
  using Values = std::vector<std::string>;
  check_property(500, [](const Values& first, const Values& second) {
    const auto key = [](const Values& values) {
      std::vector<CacheFactor> factors;
      for (std::size_t i = 0; i < values.size(); ++i) factors.push_back({std::to_string(i), values[i]});
      return CacheKey("rows", factors);
    };
    RC_ASSERT((key(first).hash() == key(second).hash()) == (first == second));
  });
}

TEST(CacheKey, RefusesWhatIsNoFolderOfItsOwn) {
  for (const char* kind : {"", "..", "a/b", "Rows", "1rows", "rows.old", "r\n"})
    EXPECT_THROW(CacheKey(kind, {}), InternalError) << kind;
  EXPECT_THROW(CacheKey(std::string(33, 'a'), {}), InternalError);
  EXPECT_NO_THROW(CacheKey(std::string(32, 'a'), {}));
  EXPECT_THROW(CacheKey("rows", {{"a", "1"}, {"b", "1"}, {"a", "2"}}), InternalError);
}

}  // namespace weft::cache_key_test
