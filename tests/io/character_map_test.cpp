#include "io/character_map.h"

#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

#include "base/base64.h"
#include "base/error.h"
#include "base/json.h"
#include "base/utf8.h"

namespace weft::character_map_test {

// The nmt_nfkc map that SentencePiece compiles.
std::string nmt_nfkc() {
  std::ifstream file(WEFT_TEST_DATA "/tokenizers/unigram_t5/tokenizer.json");
  return decode_base64(Json::parse(file).at("normalizer").at("precompiled_charsmap").get<std::string>()).value();
}

TEST(CharacterMap, ReplacesTheLongestKey) {
  const CharacterMap map(nmt_nfkc());
  EXPECT_EQ(map.apply("\uff21\u00a0b\u200b\ufb01"), "A b fi");
  EXPECT_EQ(map.apply("e\u0301"), "\u00e9");
  EXPECT_EQ(map.apply("plain \u4e2d"), "plain \u4e2d");
  EXPECT_EQ(map.apply(""), "");
}

// A grapheme cluster whose shortest key is its first character is replaced by that alone.
TEST(CharacterMap, ByGraphemeTheShortestKeyReplacesAll) {
  const CharacterMap map(nmt_nfkc());
  EXPECT_EQ(map.apply_by_grapheme("\uff21x"), "Ax");
  EXPECT_EQ(map.apply_by_grapheme("plain \u4e2d"), "plain \u4e2d");
}

TEST(CharacterMap, RefusesBrokenBytes) {
  const std::string bytes = nmt_nfkc();
  EXPECT_THROW(CharacterMap(""), UserError);
  EXPECT_THROW(CharacterMap(bytes.substr(0, 3)), UserError);
  EXPECT_THROW(CharacterMap(bytes.substr(0, 1000)), UserError);
  EXPECT_THROW(CharacterMap(bytes.substr(0, bytes.size() - 1)), UserError);
  EXPECT_THROW(CharacterMap(std::string("\x03\0\0\0abc\0", 8)), UserError);
}

TEST(CharacterMap, ChangedBytesGiveUtf8OrAnError) {
  const std::string bytes = nmt_nfkc();
  uint32_t state = 5;
  for (int round = 0; round < 60; ++round) {
    std::string changed = bytes;
    for (int i = 0; i < 200; ++i) {  // in the trie
      state = state * 1664525u + 1013904223u;
      changed[4 + state % 170000] = static_cast<char>(state >> 24);
    }
    try {
      const CharacterMap map(changed);
      const std::string text = "\uff21\u00a0b\u200b\ufb01 e\u0301 plain \u4e2d\u0915\u094d";
      EXPECT_FALSE(first_invalid_utf8(map.apply(text)));
      EXPECT_FALSE(first_invalid_utf8(map.apply_by_grapheme(text)));
    } catch (const UserError&) {
    }
  }
}

}  // namespace weft::character_map_test
