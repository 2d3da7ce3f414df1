#include "grammar/token_masks.h"

#include <random>

#include <gtest/gtest.h>

#include "grammar/ebnf.h"
#include "grammar/json_schema.h"
#include "grammar/regex.h"
#include "tests/grammar/grammar_texts.h"

namespace weft::token_masks_test {

using grammar::StateId;

struct MaskedGrammar {
  explicit MaskedGrammar(const grammar::Grammar& grammar, std::vector<std::string> vocabulary = small_vocabulary())
      : texts(std::move(vocabulary)),
        views(texts.begin(), texts.end()),
        compiled(grammar),
        states(compiled),
        trie(views) {}

  std::vector<std::string> texts;
  std::vector<std::string_view> views;
  grammar::CompiledGrammar compiled;
  grammar::ParserStates states;
  grammar::TokenTrie trie;
  grammar::MaskCache cache{1 << 20};
  grammar::TokenMasks masks{states, trie, cache};
};

// Byte by byte, token by token.
grammar::TokenSet allowed_one_by_one(MaskedGrammar& masked, StateId state) {
  grammar::TokenSet tokens((masked.texts.size() + 63) / 64, 0);
  for (std::size_t id = 0; id < masked.texts.size(); ++id) {
    const StateId next = state_after(masked.states, state, masked.texts[id]);
    if (next != grammar::kDead && !masked.texts[id].empty()) tokens[id / 64] |= std::uint64_t{1} << (id % 64);
  }
  return tokens;
}

TEST(TokenMasks, AllowExactlyTheTokensThatMayFollow) {
  const std::pair<grammar::Grammar, std::string> cases[] = {
      {grammar::schema_grammar(nullptr, {}), R"({"a": {"abc": [1, 2.5e7, "x\"y", "é😀\u00e9"], "b": []}, "c": null})"},
      {grammar::schema_grammar(parse_json(R"({"type":"object","properties":{"name":{"type":"string","maxLength":5},
         "id":{"type":"integer","minimum":3}},"required":["id"]})"),
                               {}),
       "{\n  \"name\": \"ab\u20ac\",\n  \"id\": 12, \"abc\": [[]]}"},
      {grammar::read_ebnf(R"(root ::= (a | b)* a ::= "a" a "b" | "a" b ::= "a" b "1" | "a")"), "aaabaa1"},
  };
  for (const auto& [made, text] : cases) {
    MaskedGrammar masked(made);
    StateId state = masked.states.start();
    for (const char byte : text) {
      ASSERT_NE(state, grammar::kDead) << text;
      const grammar::TokenSet wanted = allowed_one_by_one(masked, state);
      EXPECT_EQ(masked.masks.mask(state)->tokens, wanted) << text;
      EXPECT_EQ(masked.masks.walked_mask(state), wanted) << text;
      state = masked.states.step(state, static_cast<std::uint8_t>(byte));
    }
    EXPECT_TRUE(masked.states.may_end(state)) << text;
  }
}

// Words, punctuation, characters of one to four bytes and parts of them, joined at random.
std::vector<std::string> random_vocabulary() {
  const std::vector<std::string> parts = {"a",    "b",        "z",        "A",      "0",          "9",        " ",
                                          "\"",   "\\",       ",",        ":",      "{",          "}",        "\n",
                                          ".",    "\u00e9",   "\u4e2d",   "\u20ac", "\U0001F600", "\xE4\xB8", "\xAD",
                                          "\xC3", "\xF0\x9F", "\xED\xA0", "\xFF",   "\x01",       "\x7F"};
  std::mt19937 random(5);
  std::vector<std::string> texts = small_vocabulary();
  for (int i = 0; i < 3000; ++i) {
    std::string text;
    for (std::size_t left = 1 + random() % 8; left > 0; --left) {
      // Mostly what occurs in strings, so that many tokens are allowed there.
      text += parts[random() % (random() % 3 == 0 ? parts.size() : 7)];
    }
    texts.push_back(text);
  }
  texts.push_back(std::string(100, 'a'));
  return texts;
}

TEST(TokenMasks, AreTheSameWithoutAWalkOverFreeCharacters) {
  const auto of_regex = [](const char* pattern) { return grammar_of(grammar::read_regex(pattern)); };
  const auto of_schema = [](const char* schema) { return grammar::schema_grammar(parse_json(schema), {}); };
  const std::pair<grammar::Grammar, std::string> cases[] = {
      {of_schema("{}"), R"({"ab": "x\"y\u4e2d z", "c": [1.5, "a"]})"},
      {of_schema(R"({"type":"string","maxLength":9})"), "\"ab\u4e2d \U0001F600z\""},
      {of_schema(R"({"type":"string","minLength":4,"maxLength":90})"), "\"ab\u00e9 zz\""},
      {of_schema(R"({"type":"string","pattern":"^[a-z ]+$"})"), "\"ab z\""},
      {of_schema(R"({"pattern":"z$","minLength":4,"maxLength":9})"), "\"ab\u00e9 \\u00e9zz\""},
      {of_schema(R"({"pattern":"z$","minLength":4,"maxLength":300})"), "\"ab\u00e9 \\u00e9zz\""},
      {of_schema(R"({"pattern":"^(a|z )*$","minLength":4})"), "\"aaz aa\""},
      {of_schema(R"({"properties":{"a":{},"ab":{"type":"integer"},"z":{}}})"), R"({"ab":1,"az":[],"\u4e2d":0})"},
      {of_regex(".*"), "ab\u4e2d z"},
      {of_regex("([a-z]+ )*"), "ab z "},
      {of_regex("[^\u4e2d]*"), "ab\u00e9 z"},
      {of_regex("(a|ab|[\u4e00-\u9fff])*"), "aab\u4e2d"},
      {grammar::read_ebnf("root ::= (word \" \")* word\nword ::= [a-zA-Z]+ [.,]?"), "ab a. zA"},
      {grammar::read_ebnf("root ::= \"[\" text \"]\"\ntext ::= [^\\]]* | \"a\" root"), "[ab z[\u4e2d]"},
  };
  for (const auto& [made, text] : cases) {
    MaskedGrammar masked(made, random_vocabulary());
    StateId state = masked.states.start();
    for (std::size_t i = 0; i <= text.size(); ++i) {
      ASSERT_NE(state, grammar::kDead) << text << i;
      EXPECT_EQ(masked.masks.mask(state)->tokens, masked.masks.walked_mask(state)) << text << i;
      if (i < text.size()) state = masked.states.step(state, static_cast<std::uint8_t>(text[i]));
    }
    EXPECT_TRUE(masked.states.may_end(state)) << text;
  }
}

TEST(TokenMasks, AreTheSameNearTheDeepestStack) {
  MaskedGrammar masked(grammar::read_ebnf(R"(root ::= "[" root "]" | "ab")"));
  StateId state = masked.states.start();
  for (int depth = 0; masked.states.step(state, '[') != grammar::kDead; ++depth) {
    ASSERT_LT(depth, 1000);
    if (depth > 480) {
      EXPECT_EQ(masked.masks.mask(state)->tokens, allowed_one_by_one(masked, state)) << depth;
    }
    state = masked.states.step(state, '[');
  }
}

TEST(TokenMasks, StayTheSameAfterStatesWereDropped) {
  MaskedGrammar masked(grammar::schema_grammar(nullptr, {}));
  StateId state = state_after(masked.states, R"({"a": [{"b": [1, )");
  const grammar::TokenSet before = masked.masks.mask(state)->tokens;
  for (int i = 0; i < 50; ++i)
    state_after(masked.states, std::string("{\"") + std::string(i % 7, 'a') + "\":[[{\"x\":[");
  StateId* live[] = {&state};
  const std::size_t size = masked.states.size();
  masked.states.keep(live);
  masked.masks.forget();
  EXPECT_LT(masked.states.size(), size);
  EXPECT_EQ(masked.masks.mask(state)->tokens, before);
  EXPECT_TRUE(masked.states.may_end(state_after(masked.states, state, "2]}]}")));
}

TEST(TokenMasks, DoNotDependOnFarBounds) {
  MaskedGrammar masked(grammar::schema_grammar(parse_json(R"({"pattern":"b","minLength":2,"maxLength":200})"), {}),
                       random_vocabulary());
  StateId state = state_after(masked.states, "\"");
  for (int i = 0; i < 199; ++i) {
    state = masked.states.step(state, 'a');
    ASSERT_NE(state, grammar::kDead) << i;
    EXPECT_EQ(masked.masks.mask(state)->tokens, masked.masks.walked_mask(state)) << i;
    if (i % 50 != 49) continue;
    StateId* live[] = {&state};  // the numbers of characters are kept, too
    masked.states.keep(live);
    masked.masks.forget();
  }
  EXPECT_EQ(masked.states.step(state, 'a'), grammar::kDead);
  EXPECT_TRUE(masked.states.may_end(state_after(masked.states, state, "b\"")));
}

TEST(TokenMasks, AreKeptWithinTheLimitOfTheCache) {
  grammar::MaskCache cache(3 * (8 * 100 + 128));
  const std::uint64_t owner = cache.new_owner();
  const auto key = [&](std::uint32_t state) {
    return grammar::MaskCache::Key{owner, grammar::MaskCache::Kind::of_state, state};
  };
  for (std::uint32_t state = 0; state < 3; ++state) cache.add(key(state), {grammar::TokenSet(100, state)});
  ASSERT_NE(cache.find(key(0)), nullptr);  // now the last used
  cache.add(key(3), {grammar::TokenSet(100, 3)});
  EXPECT_EQ(cache.find(key(1)), nullptr);
  EXPECT_NE(cache.find(key(0)), nullptr);
  EXPECT_EQ(cache.find(key(3))->tokens[0], 3U);
  EXPECT_EQ(cache.find({cache.new_owner(), grammar::MaskCache::Kind::of_state, 0}), nullptr);
}

}  // namespace weft::token_masks_test
