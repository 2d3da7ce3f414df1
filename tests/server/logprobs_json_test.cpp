#include "server/logprobs_json.h"

#include <cmath>

#include <gtest/gtest.h>

#include "tests/io/small_vocabulary.h"

namespace weft::logprobs_json_test {

// "é", its first byte, and a special token.
constexpr int kE = 256, kHalf = 0xC3, kEnd = 257;

const Tokenizer& tokenizer() {
  static const Tokenizer shared(small_vocabulary({{"\xC3", "\xA9"}}, {"<end>"}));
  return shared;
}

const std::vector<TokenLogprobs> kTokens = {
    {.chosen = {'a', -0.5F}, .rank = 1, .top = {{'a', -0.5F}, {'b', -1}, {'c', -2}}},
    {.chosen = {kE, -INFINITY}, .rank = 9, .top = {{kEnd, -0.25F}, {'b', -1.5F}, {'c', -2}}},
    {.chosen = {kHalf, -3}, .rank = 2, .top = {{0xC4, -0.125F}, {kHalf, -3}, {'c', -4}}},
};

TEST(LogprobsJson, OfCompletions) {
  std::int64_t offset = 5;
  const LogprobsStyle style{.tokenizer = &tokenizer(), .count = 2};
  EXPECT_EQ(json_text(logprobs_json(style, kTokens, offset)),
            R"({"text_offset":[5,6,7],"token_logprobs":[-0.5,-9999.0,-3.0],"tokens":["a","é","�"],)"
            R"("top_logprobs":[{"a":-0.5,"b":-1.0},{"<end>":-0.25,"b":-1.5,"é":-9999.0},{"�":-0.125}]})");
  EXPECT_EQ(offset, 8);
  const LogprobsStyle none{.tokenizer = &tokenizer(), .count = 0};
  EXPECT_EQ(json_text(logprobs_json(none, kTokens, offset)["top_logprobs"]),
            R"([{"a":-0.5},{"é":-9999.0},{"�":-3.0}])");
  EXPECT_EQ(logprobs_json(style, {}, offset), nullptr);
}

TEST(LogprobsJson, OfAPromptsFirstTokenThereIsNone) {
  std::int64_t offset = 0;
  const std::vector<TokenLogprobs> tokens = {{.chosen = {.id = 'x'}}, kTokens[0]};
  EXPECT_EQ(
      json_text(logprobs_json({.tokenizer = &tokenizer(), .count = 0}, tokens, offset)),
      R"({"text_offset":[0,1],"token_logprobs":[null,-0.5],"tokens":["x","a"],"top_logprobs":[null,{"a":-0.5}]})");
}

TEST(LogprobsJson, TokensByTheirIds) {
  std::int64_t offset = 0;
  for (const LogprobsStyle& style :
       {LogprobsStyle{.tokenizer = &tokenizer(), .tokens_as_ids = true, .count = 1}, LogprobsStyle{.count = 1}}) {
    offset = 0;
    EXPECT_EQ(json_text(logprobs_json(style, {&kTokens[1], 1}, offset)),
              R"({"text_offset":[0],"token_logprobs":[-9999.0],"tokens":["token_id:256"],)"
              R"("top_logprobs":[{"token_id:257":-0.25,"token_id:256":-9999.0}]})");
    EXPECT_EQ(offset, 12);
  }
}

TEST(LogprobsJson, OfChats) {
  std::int64_t offset = 0;
  const LogprobsStyle style{.endpoint = chat, .tokenizer = &tokenizer(), .count = 1};
  EXPECT_EQ(json_text(logprobs_json(style, {&kTokens[1], 2}, offset)),
            R"({"content":[{"token":"é","logprob":-9999.0,"bytes":[195,169],)"
            R"("top_logprobs":[{"token":"<end>","logprob":-0.25,"bytes":[60,101,110,100,62]}]},)"
            R"({"token":"�","logprob":-3.0,"bytes":[195],)"
            R"("top_logprobs":[{"token":"�","logprob":-0.125,"bytes":[196]}]}]})");
  const LogprobsStyle none{.endpoint = chat, .tokenizer = &tokenizer(), .count = 0};
  EXPECT_EQ(json_text(logprobs_json(none, {&kTokens[0], 1}, offset)),
            R"({"content":[{"token":"a","logprob":-0.5,"bytes":[97],"top_logprobs":[]}]})");
}

TEST(LogprobsJson, OfPrompts) {
  const std::vector<TokenLogprobs> tokens = {{.chosen = {.id = 'x'}}, kTokens[0], kTokens[1]};
  EXPECT_EQ(json_text(prompt_logprobs_json(2, &tokenizer(), tokens)),
            R"([null,{"97":{"logprob":-0.5,"rank":1,"decoded_token":"a"},"98":{"logprob":-1.0,"rank":2,)"
            R"("decoded_token":"b"}},{"256":{"logprob":-9999.0,"rank":9,"decoded_token":"é"},)"
            R"("257":{"logprob":-0.25,"rank":1,"decoded_token":"<end>"},)"
            R"("98":{"logprob":-1.5,"rank":2,"decoded_token":"b"}}])");
  EXPECT_EQ(json_text(prompt_logprobs_json(0, &tokenizer(), tokens)[2]),
            R"({"256":{"logprob":-9999.0,"rank":9,"decoded_token":"é"}})");
}

}  // namespace weft::logprobs_json_test
