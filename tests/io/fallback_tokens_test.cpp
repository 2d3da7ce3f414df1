#include "io/fallback_tokens.h"

#include <vector>

#include <gtest/gtest.h>

namespace weft::fallback_tokens_test {

TEST(ByteTokens, HaveOneSpelling) {
  for (int byte = 0; byte < 256; ++byte) EXPECT_EQ(byte_of_token(byte_token_text(static_cast<uint8_t>(byte))), byte);
  EXPECT_EQ(byte_token_text(0xE2), "<0xE2>");
  for (const char* text : {"", "<0xe2>", "<0xE>", "<0xE22>", "0xE2", "<0xG0>", "<1xE2>", "<0xE2 "})
    EXPECT_EQ(byte_of_token(text), std::nullopt) << text;
}

TEST(FallbackTokens, SayWhereEachBegins) {
  Vocabulary vocabulary;
  vocabulary.tokens = {"<0xC3>", "<0xA9>"};
  vocabulary.kinds.assign(2, TokenKind::byte);
  const TokenIndex index(vocabulary.tokens);
  std::vector<std::pair<int, size_t>> found;
  bool after_unknown = true;
  FallbackTokens(vocabulary, index).append("\u00e9", after_unknown, [&](int id, size_t offset) {
    found.emplace_back(id, offset);
  });
  EXPECT_EQ(found, (std::vector<std::pair<int, size_t>>{{0, 0}, {1, 1}}));
  EXPECT_FALSE(after_unknown);
}

}  // namespace weft::fallback_tokens_test
