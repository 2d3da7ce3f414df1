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

TEST(Regex, RefusesConstructsOutsideTheSubsetByName) {
  for (const std::string pattern : {"\\w", "\\b", "\\h", "\\K", "(a)\\1", "(?<x>a)", "(?R)", "(*UTF)a", "[a[b]]",
                                    "[[:alpha:]]", "[a&&b]", "a{1,3}+", "\\pL", "\\G", "[\\A]", "a\\", "[a"}) {
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
