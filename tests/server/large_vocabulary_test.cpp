// Structured outputs of a model with 152,000 tokens.

#include "tests/grammar/large_vocabulary.h"

#include <gtest/gtest.h>

#include "base/json.h"
#include "tests/http_client.h"
#include "tests/server/running_server.h"

namespace weft::large_vocabulary_test {

TEST(LargeVocabulary, MakesAnswersOfTheAskedForm) {
  RunningServer running({}, {}, {}, {.added_tokens = large_vocabulary()});
  HttpClient client(running.port());
  const std::string schema =
      R"({"type":"object","properties":{"name":{"type":"string","minLength":3,"maxLength":20},"size":{"type":"integer"},)"
      R"("tags":{"type":"array","items":{"enum":["red","green"]},"maxItems":3}},)"
      R"("required":["name","size","tags"],"additionalProperties":false})";
  // The first request compiles the grammar, the others find its masks.
  for (int seed = 0; seed < 8; ++seed) {
    const ClientResponse response =
        client.post("/v1/completions", R"({"prompt":"Hello","temperature":1,"max_tokens":120,"seed":)" +
                                           std::to_string(seed) + R"(,"structured_outputs":{"json":)" + schema + "}}");
    ASSERT_EQ(response.status, 200) << response.body;
    const Json choice = parse_json(response.body)["choices"][0];
    if (choice["finish_reason"] != "stop") continue;  // a long number
    const Json document = parse_json(choice["text"].get<std::string>());
    EXPECT_EQ(document.size(), 3U) << choice["text"];
    EXPECT_TRUE(document["size"].is_number_integer()) << choice["text"];
    EXPECT_GE(document["name"].get<std::string>().size(), 3U) << choice["text"];
    for (const Json& tag : document["tags"]) EXPECT_TRUE(tag == "red" || tag == "green") << choice["text"];
  }
  const Json word = parse_json(
      client.post("/v1/completions", R"({"prompt":"a","max_tokens":9,"structured_outputs":{"regex":"[a-z]{12}"}})")
          .body);
  EXPECT_EQ(word["choices"][0]["text"].get<std::string>().size(), 12U) << json_text(word);
}

}  // namespace weft::large_vocabulary_test
