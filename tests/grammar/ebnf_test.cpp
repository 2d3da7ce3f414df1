#include "grammar/ebnf.h"

#include <gtest/gtest.h>

#include "tests/grammar/grammar_texts.h"
#include "tests/thrown_message.h"

namespace weft::grammar_ebnf_test {

TEST(GrammarEbnf, MatchesWhatTheRulesSay) {
  const grammar::Grammar sums = grammar::read_ebnf(R"__(
# Sums of numbers and groups.
root  ::= term (ws "+" ws term)*
term  ::= number
        | "(" root ")"   # a group
number ::= [0-9]+ ("." [0-9]{1,2})?
ws ::= [ \t]*
)__");
  for (const char* text : {"1", "1+2", "(1 + 2.5)+3", "((((7))))", "1.25\t+ (2)"})
    EXPECT_TRUE(matches(sums, text)) << text;
  for (const char* text : {"", "1+", "(1", "1.234", "1)", "a"}) EXPECT_FALSE(matches(sums, text)) << text;
}

TEST(GrammarEbnf, ReadsAllNotations) {
  const grammar::Grammar made =
      grammar::read_ebnf(R"(root ::= "a\"\n\x41\u20ac" [^a-c\]\n] . x-y{2} x-y{0,1} x-y{1,} "" x-y ::= "z")");
  const std::string begin = "a\"\nA\u20ac";
  EXPECT_TRUE(matches(made, begin + "d\u00e9zzz"));
  EXPECT_TRUE(matches(made, begin + "d\nzzzzzz"));
  EXPECT_FALSE(matches(made, begin + "]xzzz"));
  EXPECT_FALSE(matches(made, begin + "dxzz"));
}

TEST(GrammarEbnf, KeepsAllDerivationsOfAmbiguousGrammars) {
  // All non-empty texts of x, in as many ways as there are trees.
  const grammar::Grammar trees = grammar::read_ebnf(R"(root ::= "x" | "x" root root | "x" root)");
  EXPECT_TRUE(matches(trees, std::string(60, 'x')));
  // Brackets of both kinds begin alike: 2^n stacks.
  const grammar::Grammar pairs = grammar::read_ebnf(R"(root ::= (a | b)* a ::= "x" a "y" | "x" b ::= "x" b "z" | "x")");
  EXPECT_TRUE(matches(pairs, std::string(40, 'x') + std::string(20, 'y')));
  EXPECT_TRUE(matches(pairs, std::string(40, 'x') + std::string(20, 'z')));
  EXPECT_FALSE(matches(pairs, std::string(40, 'x') + std::string(40, 'z')));
  EXPECT_FALSE(matches(pairs, "xxyz"));
  EXPECT_FALSE(matches(pairs, "xyxz"));
}

TEST(GrammarEbnf, DoesNotGrowWithRightRecursion) {
  const grammar::Grammar list = grammar::read_ebnf(R"(root ::= item rest rest ::= "," item rest | "" item ::= [a-z]+)");
  std::string text = "a";
  for (int i = 0; i < 20'000; ++i) text += ",b";
  EXPECT_TRUE(matches(list, text));
  // Each bracket is a caller on the stack, whose depth is limited.
  const grammar::Grammar nested = grammar::read_ebnf(R"(root ::= "[" root "]" | "x")");
  EXPECT_TRUE(matches(nested, std::string(400, '[') + "x" + std::string(400, ']')));
  EXPECT_FALSE(matches(nested, std::string(100'000, '[') + "x" + std::string(100'000, ']')));
}

TEST(GrammarEbnf, RefusesWhatItCannotEnforce) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "root"},
      {"start: \"a\"", "name ::="},
      {"a ::= \"x\"", "root"},
      {"root ::= a", "\"a\" is used"},
      {"root ::= \"a\" root ::= \"b\"", "twice"},
      {"root ::= root \"a\" | \"b\"", "left-recursive"},
      {"root ::= a \"x\" a ::= b? c b ::= \"y\" c ::= root | \"z\"", "left-recursive"},
      {"root ::= \"a\" root", "no text matches"},
      {"root ::= \"a", "ends too early"},
      {"root ::= (\"a\"", "wanted )"},
      {"root ::= [b-a]", "reversed"},
      {"root ::= \"\\q\"", "escape"},
      {"root ::= \"a\"{2,1}", "reversed"},
      {"root ::= (=\"a\")", "wanted a text"},
  };
  for (const auto& [text, words] : cases) {
    const std::string message = message_of([&] { grammar::CompiledGrammar{grammar::read_ebnf(text)}; });
    EXPECT_NE(message.find(words), std::string::npos) << text << ": " << message;
  }
}

}  // namespace weft::grammar_ebnf_test
