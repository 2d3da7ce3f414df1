#include "io/vocab_and_merges.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "io/tokenizer.h"
#include "tests/thrown_message.h"

namespace weft::vocab_and_merges_test {

using Ids = std::vector<int>;

constexpr const char* kVocab = R"({"a": 0, "b": 1, "c": 2, "ab": 3, "bc": 4, "#": 7})";

Vocabulary read(const std::string& vocab, const std::string& merges) {
  return read_vocab_and_merges({vocab, "v"}, {merges, "m"});
}

TEST(VocabAndMerges, TheFirstMergeJoinsFirst) {
  const Vocabulary vocabulary = read(kVocab, "\xef\xbb\xbf#version: 0.2\r\n\r\nb c\na b");
  EXPECT_EQ(vocabulary.merges.size(), 2U);
  const Tokenizer tokenizer(vocabulary);
  EXPECT_EQ(tokenizer.token_count(), 8);
  EXPECT_EQ(tokenizer.encode("abcab#"), (Ids{0, 4, 3, 7}));
  EXPECT_EQ(tokenizer.decode(Ids{0, 4, 3, 7}), "abcab#");
  EXPECT_EQ(Tokenizer(read(kVocab, "")).encode("ab"), (Ids{0, 1}));
}

TEST(VocabAndMerges, SaysWhatIsWrongWithTokens) {
  const auto error_of = [](const std::string& vocab) { return message_of([&] { read(vocab, ""); }); };
  EXPECT_NE(error_of("{").find("[v] must be JSON"), std::string::npos);
  EXPECT_NE(error_of("[1]").find("[v] must map tokens to ids, but is [1]"), std::string::npos);
  EXPECT_NE(error_of("{}").find("[v] must have tokens"), std::string::npos);
  for (const char* id : {"-1", "65537", "1.0", "\"1\"", "null", "18446744073709551615"}) {
    const std::string message = error_of(R"({"a": )" + std::string(id) + "}");
    EXPECT_NE(message.find(R"([v] "a" must have an id of 0 to 65536, but has )"), std::string::npos) << message;
  }
  EXPECT_NE(error_of(R"({"": 0})").find("must have an id"), std::string::npos);
  EXPECT_NE(error_of(R"({"a": 0, "b": 0})").find(R"([v] "b" must have an id of its own, but 0 is that of "a")"),
            std::string::npos);
  EXPECT_NE(error_of(R"({"a": 0, "a": 1})").find(R"([v] "a" must have one id)"), std::string::npos);
}

TEST(VocabAndMerges, SaysWhatIsWrongWithMerges) {
  const auto error_of = [](const std::string& merges) { return message_of([&] { read(kVocab, merges); }); };
  for (const char* line : {"ab", "a  b", "a b c", " b", "a ", " "}) {
    const std::string message = error_of("#version: 0.2\nb c\n" + std::string(line));
    EXPECT_NE(message.find("[m] line 3 must be two tokens with a space between them, but is \""), std::string::npos)
        << message;
  }
  EXPECT_NE(error_of("a d").find(R"([m] line 1 must be of tokens of vocab.json, which has no "d")"), std::string::npos);
  EXPECT_NE(error_of("d a").find(R"(which has no "d")"), std::string::npos);
  EXPECT_NE(error_of("c a").find(R"(which has no "ca")"), std::string::npos);
  EXPECT_NE(error_of("a b\nb c\na b").find(R"([m] line 3 must be a new merge, but "a b" is in line 1 already)"),
            std::string::npos);
}

}  // namespace weft::vocab_and_merges_test
