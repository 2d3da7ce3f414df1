#include "cache/cache_difference.h"

#include <gtest/gtest.h>

namespace weft::cache_difference_test {

CacheListing listing(const std::string& hash, std::vector<CacheFactor> factors, std::int64_t modified = 0) {
  return {.kind = "rows",
          .hash = hash,
          .path = "/" + hash,
          .modified = modified,
          .factors = std::move(factors),
          .problem = ""};
}

const CacheKey kWanted("rows", {{"llvm", "19"}, {"features", "avx512"}, {"threads", "2"}, {"graph", "g"}});

TEST(CacheDifference, NamesTheFirstFactorThatDiffersWithBothValues) {
  const auto difference =
      first_difference(kWanted, {{"llvm", "19"}, {"features", "avx2"}, {"threads", "4"}, {"graph", "g"}});
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->factor, "features");
  EXPECT_EQ(difference->wanted, "avx512");
  EXPECT_EQ(difference->found, "avx2");
  EXPECT_FALSE(first_difference(kWanted, kWanted.factors()));
}

TEST(CacheDifference, NamesAFactorThatOnlyOneSideHas) {
  auto difference = first_difference(kWanted, {{"llvm", "19"}, {"features", "avx512"}, {"graph", "g"}});
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->factor, "threads");
  EXPECT_EQ(difference->found, std::nullopt);
  std::vector<CacheFactor> more = kWanted.factors();
  more.push_back({"device", "cuda"});
  difference = first_difference(kWanted, more);
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->factor, "device");
  EXPECT_EQ(difference->wanted, std::nullopt);
  EXPECT_EQ(difference->found, "cuda");
}

TEST(CacheDifference, NearestSharesTheMostFactorsThenTheLongestBeginning) {
  const std::vector<CacheListing> entries{
      listing("1", {{"llvm", "19"}, {"features", "avx512"}, {"threads", "8"}, {"graph", "h"}}, 9),
      listing("2", {{"llvm", "18"}, {"features", "avx512"}, {"threads", "2"}, {"graph", "g"}}, 9),
      listing("3", {{"llvm", "19"}, {"features", "avx512"}, {"threads", "4"}, {"graph", "g"}}, 1),
      listing("4", {{"llvm", "19"}, {"features", "avx512"}, {"threads", "6"}, {"graph", "g"}}, 5),
      listing("5", {{"llvm", "19"}, {"features", "avx512"}, {"threads", "7"}, {"graph", "g"}}, 5)};
  const auto nearest = nearest_entry(kWanted, entries);
  ASSERT_TRUE(nearest);
  EXPECT_EQ(nearest->hash, "4");  // of 3, 4 and 5 those used last, of them the first
  EXPECT_EQ(nearest->equal_factors, 3u);
  ASSERT_TRUE(nearest->first_difference);
  EXPECT_EQ(nearest->first_difference->factor, "threads");
  EXPECT_EQ(nearest_entry(kWanted, entries, &entries[3])->hash, "5");
}

TEST(CacheDifference, TheEntryOfTheKeyItselfIsNearerThanOneWithMoreFactors) {
  std::vector<CacheFactor> more = kWanted.factors();
  more.push_back({"device", "cuda"});
  const std::vector<CacheListing> entries{listing("1", more, 9), listing("2", kWanted.factors())};
  const auto nearest = nearest_entry(kWanted, entries);
  ASSERT_TRUE(nearest);
  EXPECT_EQ(nearest->hash, "2");
  EXPECT_FALSE(nearest->first_difference);
}

TEST(CacheDifference, EntriesOfOtherKindsAndBadOnesAreNotNear) {
  std::vector<CacheListing> entries{listing("1", kWanted.factors()), listing("2", kWanted.factors())};
  entries[0].kind = "plan";
  entries[1].problem = "it is cut short";
  EXPECT_FALSE(nearest_entry(kWanted, entries));
  EXPECT_FALSE(nearest_entry(kWanted, {}));
}

}  // namespace weft::cache_difference_test
