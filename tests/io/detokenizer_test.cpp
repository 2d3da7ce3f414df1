#include "io/detokenizer.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/utf8.h"
#include "small_vocabulary.h"

namespace weft::detokenizer_test {

TEST(StreamingDetokenizer, KeepsBytesOfBrokenCharacterTogether) {
  const Tokenizer tokenizer(small_vocabulary({{" ", "\xC3"}}));
  StreamingDetokenizer stream(tokenizer);
  EXPECT_EQ(stream.push('a'), "a");
  EXPECT_EQ(stream.push(256), "");  // " \xC3": the space waits as well
  EXPECT_EQ(stream.push(0xA7), " \u00e7");
  EXPECT_EQ(stream.push(0xF0), "");
  EXPECT_EQ(stream.push(0x9F), "");
  EXPECT_EQ(stream.push(0x98), "");
  EXPECT_EQ(stream.push(0x80), "\U0001F600");
  EXPECT_EQ(stream.finish(), "");
}

TEST(StreamingDetokenizer, WhatCanNoLongerBecomeACharacterIsReplacedAtOnce) {
  const Tokenizer tokenizer(small_vocabulary({}));
  StreamingDetokenizer stream(tokenizer);
  EXPECT_EQ(stream.push(0x80), "\uFFFD");
  EXPECT_EQ(stream.push(0xE2), "");
  EXPECT_EQ(stream.push('('), "\uFFFD(");
}

TEST(StreamingDetokenizer, FinishGivesWhatWasHeldBackOnce) {
  const Tokenizer tokenizer(small_vocabulary({}));
  StreamingDetokenizer stream(tokenizer);
  EXPECT_EQ(stream.push(0xE4), "");
  EXPECT_EQ(stream.push(0xBD), "");
  EXPECT_EQ(stream.finish(), "\uFFFD");
  EXPECT_EQ(stream.finish(), "");
}

TEST(StreamingDetokenizer, SkippedSpecialTokensDoNotSplitACharacter) {
  const Tokenizer tokenizer(small_vocabulary({}, {"<|s|>"}));
  StreamingDetokenizer skipping(tokenizer, {.skip_special = true});
  EXPECT_EQ(skipping.push(0xC3), "");
  EXPECT_EQ(skipping.push(256), "");
  EXPECT_EQ(skipping.push(0xA9), "\u00e9");
  StreamingDetokenizer showing(tokenizer);
  EXPECT_EQ(showing.push(0xC3), "");
  EXPECT_EQ(showing.push(256), "\uFFFD<|s|>");
}

TEST(StreamingDetokenizer, IdsOfAPaddedEmbeddingAddNothing) {
  const Tokenizer tokenizer(small_vocabulary({}));
  StreamingDetokenizer stream(tokenizer);
  EXPECT_EQ(stream.push(100'000), "");
  EXPECT_THROW(stream.push(-1), InternalError);
}

TEST(StreamingDetokenizer, PiecesJoinToTheDecodedTextAndNeverEndInsideACharacter) {
  const Tokenizer tokenizer(small_vocabulary({{"\xA9", "\xC3"}, {"\xE4", "\xB8"}, {"\x9F", "a"}}));
  uint32_t state = 1;
  for (int round = 0; round < 2000; ++round) {
    std::vector<int> ids;
    StreamingDetokenizer stream(tokenizer);
    std::string text;
    for (int i = 0; i < 12; ++i) {
      static constexpr int kChoices[] = {'a', 0xC3, 0xA9, 0xE4, 0xB8, 0xAD, 0xF0, 0x9F, 0xFF, 256, 257, 258};
      state = state * 1664525u + 1013904223u;
      ids.push_back(kChoices[(state >> 16) % std::size(kChoices)]);
      const std::string piece = stream.push(ids.back());
      ASSERT_FALSE(first_invalid_utf8(piece));
      text += piece;
    }
    ASSERT_EQ(text + stream.finish(), tokenizer.decode(ids));
  }
}

}  // namespace weft::detokenizer_test
