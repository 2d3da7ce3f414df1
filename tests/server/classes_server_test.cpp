// /classify and /pooling as clients see them, and rerankers that generate text.

#include <cmath>

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/json.h"
#include "tests/http_client.h"
#include "tests/server/running_server.h"

namespace weft::classes_server_test {

const std::string kEncoders = WEFT_TEST_DATA "/encoders/";

class Classes : public ::testing::Test {
 protected:
  explicit Classes(const std::string& model = "bert_classes")
      : folder_(kEncoders + model),
        running_({}, {{"activation-precision", "exact"}, {"dtype", "f32"}, {"kv-cache-dtype", "f32"}}, {},
                 {.path = folder_}) {}

  Json ask(const std::string& path, const std::string& fields, int status = 200) {
    const ClientResponse response = HttpClient(running_.port()).post(path, "{" + fields + "}");
    EXPECT_EQ(response.status, status) << response.body;
    return parse_json(response.body);
  }
  Json recorded(const char* file) const { return parse_json(read_file(folder_ + "/" + file, 1 << 20)); }

  std::string folder_;
  RunningServer running_;
};

TEST_F(Classes, HaveLabelsAndProbabilities) {
  const Json wanted = recorded("classes.json");
  for (const Json& text : wanted["texts"]) {
    Json ids = Json::array();
    for (std::size_t i = 0; i < text["length"]; ++i) ids.push_back(wanted["ids"][i]);
    const Json answer = ask("/classify", "\"input\":" + json_text(ids));
    EXPECT_EQ(answer["object"], "list");
    EXPECT_TRUE(answer["id"].get<std::string>().starts_with("classify-"));
    EXPECT_EQ(answer["usage"]["prompt_tokens"], text["length"]);
    const Json& one = answer["data"][0];
    EXPECT_EQ(one["index"], 0);
    EXPECT_EQ(one["num_classes"], 3);
    std::size_t likeliest = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_NEAR(one["probs"][i].get<double>(), text["probabilities"][i].get<double>(), 1e-5);
      if (text["probabilities"][i] > text["probabilities"][likeliest]) likeliest = i;
    }
    EXPECT_EQ(one["label"], wanted["labels"][likeliest]);
  }
}

TEST_F(Classes, OfSeveralTextsAreInTheirOrder) {
  const Json data = ask("/classify", R"("input":["cat","dog"])")["data"];
  ASSERT_EQ(data.size(), 2U);
  EXPECT_EQ(data[1]["index"], 1);
  EXPECT_EQ(data[1]["probs"], ask("/classify", R"("input":"dog")")["data"][0]["probs"]);
  const Json raw = ask("/classify", R"("input":"dog","use_activation":false)")["data"][0]["probs"];
  double sum = 0;
  for (const Json& number : raw) sum += std::exp(number.get<double>());
  EXPECT_NEAR(std::exp(raw[0].get<double>()) / sum, data[1]["probs"][0].get<double>(), 1e-9);
}

TEST_F(Classes, AreWhatPoolingAnswers) {
  const Json pooled = ask("/pooling", R"("input":["cat"])");
  EXPECT_TRUE(pooled["id"].get<std::string>().starts_with("pooling-"));
  EXPECT_EQ(pooled["data"][0]["object"], "pooling");
  const Json probabilities = ask("/classify", R"("input":"cat")")["data"][0]["probs"];
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_NEAR(pooled["data"][0]["data"][i].get<double>(), probabilities[i].get<double>(), 1e-7);
  EXPECT_TRUE(
      ask("/pooling", R"("input":"cat","task":"classify","encoding_format":"base64")")["data"][0]["data"].is_string());
  ask("/pooling", R"("input":"cat","task":"token_classify")", 400);
  ask("/pooling", R"("input":"cat","dimensions":2)", 400);
}

TEST_F(Classes, RankNoTexts) {
  const Json answer = ask("/v1/rerank", R"("query":"cat","documents":["dog"])", 501);
  EXPECT_NE(answer["error"]["message"].get<std::string>().find("3 classes"), std::string::npos);
  ask("/v1/score", R"("text_1":"cat","text_2":"dog")", 501);
  ask("/classify", "", 400);
}

class Reranker : public Classes {
 protected:
  Reranker() : Classes("qwen3_reranker") {}
};

TEST_F(Reranker, ScoresAreThoseOfSentenceTransformers) {
  const Json wanted = recorded("reranked.json");
  const std::string other = ",\"instruction\":" + json_text(wanted["other_instruction"]);
  for (const Json& pair : wanted["pairs"]) {
    const std::string texts = "\"text_1\":" + json_text(pair["query"]) + ",\"text_2\":" + json_text(pair["document"]);
    const Json answer = ask("/v1/score", texts + ",\"use_activation\":false");
    const double logit = answer["data"][0]["score"];
    EXPECT_NEAR(logit, pair["logit"].get<double>(), 1e-5);
    EXPECT_EQ(answer["usage"]["prompt_tokens"], pair["tokens"]);
    EXPECT_NEAR(ask("/v1/score", texts)["data"][0]["score"].get<double>(), 1 / (1 + std::exp(-logit)), 1e-9);
    EXPECT_NEAR(ask("/v1/score", texts + other + ",\"use_activation\":false")["data"][0]["score"].get<double>(),
                pair["logit_with_other_instruction"].get<double>(), 1e-5);
  }
}

// Where the template has the document is not known.
TEST_F(Reranker, PromptsOfATemplateAreNotCut) {
  const std::string pair = R"("text_1":"cat","text_2":"dog","truncate_prompt_tokens":)";
  ask("/v1/score", pair + "5", 400);
  ask("/v1/score", pair + "-1");
  ask("/v1/score", pair + "200");
}

TEST_F(Reranker, AlsoGeneratesText) {
  EXPECT_EQ(ask("/v1/completions", R"("prompt":"cat","max_tokens":2,"ignore_eos":true)")["usage"]["completion_tokens"],
            2);
  EXPECT_EQ(ask("/classify", R"("input":"cat")")["data"][0]["num_classes"], 1);
  ask("/v1/embeddings", R"("input":"cat")", 501);
}

}  // namespace weft::classes_server_test
