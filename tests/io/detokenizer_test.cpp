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

Vocabulary byte_fallback_vocabulary() {
  Vocabulary vocabulary;
  vocabulary.byte_alphabet = false;
  vocabulary.tokens = {"<s>", "<0xE2>", "<0x82>", "<0xAC>", "\u2581a", "b", "<0x20>"};
  vocabulary.kinds = {TokenKind::control, TokenKind::byte,   TokenKind::byte, TokenKind::byte,
                      TokenKind::normal,  TokenKind::normal, TokenKind::byte};
  vocabulary.decoder.form = Decoder::Form::pieces;
  vocabulary.decoder.replacements = {{"\u2581", " "}};
  vocabulary.decoder.strip_count = 1;
  return vocabulary;
}

TEST(StreamingDetokenizer, BytesWaitForTheirCharacter) {
  const Tokenizer tokenizer(byte_fallback_vocabulary());
  StreamingDetokenizer stream(tokenizer);
  EXPECT_EQ(stream.push(5), "b");
  EXPECT_EQ(stream.push(1), "");
  EXPECT_EQ(stream.push(2), "");
  EXPECT_EQ(stream.push(3), "\u20ac");
  EXPECT_EQ(stream.push(1), "");
  EXPECT_EQ(stream.push(4), "\uFFFD a");
  EXPECT_EQ(stream.finish(), "");
}

// Hugging Face's ByteFallback: one byte that does not fit makes all of its run U+FFFD.
TEST(StreamingDetokenizer, ARunOfBytesIsAllOrNothing) {
  Vocabulary vocabulary = byte_fallback_vocabulary();
  vocabulary.decoder.byte_run = Decoder::ByteRun::all_or_nothing;
  const Tokenizer tokenizer(vocabulary);
  EXPECT_EQ(tokenizer.decode(std::vector<int>{5, 1, 2, 3, 5}), "b\u20acb");
  EXPECT_EQ(tokenizer.decode(std::vector<int>{5, 1, 2, 3, 3, 5}), "b\uFFFD\uFFFD\uFFFD\uFFFDb");
  StreamingDetokenizer stream(tokenizer);
  for (const int id : {1, 2, 3}) EXPECT_EQ(stream.push(id), "");
  EXPECT_EQ(stream.push(5), "\u20acb");
}

TEST(StreamingDetokenizer, OnlyTheFirstSpaceOfATextIsStripped) {
  const Tokenizer tokenizer(byte_fallback_vocabulary());
  EXPECT_EQ(tokenizer.decode(std::vector<int>{4, 4}), "a a");
  EXPECT_EQ(tokenizer.decode(std::vector<int>{6, 6, 4}), "  a");
  EXPECT_EQ(tokenizer.decode(std::vector<int>{0, 4}, {.skip_special = true}), "a");
  StreamingDetokenizer stream(tokenizer, {.skip_special = true});
  stream.continue_after(std::vector<int>{0});  // a text of special tokens only is empty
  EXPECT_EQ(stream.push(4), "a");
  EXPECT_EQ(stream.finish(), "");
  stream.continue_after(std::vector<int>{0, 5});
  EXPECT_EQ(stream.push(4), " a");
}

TEST(StreamingDetokenizer, MetaspaceAndWordPieceBeginInTheirOwnWay) {
  Vocabulary metaspace = byte_fallback_vocabulary();
  metaspace.decoder.form = Decoder::Form::metaspace;
  metaspace.decoder.strip_count = 0;
  metaspace.tokens[5] = "\u2581\u2581b";
  EXPECT_EQ(Tokenizer(metaspace).decode(std::vector<int>{5, 4, 5}), "b a  b");

  Vocabulary words = byte_fallback_vocabulary();
  words.tokens = {"[CLS]", "un", "##able", ",", "n't", "'", "do"};
  words.kinds.assign(7, TokenKind::normal);
  words.model = TokenModel::word_piece;
  words.unknown = 0;
  words.decoder = {};
  words.decoder.form = Decoder::Form::word_piece;
  const std::vector<int> ids = {1, 2, 3, 6, 4};
  EXPECT_EQ(Tokenizer(words).decode(ids), "unable , do n't");
  words.decoder.clean_up = true;
  EXPECT_EQ(Tokenizer(words).decode(ids), "unable, don't");
  words.kinds[0] = TokenKind::control;
  const std::vector<int> special = {6, 0, 0, 6, 0};
  EXPECT_EQ(Tokenizer(words).decode(special), "do [CLS] [CLS] do [CLS]");
  EXPECT_EQ(Tokenizer(words).decode(special, {.spaces_between_special = false}), "do [CLS][CLS] do [CLS]");
}

}  // namespace weft::detokenizer_test
