#include "io/regex.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "io/regex_syntax.h"
#include "tests/thrown_message.h"

namespace weft::regex_test {

std::vector<std::string> matches(const Regex& regex, std::string_view text) {
  Regex::Scratch scratch;
  std::vector<std::string> found;
  size_t from = 0;
  while (const std::optional<RegexMatch> match = regex.find(text, from, scratch)) {
    found.emplace_back(text.substr(match->begin, match->end - match->begin));
    if (match->end == match->begin) break;
    from = match->end;
  }
  return found;
}

using Strings = std::vector<std::string>;

TEST(Regex, FindsUnicodeClasses) {
  EXPECT_EQ(matches(Regex::compile(R"(\p{L}+)"), "ab \u00e9\u4e2d 12"), (Strings{"ab", "\u00e9\u4e2d"}));
  EXPECT_EQ(matches(Regex::compile(R"(\d)"), "7\u0663\u00b2"), (Strings{"7", "\u0663"}));
  EXPECT_EQ(matches(Regex::compile(R"((?i:'s))"), "'S '\u017f"), (Strings{"'S", "'\u017f"}));
}

TEST(Regex, WhiteSpaceIsUnicodesAndNotTheMongolianVowelSeparator) {
  EXPECT_EQ(matches(Regex::compile(R"(\s+)"), "a\u00a0\u2003b\u180ec\u0085"), (Strings{"\u00a0\u2003", "\u0085"}));
  EXPECT_EQ(matches(Regex::compile(R"([^\S\r\n]+)"), "a \n\t"), (Strings{" ", "\t"}));
}

TEST(Regex, TranslatesWhatOnigurumaMeansDifferently) {
  EXPECT_EQ(translate_oniguruma(R"(\s\S\v)"), R"(\p{White_Space}\P{White_Space}\x{0b})");
  EXPECT_EQ(translate_oniguruma(R"([\s\u00e9\x41])"), R"([\p{White_Space}\x{00e9}\x{41}])");
  EXPECT_EQ(translate_oniguruma("a{,3}b{2}c{1,}d{x}"), R"(a{0,3}b{2}c{1,}d\{x})");
  EXPECT_EQ(matches(Regex::compile("^a"), "a\nab"), (Strings{"a", "a"}));
}

// The expected matches here and below are those of tokenizers 0.22.1.
TEST(Regex, ScriptsAreThePropertyScript) {
  // U+3002 has the script Common, and Han among its script extensions.
  EXPECT_EQ(matches(Regex::compile(R"(\p{Han}+)"), "\u4f60\u3002\u597d"), (Strings{"\u4f60", "\u597d"}));
  EXPECT_EQ(matches(Regex::compile(R"([\p{^Han}]+)"), "\u4f60\u3002"), (Strings{"\u3002"}));
  EXPECT_EQ(matches(Regex::compile(R"(\P{Katakana}+)"), "\u30fc\u30a2"), (Strings{"\u30fc"}));
  EXPECT_EQ(matches(Regex::compile(R"([^\p{Arabic}]+)"), "\u060c\u0628"), (Strings{"\u060c"}));
}

TEST(Regex, WordsAreAlphabeticCharactersMarksDecimalDigitsAndConnectors) {
  EXPECT_EQ(matches(Regex::compile(R"(\w+)"), "a_\u24b6\u0345\u0663-\u200d\u09f4"), (Strings{"a_\u24b6\u0345\u0663"}));
  EXPECT_EQ(matches(Regex::compile(R"(\W+)"), "a-\u00b2\u20ac"), (Strings{"-", "\u20ac"}));
  EXPECT_EQ(matches(Regex::compile(R"([\w]+)"), "a\u00b2b"), (Strings{"a", "b"}));
  EXPECT_EQ(matches(Regex::compile(R"([\Wb]+)"), "ab-c"), (Strings{"b-"}));
  EXPECT_EQ(matches(Regex::compile(R"([^\W\Db]+)"), "a1b2"), (Strings{"1", "2"}));
  EXPECT_EQ(matches(Regex::compile(R"([^\W_]+)"), "a_b"), (Strings{"a", "b"}));
}

TEST(Regex, WordBoundaries) {
  EXPECT_EQ(matches(Regex::compile(R"(\b.)"), "ab \u24b6-"), (Strings{"a", " ", "\u24b6", "-"}));
  EXPECT_EQ(matches(Regex::compile(R"(\B.)"), "ab \u24b6-"), (Strings{"b"}));
  EXPECT_EQ(matches(Regex::compile(R"([\b])"), "b\b"), (Strings{"\b"}));
  EXPECT_EQ(matches(Regex::compile(R"(\d{1,3}(?=(?:\d{3})*\b))"), "1234567"), (Strings{"1", "234", "567"}));
}

TEST(Regex, ANestedClassIsAUnion) {
  EXPECT_EQ(matches(Regex::compile(R"([^(\s|[.,!])]+)"), "a, b)])"), (Strings{"a", "b", "]"}));
  EXPECT_EQ(matches(Regex::compile("[[a]-c]"), "a-bc"), (Strings{"a", "-", "c"}));
  EXPECT_EQ(matches(Regex::compile("[x[-a]b]"), "a-bcx"), (Strings{"a", "-", "b", "x"}));
  EXPECT_EQ(matches(Regex::compile("[[a-]b]"), "a-bc"), (Strings{"a", "-", "b"}));
  EXPECT_EQ(matches(Regex::compile("[a-c[x]^]+"), "abx^-"), (Strings{"abx^"}));
  EXPECT_EQ(matches(Regex::compile("[.[b-d.]]+"), ".b.-"), (Strings{".b."}));
}

// The expected matches are those of tokenizers 0.23.3.
TEST(Regex, ClassesIntersectAndMayHaveNegatedOnes) {
  EXPECT_EQ(matches(Regex::compile(R"([\p{L}&&[^\p{Han}]]+)"), "ab\u4f60c1"), (Strings{"ab", "c"}));
  EXPECT_EQ(matches(Regex::compile(R"([^\p{L}&&[^\p{Han}]]+)"), "ab\u4f60c1\n"), (Strings{"\u4f60", "1\n"}));
  EXPECT_EQ(matches(Regex::compile("[a-f&&c-z&&[^d]]+"), "abcdef"), (Strings{"c", "ef"}));
  EXPECT_EQ(matches(Regex::compile("[1[^a-c]]+"), "ab1dc"), (Strings{"1d"}));
  EXPECT_EQ(matches(Regex::compile("[^1[^a-c]]+"), "ab1dc"), (Strings{"ab", "c"}));
}

TEST(Regex, CategoriesHaveTheCharactersOfUnicode16) {
  // U+1FA77 is of Unicode 15; U+1C89 (Lu), U+10D40 (Nd) and U+0897 (Mn) are of Unicode 16.
  const std::string text = "\U0001FA77 \u1c89\U00010D40\u0897.";
  EXPECT_EQ(matches(Regex::compile(R"( ?\p{S}+)"), " " + text), (Strings{" \U0001FA77"}));
  EXPECT_EQ(matches(Regex::compile(R"([\p{Lu}\p{M}])"), text), (Strings{"\u1c89", "\u0897"}));
  EXPECT_EQ(matches(Regex::compile(R"([^\s\p{L}\p{N}]+)"), text), (Strings{"\U0001FA77", "\u0897."}));
  EXPECT_EQ(matches(Regex::compile(R"(\P{L}+)"), text), (Strings{"\U0001FA77 ", "\U00010D40\u0897."}));
  EXPECT_EQ(matches(Regex::compile(R"([\P{L}]+)"), text), (Strings{"\U0001FA77 ", "\U00010D40\u0897."}));
  EXPECT_EQ(matches(Regex::compile(R"([^\P{L}a])"), "a" + text), (Strings{"\u1c89"}));
  EXPECT_EQ(matches(Regex::compile(R"(\d)"), text), (Strings{"\U00010D40"}));
  EXPECT_EQ(matches(Regex::compile(R"(\w+)"), text), (Strings{"\u1c89\U00010D40\u0897"}));
  EXPECT_EQ(matches(Regex::compile(R"(\p{Han}+)"), "\U00031350."), (Strings{"\U00031350"}));
}

TEST(Regex, RefusesConstructsOutsideTheSubsetByName) {
  for (const std::string pattern :
       {"\\h",     "\\K",      "(a)\\1",  "(?<x>a)", "(?R)", "(*UTF)a", "[a[^\\P{L}]]", "[[:alpha:]]",
        "[&&b]",   "[[a&&b]]", "[a-[b]]", "[[]a]",   "[[a]", "[\\B]",   "[a-\\w]",      "[\\W-z]",
        "a{1,3}+", "\\pL",     "\\G",     "[\\A]",   "a\\",  "[a"}) {
    const std::string message = message_of([&] { Regex::compile(pattern); });
    EXPECT_NE(message.find("is not supported"), std::string::npos) << pattern << " " << message;
  }
}

TEST(Regex, RefusesMalformedPatterns) {
  EXPECT_THROW(Regex::compile("(a"), UserError);
  EXPECT_THROW(Regex::compile("*"), UserError);
  EXPECT_THROW(Regex::compile("\\p{Nonsense}"), UserError);
  EXPECT_THROW(Regex::compile(std::string(100'000, 'a')), UserError);
}

TEST(Regex, LiteralTextHasNoOperators) { EXPECT_EQ(matches(Regex::literal("a.(b"), "axb a.(b"), (Strings{"a.(b"})); }

TEST(Regex, EndsCatastrophicPatternsWithAnError) {
  const Regex regex = Regex::compile("(a|a)*(a|a)*(a|a)*[cd]");
  Regex::Scratch scratch;
  EXPECT_THROW(regex.find(std::string(2000, 'a') + "b", 0, scratch), UserError);
}

TEST(Regex, LongMatchesNeedNoStack) {
  const Regex regex = Regex::compile("(?:a|b)+");
  Regex::Scratch scratch;
  const std::string text(300'000, 'a');
  const std::optional<RegexMatch> match = regex.find(text, 0, scratch);
  ASSERT_TRUE(match.has_value());
  EXPECT_EQ(match->end, text.size());
}

}  // namespace weft::regex_test
