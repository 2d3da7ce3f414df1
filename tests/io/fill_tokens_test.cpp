#include "io/fill_tokens.h"

#include <gtest/gtest.h>

namespace weft::fill_tokens_test {

TEST(FillTokens, AreThoseOfTheFileOrOfWellKnownTexts) {
  Vocabulary vocabulary;
  vocabulary.tokens = {"a", "\u2581<PRE>", "\u2581<SUF>", "b"};
  EXPECT_FALSE(fill_tokens(vocabulary)) << "there is no middle";
  vocabulary.tokens.emplace_back("\u2581<MID>");
  const auto known = fill_tokens(vocabulary);
  ASSERT_TRUE(known);
  EXPECT_EQ(known->prefix, 1);
  EXPECT_EQ(known->suffix, 2);
  EXPECT_EQ(known->middle, 4);
  EXPECT_FALSE(known->repository);
  vocabulary.fill_prefix = 3;
  vocabulary.tokens.emplace_back("<|file_sep|>");
  EXPECT_EQ(fill_tokens(vocabulary)->prefix, 3);
  EXPECT_EQ(fill_tokens(vocabulary)->file, 5);
}

TEST(FillTokens, OfDeepSeekHaveWideCharacters) {
  Vocabulary vocabulary;
  vocabulary.tokens = {"<｜fim▁hole｜>", "<｜fim▁begin｜>", "<｜fim▁end｜>"};
  const auto known = fill_tokens(vocabulary);
  ASSERT_TRUE(known);
  EXPECT_EQ(known->prefix, 1);
  EXPECT_EQ(known->suffix, 0);
  EXPECT_EQ(known->middle, 2);
}

}  // namespace weft::fill_tokens_test
