#include "io/text_vocabulary.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "io/tokenizer.h"
#include "tests/thrown_message.h"

namespace weft::text_vocabulary_test {

using Ids = std::vector<int>;

TEST(Tiktoken, TheLowestRankJoinsFirst) {
  // a, b, c, ab, bc, "abc" is rank 9 and is reached as a whole piece only
  const std::string text = "YQ== 0\nYg== 1\nYw== 2\r\nYmM= 3\nYWI= 4\n\nYWJj 9\n";
  ASSERT_TRUE(is_tiktoken(text));
  Vocabulary vocabulary = read_tiktoken(text, "v");
  EXPECT_EQ(vocabulary.tokens.size(), 10U);
  vocabulary.steps = {PatternSplit{.pattern = "abc|a+|[^a]+"}};
  const Tokenizer tokenizer(vocabulary);
  EXPECT_EQ(tokenizer.encode("abc"), (Ids{9}));
  EXPECT_EQ(tokenizer.encode("aabc"), (Ids{0, 0, 3}));
  EXPECT_EQ(tokenizer.decode(Ids{9, 4}), "abcab");
}

TEST(Tiktoken, SaysWhatIsWrong) {
  const auto error_of = [](const std::string& text) { return message_of([&] { read_tiktoken(text, "v"); }); };
  EXPECT_NE(error_of("YQ== 0\nYg==").find("[v] line 2 must be base64 and a rank"), std::string::npos);
  EXPECT_NE(error_of("YQ== 0\n? 1").find("[v] line 2 must be base64"), std::string::npos);
  EXPECT_NE(error_of("YQ== 1\nYg== 0").find("rank in line 2 must be 2 or a little more, but is 0"), std::string::npos);
  EXPECT_NE(error_of("YQ== 0\nYg== 0").find("rank in line 2 must be 1"), std::string::npos);
  EXPECT_NE(error_of("YQ== 999999999").find("rank in line 1 must be 0"), std::string::npos);
  EXPECT_NE(error_of("").find("[v] must have 1 to"), std::string::npos);
  EXPECT_FALSE(is_tiktoken("\x0a\x0e\x0a\x05<unk>"));
  EXPECT_FALSE(is_tiktoken("[PAD]\n[UNK]"));
}

TEST(WordList, LinesAreTokens) {
  const std::string text = "[PAD]\n[UNK]\n[CLS]\n[SEP]\nun\n##able\r\n\nA";
  EXPECT_EQ(Tokenizer(read_word_list(text, "v", true)).encode("UNable A"), (Ids{2, 4, 5, 1, 3}));
  EXPECT_EQ(Tokenizer(read_word_list(text, "v", false)).encode("unable A"), (Ids{2, 4, 5, 7, 3}));
}

TEST(WordList, SaysWhatIsWrong) {
  EXPECT_NE(message_of([] { read_word_list("a\nb", "v", true); }).find("[v] must have a line [UNK]"),
            std::string::npos);
  EXPECT_NE(message_of([] { read_word_list("[UNK]\n\xC3", "v", true); }).find("[v] line 2 must be UTF-8"),
            std::string::npos);
}

}  // namespace weft::text_vocabulary_test
