#include "io/special_tokens.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "small_vocabulary.h"

namespace weft::special_tokens_test {

// "text", or "#id" for a token, and the token's own stretch in brackets.
std::vector<std::string> split(const Vocabulary& vocabulary, std::string_view text, bool parse_special = true) {
  std::vector<std::string> result;
  for (const SpecialTokenFinder::Stretch& stretch : SpecialTokenFinder(vocabulary).split(text, parse_special)) {
    const std::string part(text.substr(stretch.begin, stretch.end - stretch.begin));
    result.push_back(stretch.id < 0 ? part : "#" + std::to_string(stretch.id) + "[" + part + "]");
  }
  return result;
}

using Strings = std::vector<std::string>;

TEST(SpecialTokenFinder, TakesTheLongestOfTheLeftmost) {
  const Vocabulary vocabulary = small_vocabulary({}, {"<a", "<a>", "a>b", "<a>>>x"});
  EXPECT_EQ(split(vocabulary, "x<a>b<a<a>>>y"), (Strings{"x", "#257[<a>]", "b", "#256[<a]", "#257[<a>]", ">>y"}));
  EXPECT_EQ(split(vocabulary, "<a>>>x"), (Strings{"#259[<a>>>x]"}));
  EXPECT_EQ(split(vocabulary, "plain"), (Strings{"plain"}));
  EXPECT_TRUE(split(vocabulary, "").empty());
}

TEST(SpecialTokenFinder, LeavesControlTokensAloneWhenNotParsed) {
  Vocabulary vocabulary = small_vocabulary({}, {"<c>", "<u>"});
  vocabulary.kinds[257] = TokenKind::user_defined;
  EXPECT_EQ(split(vocabulary, "a<c><u>", false), (Strings{"a<c>", "#257[<u>]"}));
}

TEST(SpecialTokenFinder, SingleWordNeedsNoWordCharacterBeside) {
  Vocabulary vocabulary = small_vocabulary({}, {"foo"});
  vocabulary.added_tokens[0].single_word = true;
  EXPECT_EQ(split(vocabulary, "foo food (foo) \u00e9foo"),
            (Strings{"#256[foo]", " food (", "#256[foo]", ") \u00e9foo"}));
}

TEST(SpecialTokenFinder, StripTakesWhiteSpaceAlong) {
  Vocabulary vocabulary = small_vocabulary({}, {"<m>"});
  vocabulary.added_tokens[0].strip_left = true;
  vocabulary.added_tokens[0].strip_right = true;
  EXPECT_EQ(split(vocabulary, "a \u00a0<m>\n <m> b"), (Strings{"a", "#256[ \u00a0<m>\n ]", "#256[<m> ]", "b"}));
}

// As tokenizers 0.22.1 does: what follows the second token is text again.
TEST(SpecialTokenFinder, FindsATokenInTheWhiteSpaceThatTheOneBeforeStripped) {
  Vocabulary vocabulary = small_vocabulary({}, {"<m>", " w", "\n"});
  vocabulary.added_tokens[0].strip_right = true;
  EXPECT_EQ(split(vocabulary, "<m> wb"), (Strings{"#256[<m> ]", "#257[ w]", "b"}));
  EXPECT_EQ(split(vocabulary, "<m> \n  b"), (Strings{"#256[<m> \n  ]", "#258[\n]", "  b"}));
}

// As tokenizers 0.23.3 does.
TEST(SpecialTokenFinder, ATokenThatStripsItsLeftSideDoesNotTakeWhatTheOneBeforeHas) {
  Vocabulary vocabulary = small_vocabulary({}, {"  "});
  vocabulary.added_tokens[0].strip_left = true;
  vocabulary.added_tokens[0].strip_right = true;
  EXPECT_EQ(split(vocabulary, "     "), (Strings{"#256[     ]"}));
  EXPECT_EQ(split(vocabulary, "a    b  c"), (Strings{"a", "#256[    ]", "b", "#256[  ]", "c"}));
}

TEST(SpecialTokenFinder, CircledLettersAreWordCharacters) {
  Vocabulary vocabulary = small_vocabulary({}, {"foo"});
  vocabulary.added_tokens[0].single_word = true;
  EXPECT_EQ(split(vocabulary, "foo\u24b6 \U0001F130foo foo\u00b2"),
            (Strings{"foo\u24b6 \U0001F130foo ", "#256[foo]", "\u00b2"}));
}

TEST(SpecialTokenFinder, RefusesTextsThatAreEmptyOrNotUtf8) {
  EXPECT_THROW(split(small_vocabulary({}, {""}), "x"), UserError);
  EXPECT_THROW(split(small_vocabulary({}, {"\xC3"}), "x"), UserError);
}

TEST(SpecialTokenFinder, NormalizesTheTextsOfTokens) {
  Vocabulary vocabulary = small_vocabulary({}, {"e\u0301", " "});
  for (AddedToken& token : vocabulary.added_tokens) token.normalized = true;
  const Normalizer normalizer({UnicodeForm::nfc, StripSpaces{}});
  const SpecialTokenFinder finder(vocabulary, &normalizer);
  const auto stretches = finder.split("a\u00e9 ", true);
  ASSERT_EQ(stretches.size(), 3U);  // a token whose normal form is empty is never found
  EXPECT_EQ(stretches[1].id, 256);
}

}  // namespace weft::special_tokens_test
