#include "io/tokenizer.h"

#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "small_vocabulary.h"
#include "tests/thrown_message.h"

namespace weft::tokenizer_test {

using Ids = std::vector<int>;

std::string error_of(Vocabulary vocabulary) {
  return message_of([&] { Tokenizer tokenizer(std::move(vocabulary)); });
}

TEST(Tokenizer, MergesWithinPiecesOnly) {
  const Tokenizer tokenizer(small_vocabulary({{"h", "e"}, {"l", "l"}, {"he", "ll"}, {" ", "w"}, {"o", " "}}));
  EXPECT_EQ(tokenizer.encode("hello world"), (Ids{258, 'o', 259, 'o', 'r', 'l', 'd'}));
  EXPECT_TRUE(tokenizer.encode("").empty());
}

TEST(Tokenizer, SpecialTextIsATokenOnlyWhenParsed) {
  const Tokenizer tokenizer(small_vocabulary({}, {"<|s|>"}));
  EXPECT_EQ(tokenizer.encode("a<|s|>b"), (Ids{'a', 256, 'b'}));
  EXPECT_EQ(tokenizer.encode("<|s|>", {.parse_special = false}), (Ids{'<', '|', 's', '|', '>'}));
}

TEST(Tokenizer, PrefixAndSuffixAreAddedOnRequest) {
  Vocabulary vocabulary = small_vocabulary({}, {"<s>", "</s>"});
  vocabulary.prefix = {256};
  vocabulary.suffix = {257};
  const Tokenizer tokenizer(vocabulary);
  EXPECT_EQ(tokenizer.encode("a"), (Ids{256, 'a', 257}));
  EXPECT_EQ(tokenizer.encode("a", {.add_special = false}), (Ids{'a'}));
}

TEST(Tokenizer, TwoTextsAreJoinedAsTheVocabularySays) {
  const auto joined = [](Ids prefix, Ids between, Ids suffix) {
    Vocabulary vocabulary = small_vocabulary({}, {"<s>", "</s>"});
    vocabulary.prefix = std::move(prefix);
    vocabulary.between = std::move(between);
    vocabulary.suffix = std::move(suffix);
    const Tokenizer::Pair pair = Tokenizer(std::move(vocabulary)).encode_pair("a", "bc");
    EXPECT_EQ(pair.ids[pair.second], 'b');
    return pair.ids;
  };
  EXPECT_EQ(joined({256}, {257, 257}, {257}), (Ids{256, 'a', 257, 257, 'b', 'c', 257}));
  EXPECT_EQ(joined({256}, {256}, {}), (Ids{256, 'a', 256, 'b', 'c'}));
  EXPECT_EQ(joined({}, {}, {}), (Ids{'a', 'b', 'c'}));
  EXPECT_NE(message_of([&] { joined({256}, {}, {257}); }).find("no tokens between two texts"), std::string::npos);
}

TEST(Tokenizer, EveryTextOfBytesSurvivesTheRoundTrip) {
  const Tokenizer tokenizer(small_vocabulary({{"\xC3", "\xA9"}, {"\xF0", "\x9F"}, {" ", " "}}));
  for (const std::string text : {"plain", "caf\u00e9  \u4e2d\u6587 \U0001F600\n", "\x01\x7f\u00a0\u00ad"}) {
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
  }
}

TEST(Tokenizer, RefusesTextThatIsNotUtf8AndSaysWhere) {
  const Tokenizer tokenizer(small_vocabulary({}));
  EXPECT_EQ(message_of([&] { tokenizer.encode("abc\xFF"); }),
            "[tokenizer] text must be UTF-8, but byte 3 (0xff) is not part of a character");
}

TEST(Tokenizer, DecodingReplacesBrokenCharactersAndSkipsSpecials) {
  const Tokenizer tokenizer(small_vocabulary({}, {"<|s|>"}));
  EXPECT_EQ(tokenizer.decode(Ids{'a', 0xF0, 0x9F, 'b', 256}), "a\uFFFDb<|s|>");
  EXPECT_EQ(tokenizer.decode(Ids{0xC3, 256, 0xA9}, {.skip_special = true}), "\u00e9");
}

TEST(Tokenizer, IdsOutsideTheVocabularyAreRefused) {
  const Tokenizer tokenizer(small_vocabulary({}));
  EXPECT_THROW(tokenizer.decode(Ids{256}), UserError);
  EXPECT_THROW(tokenizer.token_bytes(-1), UserError);
  EXPECT_THROW(tokenizer.is_special(1 << 30), UserError);
}

TEST(Tokenizer, TokensOutsideTheByteAlphabetAreTheirOwnText) {
  Vocabulary vocabulary = small_vocabulary({}, {"<\u00e9>"});
  vocabulary.tokens.push_back("\u4e2d ");
  vocabulary.kinds.push_back(TokenKind::normal);
  const Tokenizer tokenizer(vocabulary);
  EXPECT_EQ(tokenizer.token_bytes(256), "<\u00e9>");
  EXPECT_EQ(tokenizer.token_bytes(257), "\u4e2d ");
  EXPECT_EQ(tokenizer.token_bytes(0xE9), "\xE9");
}

TEST(Tokenizer, WholePiecesWinWhenMergesAreIgnored) {
  Vocabulary vocabulary = small_vocabulary({{"a", "b"}}, {"ac"});
  vocabulary.tokens.push_back("abc");
  vocabulary.kinds.push_back(TokenKind::normal);
  EXPECT_EQ(Tokenizer(vocabulary).encode("abc"), (Ids{256, 'c'}));
  vocabulary.ignore_merges = true;
  EXPECT_EQ(Tokenizer(vocabulary).encode("abc"), (Ids{258}));
  // A control token is not ordinary text's to reach.
  EXPECT_EQ(Tokenizer(vocabulary).encode("ac", {.parse_special = false}), (Ids{'a', 'c'}));
}

TEST(Tokenizer, NormalizedTokensAreFoundInNormalizedText) {
  Vocabulary vocabulary = small_vocabulary({}, {"e\u0301t"});
  vocabulary.normalizer = {UnicodeForm::nfc};
  EXPECT_EQ(Tokenizer(vocabulary).encode("\u00e9t"), (Ids{0xC3, 0xA9, 't'}));
  vocabulary.added_tokens[0].normalized = true;
  EXPECT_EQ(Tokenizer(vocabulary).encode("\u00e9te\u0301t"), (Ids{256, 256}));
}

TEST(Tokenizer, SaysWhatIsWrongWithAVocabulary) {
  EXPECT_EQ(error_of({}), "[tokenizer] a vocabulary must have tokens, but has none");

  Vocabulary repeated = small_vocabulary({});
  repeated.tokens[7] = "A";
  EXPECT_EQ(error_of(repeated), "[tokenizer] tokens must be distinct, but 7 and 65 are both \"A\"");

  Vocabulary kinds = small_vocabulary({});
  kinds.kinds.pop_back();
  EXPECT_EQ(error_of(kinds), "[tokenizer] kinds must be given for 256 tokens, but are for 255");

  Vocabulary bos = small_vocabulary({});
  bos.bos = 256;
  EXPECT_EQ(error_of(bos), "[tokenizer] the beginning-of-text token must be an id below 256, but is 256");

  Vocabulary added = small_vocabulary({});
  added.added_tokens.push_back({.id = -1});
  EXPECT_EQ(error_of(added), "[tokenizer] the added token must be an id below 256, but is -1");

  Vocabulary pattern = small_vocabulary({});
  pattern.steps = {PatternSplit{.pattern = "\\h+"}};
  EXPECT_EQ(error_of(pattern), "[regex] construct \"\\\\h\" in pattern \"\\\\h+\" is not supported");
}

TEST(Tokenizer, ThreadsShareOneTokenizer) {
  const Tokenizer tokenizer(small_vocabulary({{"a", "b"}, {" ", "ab"}}, {"<|s|>"}));
  std::string text;
  for (int i = 0; i < 200; ++i) text += "ab ab<|s|>\u4e2d 12 \n";
  const Ids expected = tokenizer.encode(text);
  std::vector<Ids> results(4);
  std::vector<std::thread> threads;
  for (Ids& result : results) threads.emplace_back([&] { result = tokenizer.encode(text); });
  for (std::thread& thread : threads) thread.join();
  for (const Ids& result : results) EXPECT_EQ(result, expected);
}

TEST(Tokenizer, ManyIdsWithoutTokenMayShareTheEmptyText) {
  Vocabulary vocabulary = small_vocabulary({});
  vocabulary.tokens.resize(300);
  vocabulary.kinds.resize(300, TokenKind::unused);
  const Tokenizer tokenizer(vocabulary);
  EXPECT_EQ(tokenizer.token_bytes(299), "");
  EXPECT_EQ(tokenizer.find(""), std::nullopt);
}

}  // namespace weft::tokenizer_test
