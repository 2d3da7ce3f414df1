// Masks over a vocabulary of 152,000 tokens. bench/mask_bench.cpp measures their time.

#include "tests/grammar/large_vocabulary.h"

#include <gtest/gtest.h>

#include "base/json.h"
#include "grammar/json_schema.h"
#include "tests/grammar/grammar_texts.h"

namespace weft::large_vocabulary_test {

TEST(LargeVocabulary, HasExactMasks) {
  std::vector<std::string> texts = small_vocabulary();
  for (std::string& text : large_vocabulary()) texts.push_back(std::move(text));
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  const grammar::TokenTrie trie(views);
  struct Case {
    const char* schema;
    const char* text;  // before the mask
  };
  for (const auto& [schema, text] :
       {Case{"{}", R"({"a": [1, "b)"}, Case{"{}", R"({"a": [1, )"}, Case{R"({"type":"string","maxLength":100})", "\"a"},
        Case{R"({"type":"string","pattern":"^[a-z ]+$"})", "\"a"},
        Case{R"({"properties":{"name":{},"note":{},"id":{}}})", "{\"n"}}) {
    const grammar::CompiledGrammar compiled(grammar::schema_grammar(parse_json(schema), {}));
    grammar::ParserStates states(compiled);
    grammar::MaskCache cache(1 << 24);
    grammar::TokenMasks masks(states, trie, cache);
    const grammar::StateId state = state_after(states, text);
    ASSERT_NE(state, grammar::kDead) << text;
    const auto mask = masks.mask(state);
    EXPECT_EQ(masks.mask(state), mask) << "it is kept";
    std::size_t wrong = 0, allowed = 0;
    for (std::size_t id = 0; id < texts.size(); ++id) {
      const bool follows = !texts[id].empty() && state_after(states, state, texts[id]) != grammar::kDead;
      allowed += follows ? 1 : 0;
      wrong += grammar::has_token(mask->tokens, static_cast<int>(id)) != follows ? 1 : 0;
    }
    EXPECT_EQ(wrong, 0U) << schema << text;
    EXPECT_GT(allowed, 50U) << schema << text;
  }
}

}  // namespace weft::large_vocabulary_test
