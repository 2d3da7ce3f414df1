#include "base/content_hash.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"

namespace weft::content_hash_test {

ContentHash hash_of_fields(const std::vector<std::string>& fields) {
  ContentHasher hasher;
  for (const std::string& field : fields) hasher.add(field);
  return hasher.finish();
}

TEST(ContentHash, BytesHashToThePublishedXxh128) {
  // Test vectors of XXH128 (seed 0), as printed by xxhsum -H2.
  EXPECT_EQ(hash_bytes("").hex(), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(hash_bytes("abc").hex(), "06b05ab6733a618578af5f94892f3950");
  const std::string text = "abc";
  EXPECT_EQ(hash_bytes(std::as_bytes(std::span(text))), hash_bytes("abc"));
}

TEST(ContentHash, AKeyChangesTheHash) {
  const std::string text = "some text that is hashed";
  const auto bytes = std::as_bytes(std::span(text));
  const HashKey one = random_hash_key(), other = random_hash_key();
  EXPECT_EQ(hash_bytes(bytes, one), hash_bytes(bytes, one));
  EXPECT_NE(hash_bytes(bytes, one), hash_bytes(bytes, other));
  EXPECT_NE(hash_bytes(bytes, one), hash_bytes(bytes));
}

TEST(ContentHash, HexTextReadsBack) {
  const ContentHash hash{.high = 0x00000000000000ABull, .low = 0xFFFFFFFFFFFFFFFFull};
  EXPECT_EQ(hash.hex(), "00000000000000abffffffffffffffff");
  EXPECT_EQ(ContentHash::from_hex(hash.hex()), hash);
  EXPECT_EQ(ContentHash::from_hex("00000000000000ABFFFFFFFFFFFFFFFF"), hash);
  for (const char* text : {"", "00", "00000000000000abfffffffffffffff", "00000000000000abffffffffffffffff0",
                           "00000000000000abfffffffffffffffg", "-0000000000000abffffffffffffffff"}) {
    EXPECT_THROW(ContentHash::from_hex(text), UserError) << text;
  }
}

TEST(ContentHash, OrdersByHighThenLow) {
  EXPECT_LT((ContentHash{.high = 1, .low = 9}), (ContentHash{.high = 2, .low = 0}));
  EXPECT_LT((ContentHash{.high = 1, .low = 8}), (ContentHash{.high = 1, .low = 9}));
}

TEST(ContentHasher, FieldsCannotRunIntoEachOther) {
  std::set<ContentHash> hashes;
  const std::vector<std::vector<std::string>> lists{
      {},          {""},        {"", ""},    {"abc"},         {"ab", "c"},
      {"a", "bc"}, {"", "abc"}, {"abc", ""}, {"a", "b", "c"}, {std::string("b\x01\0\0\0\0\0\0\0x", 10)},
      {"x"},       {"x", "x"}};
  for (const auto& list : lists) hashes.insert(hash_of_fields(list));
  EXPECT_EQ(hashes.size(), lists.size());
}

TEST(ContentHasher, KindsOfFieldsDiffer) {
  std::set<ContentHash> hashes;
  hashes.insert(ContentHasher().add(1).finish());
  hashes.insert(ContentHasher().add(-1).finish());
  hashes.insert(ContentHasher().add(~std::uint64_t{0}).finish());
  hashes.insert(ContentHasher().add("1").finish());
  hashes.insert(ContentHasher().add(1.0).finish());
  hashes.insert(ContentHasher().add(0.0).finish());
  hashes.insert(ContentHasher().add(-0.0).finish());
  hashes.insert(ContentHasher().add(ContentHash{.high = 1, .low = 1}).finish());
  hashes.insert(ContentHasher().add(1).add(1).finish());
  EXPECT_EQ(hashes.size(), 9u);
}

TEST(ContentHasher, EqualNumbersHashAlikeWhateverTheirType) {
  const ContentHash expected = ContentHasher().add(std::int64_t{7}).finish();
  EXPECT_EQ(ContentHasher().add(7u).finish(), expected);
  EXPECT_EQ(ContentHasher().add(static_cast<unsigned char>(7)).finish(), expected);
  EXPECT_EQ(ContentHasher().add(std::int8_t{-7}).finish(), ContentHasher().add(std::int64_t{-7}).finish());
}

TEST(ContentHasher, IsTheSameOnEveryMachine) {
  // This value is part of stored keys: a change of framing must be deliberate.
  const ContentHash hash = ContentHasher().add("graph").add(42).add(0.5).add(ContentHash{.high = 1, .low = 2}).finish();
  EXPECT_EQ(hash.hex(), "9aeea8cd936613490d678221e9286930");
}

TEST(ContentHasher, GoesOnAfterFinishAndAfterAMove) {
  ContentHasher hasher;
  hasher.add("a");
  const ContentHash first = hasher.finish();
  EXPECT_EQ(hasher.finish(), first);
  ContentHasher moved = std::move(hasher);
  EXPECT_EQ(moved.add("b").finish(), hash_of_fields({"a", "b"}));
}

TEST(ContentHasher, LongFieldsCountInFull) {
  std::string text(100000, 'x');
  const ContentHash before = ContentHasher().add(text).finish();
  text[99999] = 'y';
  EXPECT_NE(ContentHasher().add(text).finish(), before);
}

}  // namespace weft::content_hash_test
