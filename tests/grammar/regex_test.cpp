#include "grammar/regex.h"

#include <random>
#include <regex>

#include <gtest/gtest.h>

#include "tests/grammar/grammar_texts.h"
#include "tests/thrown_message.h"

namespace weft::grammar_regex_test {

struct RegexCase {
  const char* pattern;
  std::vector<std::string> matching, others;
};

TEST(GrammarRegex, MatchesWholeTexts) {
  const RegexCase cases[] = {
      {"abc", {"abc"}, {"", "ab", "abcd"}},
      {"a|bc|", {"a", "bc", ""}, {"abc", "b"}},
      {"(a|b)*c+", {"c", "ababcc"}, {"", "ab"}},
      {"a{2,3}b{2}c{1,}", {"aabbc", "aaabbccc"}, {"abbc", "aabc", "aaaabbc"}},
      {"x{,2}", {"", "xx"}, {"xxx"}},
      {"a{x}", {"a{x}"}, {"a"}},
      {"^a.c$", {"abc", "a\u20acc"}, {"a\nc", "ac"}},
      {R"(\d\w\s\D)", {"1a x", "0_\t-"}, {"aa x", "1a 1"}},
      {R"([^a-c\d])", {"d", "\u00e9", "\U0001F600"}, {"a", "5", ""}},
      {R"([\w.-]+@[a-z]+\.(com|org))", {"a.b-c@d.com"}, {"a@b.net"}},
      {R"([]a]\]\/\.)", {"]]/.", "a]/."}, {"b]/."}},
      {R"(\u20ac\x41\x{1F600}\uD83D\uDE00)", {"\u20acA\U0001F600\U0001F600"}, {"A"}},
      {R"((?:a)(?P<n>b)(?<m>c)d*?)", {"abc", "abcdd"}, {"ab"}},
      {R"([^\x00-\x1f]+)", {"a b"}, {"a\n", ""}},
      {"[\u00e4-\u00fc]{2}", {"\u00e4\u00fc"}, {"\u00e4", "ab"}},
  };
  for (const RegexCase& row : cases) {
    const grammar::Grammar made = grammar_of(grammar::read_regex(row.pattern));
    for (const std::string& text : row.matching) EXPECT_TRUE(matches(made, text)) << row.pattern << " " << text;
    for (const std::string& text : row.others) EXPECT_FALSE(matches(made, text)) << row.pattern << " " << text;
  }
}

TEST(GrammarRegex, AgreesWithTheStandardLibraryOnRandomTexts) {
  std::mt19937 random(3);
  int matching = 0;
  for (const char* pattern :
       {"(ab|a)(bc|c)?", "a*b*a*", "(a|ab)(c|bcd)*", "[ab]{2,4}c?", "(a?b){1,3}", "((a|b)c)*|d+"}) {
    const grammar::Grammar made = grammar_of(grammar::read_regex(pattern));
    const std::regex wanted(pattern);
    for (int i = 0; i < 300; ++i) {
      std::string text;
      for (std::size_t length = random() % 7; text.size() < length;) text += "abcd"[random() % 4];
      EXPECT_EQ(matches(made, text), std::regex_match(text, wanted)) << pattern << " " << text;
      matching += matches(made, text) ? 1 : 0;
    }
  }
  EXPECT_GT(matching, 100);
}

TEST(GrammarRegex, SearchesUnlessAnchored) {
  const RegexCase cases[] = {
      {"b", {"b", "abc", "\n\nb"}, {"", "ac"}},
      {"^b", {"b", "bc"}, {"ab"}},
      {"b$", {"b", "ab"}, {"bc"}},
      {"^(a|b)$", {"a", "b"}, {"ab", ""}},
      {"^a|b$", {"ax", "xb", "a", "b"}, {"xa", "bx"}},
      {"(^|,)x(,|$)", {"x", "a,x", "x,b", "a,x,b"}, {"ax", "xb"}},
      {"", {"", "anything"}, {}},
  };
  for (const RegexCase& row : cases) {
    const grammar::Grammar made = grammar_of(grammar::read_search_regex(row.pattern));
    for (const std::string& text : row.matching) EXPECT_TRUE(matches(made, text)) << row.pattern << " " << text;
    for (const std::string& text : row.others) EXPECT_FALSE(matches(made, text)) << row.pattern << " " << text;
  }
}

TEST(GrammarRegex, NamesNulAmongOtherCharacters) {
  const std::string itself("[^\0-\x1f]", 6);  // as JSON's \u0000 is read
  for (const std::string& pattern : {std::string(R"([^\x00-\x1f])"), std::string(R"([^\u0000-\u001f])"), itself}) {
    const grammar::Grammar made = grammar_of(grammar::read_regex(pattern));
    EXPECT_TRUE(matches(made, "a")) << pattern;
    EXPECT_FALSE(matches(made, std::string(1, '\0'))) << pattern;
    EXPECT_FALSE(matches(made, "\x1f")) << pattern;
  }
  EXPECT_TRUE(matches(grammar_of(grammar::read_regex(R"([\x00a])")), "a"));
}

TEST(GrammarRegex, RefusesWhatItDoesNotEnforce) {
  const std::pair<const char*, const char*> cases[] = {
      {"a(?=b)", "look-around"},    {"(?<!a)b", "look-around"}, {R"((a)\1)", "\\1"},        {R"(\bword\b)", "\\b"},
      {R"(\p{L})", "\\p"},          {"(?i)a", "group"},         {"a**", "repetition"},      {"*a", "repeats nothing"},
      {"a{1001}", "1000"},          {"a{3,2}", "reversed"},     {"[z-a]", "reversed"},      {"(a", "without )"},
      {"a)", "without ("},          {"[a", "ends too early"},   {"a^b", "cannot begin"},    {"a$b", "cannot end"},
      {R"(\x00)", "NUL"},           {R"([\x00])", "NUL"},       {R"(\uD83D)", "surrogate"}, {"[[:alpha:]]", "[:"},
      {"(^a)*", "repeats a group"}, {"\xFF", "UTF-8"},
  };
  for (const auto& [pattern, words] : cases) {
    const std::string message = message_of([&] { grammar::read_search_regex(pattern); });
    EXPECT_NE(message.find(words), std::string::npos) << pattern << ": " << message;
  }
  std::string deep;
  for (int i = 0; i < 10'000; ++i) deep += '(';
  EXPECT_NE(message_of([&] { grammar::read_regex(deep); }).find("groups"), std::string::npos);
}

TEST(GrammarRegex, LimitsItsStates) {
  for (const char* pattern :
       {"(((a{1000}){1000}){1000}){1000}", "((((){1000}){1000}){1000}){1000}", "(a|b)*a(a|b){20}"}) {
    const std::string message = message_of([&] { grammar::CompiledGrammar{grammar_of(grammar::read_regex(pattern))}; });
    EXPECT_NE(message.find("[grammar] "), std::string::npos) << pattern << ": " << message;
  }
}

// Reading takes a time that grows as the pattern does: with its square these would take many minutes.
TEST(GrammarRegex, ReadsLongPatterns) {
  const std::string items(100'000, 'a');
  EXPECT_EQ(grammar::read_regex("^" + items + "$")->parts.size(), items.size());
  std::string ways = "a";
  for (int i = 1; i < 400'000; ++i) ways += "|a";
  EXPECT_EQ(grammar::read_regex(ways)->parts.size(), 400'000U);
  EXPECT_TRUE(matches(grammar_of(grammar::read_regex("^(ab|^c|d$)$")), "ab"));
}

}  // namespace weft::grammar_regex_test
