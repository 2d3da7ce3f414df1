// /v1/embeddings as clients see it.

#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "base/base64.h"
#include "base/json.h"
#include "tests/http_client.h"
#include "tests/server/running_server.h"

namespace weft::embeddings_server_test {

class EmbeddingsOfServer : public ::testing::Test {
 protected:
  ClientResponse ask(const std::string& fields) {
    return HttpClient(running_.port()).post("/v1/embeddings", "{" + fields + "}");
  }
  Json answer(const std::string& fields) {
    const ClientResponse response = ask(fields);
    EXPECT_EQ(response.status, 200) << response.body;
    return parse_json(response.body);
  }
  std::vector<float> numbers(const Json& answer, std::size_t index = 0) {
    return answer["data"].at(index)["embedding"].get<std::vector<float>>();
  }

  RunningServer running_{{}, {}, {.has_prompt_details = true}, {.pooling = Pooling::last}};
};

TEST_F(EmbeddingsOfServer, HaveTheFormOfOpenAi) {
  const Json one = answer(R"("input":"abc","model":"small","user":"me")");
  EXPECT_EQ(one["object"], "list");
  EXPECT_EQ(one["model"], "tiny");
  EXPECT_EQ(one["data"].size(), 1U);
  EXPECT_EQ(one["data"][0]["object"], "embedding");
  EXPECT_EQ(one["data"][0]["index"], 0);
  EXPECT_EQ(one["usage"]["prompt_tokens"], 3);
  EXPECT_EQ(one["usage"]["total_tokens"], 3);
  EXPECT_EQ(one["usage"]["completion_tokens"], 0);
  const std::vector<float> embedding = numbers(one);
  EXPECT_EQ(embedding.size(), 64U);
  double squares = 0;
  for (const float number : embedding) squares += double{number} * double{number};
  EXPECT_NEAR(squares, 1, 1e-5);
  // The client `openai` asks for bytes.
  const Json coded = answer(R"("input":"abc","encoding_format":"base64")");
  const std::string bytes = decode_base64(coded["data"][0]["embedding"].get<std::string>()).value();
  std::vector<float> read(bytes.size() / sizeof(float));
  std::memcpy(read.data(), bytes.data(), bytes.size());
  EXPECT_EQ(read, embedding);
}

TEST_F(EmbeddingsOfServer, HaveTheFormOfLlamaOnItsPaths) {
  const std::vector<float> wanted = numbers(answer(R"("input":"abc")"));
  HttpClient client(running_.port());
  for (const char* path : {"/embedding", "/embeddings"})
    for (const char* fields : {R"({"content":"abc"})", R"({"input":["abc"],"embd_normalize":2})"}) {
      const Json list = parse_json(client.post(path, fields).body);
      ASSERT_EQ(list.size(), 1U) << path;
      EXPECT_EQ(list[0]["index"], 0);
      EXPECT_EQ(list[0]["embedding"].size(), 1U);
      EXPECT_EQ(list[0]["embedding"][0].get<std::vector<float>>(), wanted);
    }
  const Json several =
      parse_json(client.post("/embedding", R"({"content":["d",[97,98,99]],"embd_normalize":-1})").body);
  ASSERT_EQ(several.size(), 2U);
  EXPECT_EQ(several[1]["embedding"][0].get<std::vector<float>>(),
            numbers(answer(R"("input":"abc","normalize":false)")));
  for (const char* wrong : {"{}", R"({"content":"a","embd_normalize":0})", R"({"content":[]})"})
    EXPECT_EQ(client.post("/embedding", wrong).status, 400) << wrong;
}

TEST_F(EmbeddingsOfServer, OfSeveralInputsAreThoseOfEach) {
  const Json all = answer(R"("input":["abc","a longer text than the first","d"])");
  EXPECT_EQ(all["data"].size(), 3U);
  EXPECT_EQ(all["usage"]["prompt_tokens"], 3 + 28 + 1);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(all["data"][i]["index"], i);
  EXPECT_EQ(numbers(all, 0), numbers(answer(R"("input":"abc")")));
  EXPECT_EQ(numbers(all, 2), numbers(answer(R"("input":[[100]])"))) << "of token ids: the tiny model's are bytes";
  const std::string longer = R"("input":"a text of more than two blocks of tokens, in all")";
  EXPECT_EQ(numbers(answer(longer)), numbers(answer(longer)));
  EXPECT_EQ(answer(longer)["usage"]["prompt_tokens_details"]["cached_tokens"], 32);
}

TEST_F(EmbeddingsOfServer, MayBeShortOrNotNormalized) {
  const std::vector<float> whole = numbers(answer(R"("input":"abc","normalize":false)"));
  const std::vector<float> first = numbers(answer(R"("input":"abc","dimensions":8)"));
  ASSERT_EQ(first.size(), 8U);
  EXPECT_NEAR(first[0] / first[1], whole[0] / whole[1], 1e-4);
  EXPECT_EQ(numbers(answer(R"("input":"abc","truncate_prompt_tokens":1)")), numbers(answer(R"("input":"a")")));
}

TEST_F(EmbeddingsOfServer, RefuseWhatTheyCannotDo) {
  const auto refused = [&](const std::string& fields, int status, const char* field) {
    const ClientResponse response = ask(fields);
    EXPECT_EQ(response.status, status) << fields;
    EXPECT_NE(response.body.find(field), std::string::npos) << response.body;
  };
  refused("", 400, "[input] is missing");
  refused(R"("input":"")", 400, "[input] must not be empty");
  refused(R"("input":[])", 400, "[input] must not be empty");
  refused(R"("input":["a",5])", 400, "input");
  refused(R"("input":[[999999]])", 400, "[input] a token must be");
  refused(R"("input":"a","dimensions":65)", 400, "[dimensions] must be at most the model's 64");
  refused(R"("input":"a","dimensions":0)", 400, "dimensions");
  refused(R"("input":"a","encoding_format":"hex")", 400, "float or base64");
  refused(R"("input":"a","embed_dtype":"float16")", 501, "embed_dtype");
  refused(R"("input":"a","model":"other")", 404, "other");
  refused(R"("input":")" + std::string(500, 'a') + "\"", 400, "maximum context length");
  EXPECT_EQ(running_.load_at_rest(), 0);
}

// Prompts are counted, and no generated token.
TEST_F(EmbeddingsOfServer, AreInTheMetrics) {
  answer(R"("input":["abc","de"])");
  const std::string metrics = HttpClient(running_.port()).get("/metrics").body;
  EXPECT_NE(metrics.find("vllm:prompt_tokens_total{engine=\"0\",model_name=\"tiny\"} 5.0\n"), std::string::npos)
      << metrics;
  EXPECT_NE(metrics.find("vllm:generation_tokens_total{engine=\"0\",model_name=\"tiny\"} 0.0\n"), std::string::npos)
      << metrics;
}

TEST(EmbeddingsOfOtherServers, NeedAPooling) {
  RunningServer running;
  const ClientResponse response = HttpClient(running.port()).post("/v1/embeddings", R"({"input":"a"})");
  EXPECT_EQ(response.status, 501);
  EXPECT_NE(response.body.find("--pooling"), std::string::npos) << response.body;
}

}  // namespace weft::embeddings_server_test
