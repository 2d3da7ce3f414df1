// /score and /rerank as clients see them.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/json.h"
#include "tests/http_client.h"
#include "tests/server/running_server.h"

namespace weft::ranking_server_test {

class Ranking : public ::testing::Test {
 protected:
  explicit Ranking(const RunningServer::ModelChanges& changes = {.pooling = Pooling::last})
      : running_({}, {}, {}, changes) {}

  ClientResponse ask(const std::string& path, const std::string& fields) {
    return HttpClient(running_.port()).post(path, "{" + fields + "}");
  }
  Json answer(const std::string& path, const std::string& fields) {
    const ClientResponse response = ask(path, fields);
    EXPECT_EQ(response.status, 200) << response.body;
    return parse_json(response.body);
  }
  std::vector<double> scores(const std::string& fields) {
    const Json whole = answer("/v1/score", fields);
    std::vector<double> scores;
    for (const Json& one : whole["data"]) {
      EXPECT_EQ(one["index"], scores.size());
      EXPECT_EQ(one["object"], "score");
      scores.push_back(one["score"].get<double>());
    }
    return scores;
  }
  int status(const std::string& path, const std::string& fields) { return ask(path, fields).status; }

  RunningServer running_;
};

// By a model that makes embeddings.
TEST_F(Ranking, ScoresAreCosinesOfEmbeddings) {
  const std::vector<double> three = scores(R"("text_1":"abc","text_2":["abd","xyz","abc"])");
  ASSERT_EQ(three.size(), 3U);
  EXPECT_NEAR(three[2], 1, 1e-6);
  const Json both = answer("/v1/embeddings", R"("input":["abc","abd"])")["data"];
  double cosine = 0;
  for (std::size_t i = 0; i < both[0]["embedding"].size(); ++i)
    cosine += both[0]["embedding"][i].get<double>() * both[1]["embedding"][i].get<double>();
  EXPECT_NEAR(three[0], cosine, 1e-6);
  EXPECT_EQ(scores(R"("text_1":["abc","abc"],"text_2":["abd","xyz"])"),
            std::vector<double>(three.begin(), three.end() - 1));
  EXPECT_EQ(scores(R"("queries":"abc","documents":["abd","xyz","abc"])"), three);
  EXPECT_EQ(scores(R"("data_1":"abc","data_2":"abd")"), std::vector<double>{three[0]});
  EXPECT_EQ(answer("/score", R"("text_1":"abc","text_2":["abd","xyz"])")["usage"]["prompt_tokens"], 9);
}

TEST_F(Ranking, TheBestDocumentComesFirst) {
  const std::string fields = R"("query":"abc","documents":["abd",{"text":"xyz"},"abc"])";
  const std::vector<double> each = scores(R"("text_1":"abc","text_2":["abd","xyz","abc"])");
  const Json whole = answer("/v1/rerank", fields);
  EXPECT_EQ(whole["model"], "tiny");
  const Json& results = whole["results"];
  ASSERT_EQ(results.size(), 3U);
  EXPECT_EQ(results[0]["index"], 2);
  EXPECT_EQ(results[0]["document"]["text"], "abc");
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(results[i]["relevance_score"].get<double>(), each[results[i]["index"].get<std::size_t>()]);
    EXPECT_GE(results[0]["relevance_score"], results[i]["relevance_score"]);
    EXPECT_LE(results[2]["relevance_score"], results[i]["relevance_score"]);
  }
  const Json two = answer("/v2/rerank", fields + R"(,"top_n":2,"return_documents":false)")["results"];
  ASSERT_EQ(two.size(), 2U);
  EXPECT_FALSE(two[0].contains("document"));
  for (const char* path : {"/rerank", "/reranking", "/v1/reranking"})
    EXPECT_EQ(answer(path, fields)["results"], results) << path;
}

TEST_F(Ranking, EmbeddingsAreWhatPoolingAnswers) {
  const Json own = answer("/v1/embeddings", R"("input":"abc")"), raw = answer("/pooling", R"("input":"abc")");
  EXPECT_EQ(raw["data"][0]["data"], own["data"][0]["embedding"]);
  EXPECT_EQ(raw["data"][0]["object"], "pooling");
  EXPECT_EQ(answer("/pooling", R"("input":"abc","task":"embed")")["data"], raw["data"]);
  EXPECT_EQ(status("/pooling", R"("input":"abc","task":"classify")"), 400);
  EXPECT_EQ(status("/classify", R"("input":"abc")"), 501);
}

// As that of /v1/embeddings.
TEST_F(Ranking, LongTextsLoseTheirEnd) {
  const std::string begin(9, 'a'), text = begin + "bcdefgh";
  EXPECT_EQ(scores(R"("text_1":"abc","text_2":")" + text + R"(","truncate_prompt_tokens":9)"),
            scores(R"("text_1":"abc","text_2":")" + begin + "\""));
  EXPECT_EQ(scores(R"("text_1":"abc","text_2":")" + text + R"(","max_tokens_per_doc":9)"),
            scores(R"("text_1":"abc","text_2":")" + begin + "\""));
}

TEST_F(Ranking, WrongRequestsAreRefused) {
  EXPECT_EQ(status("/rerank", R"("documents":["a"])"), 400);
  EXPECT_EQ(status("/rerank", R"("query":"a")"), 400);
  EXPECT_EQ(status("/rerank", R"("query":"a","documents":[])"), 400);
  EXPECT_EQ(status("/rerank", R"("query":"a","documents":[1])"), 400);
  EXPECT_EQ(status("/rerank", R"("query":"a","documents":[{"title":"b"}])"), 400);
  EXPECT_EQ(status("/rerank", R"("query":"a","documents":["b"],"top_n":-1)"), 400);
  EXPECT_EQ(status("/rerank", R"("query":"a","documents":["b"],"max_tokens_per_doc":-1)"), 400);
  EXPECT_EQ(status("/rerank", R"("query":"a","documents":["b"],"max_tokens_per_query":1000000)"), 400);
  EXPECT_EQ(status("/rerank", R"("query":"a","documents":["b"],"instruction":"c")"), 501);
  EXPECT_EQ(status("/score", R"("text_2":"a")"), 400);
  EXPECT_EQ(status("/score", R"("text_1":["a","b"],"text_2":["a","b","c"])"), 400);
  EXPECT_EQ(status("/score", R"("text_1":"a","text_2":"b","model":"other")"), 404);
}

// A model that scores pairs of texts, with a tokenizer that joins them by two tokens.
std::string scoring_model(const TemporaryFolder& folder) {
  namespace filesystem = std::filesystem;
  const std::string path = folder / "scores";
  filesystem::copy(WEFT_TEST_DATA "/encoders/bert_scores", path);
  Json tokenizer = parse_json(read_file(path + "/tokenizer.json", 1 << 20));
  const auto token = [](const char* name, int type) {
    return Json{{"SpecialToken", {{"id", name}, {"type_id", type}}}};
  };
  const auto text = [](const char* name, int type) { return Json{{"Sequence", {{"id", name}, {"type_id", type}}}}; };
  const auto ids = [](const char* name, int id) {
    return Json{{"id", name}, {"ids", {id}}, {"tokens", Json::array({name})}};
  };
  tokenizer["post_processor"] = {
      {"type", "TemplateProcessing"},
      {"single", Json::array({token("a", 0), text("A", 0), token("b", 0)})},
      {"pair", Json::array({token("a", 0), text("A", 0), token("b", 0), text("B", 1), token("b", 1)})},
      {"special_tokens", {{"a", ids("a", 0)}, {"b", ids("b", 1)}}}};
  std::ofstream(path + "/tokenizer.json") << json_text(tokenizer);
  return path;
}

class Scoring : public Ranking {
 protected:
  Scoring() : Ranking({.path = scoring_model(folder())}) {}
  static const TemporaryFolder& folder() {
    static const TemporaryFolder one;
    return one;
  }
  static void SetUpTestSuite() { std::filesystem::remove_all(folder() / "scores"); }
  void TearDown() override { std::filesystem::remove_all(folder() / "scores"); }
};

TEST_F(Scoring, OfPairsAreProbabilities) {
  const std::string fields = R"("text_1":"cat","text_2":["dog","a cat","cat"])";
  const std::vector<double> given = scores(fields), logits = scores(fields + R"(,"use_activation":false)");
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(given[i], 1 / (1 + std::exp(-logits[i])), 1e-12);
    EXPECT_EQ(given[i],
              scores(R"("text_1":"cat","text_2":")" + std::vector<std::string>{"dog", "a cat", "cat"}[i] + "\"")[0]);
  }
  EXPECT_NE(scores(R"("text_1":"cat","text_2":"dog")"), scores(R"("text_1":"dog","text_2":"cat")"));
  // Tokens around and between the two: 3 + 3 + 3.
  EXPECT_EQ(answer("/score", R"("text_1":"cat","text_2":"dog")")["usage"]["prompt_tokens"], 9);
  const Json ranked = answer("/rerank", R"("query":"cat","documents":["dog","a cat","cat"])")["results"];
  EXPECT_EQ(ranked[0]["relevance_score"].get<double>(), *std::max_element(given.begin(), given.end()));
}

TEST_F(Scoring, TheSecondTextIsCut) {
  const std::string pair = R"("text_1":"cat","text_2":")" + std::string(200, 'x') + "\"";
  EXPECT_EQ(status("/score", pair), 400);
  EXPECT_EQ(answer("/score", pair + R"(,"truncate_prompt_tokens":-1)")["usage"]["prompt_tokens"], 64);
  EXPECT_EQ(scores(pair + R"(,"truncate_prompt_tokens":9)"), scores(R"("text_1":"cat","text_2":"xxx")"));
  EXPECT_EQ(status("/score", pair + R"(,"truncate_prompt_tokens":5)"), 400);
}

TEST_F(Scoring, EachTextHasAMostOfTokens) {
  const std::string pair = R"("text_1":"catcat","text_2":"dogdog")";
  EXPECT_EQ(scores(pair + R"(,"max_tokens_per_query":3,"max_tokens_per_doc":2)"),
            scores(R"("text_1":"cat","text_2":"do")"));
  EXPECT_EQ(scores(pair + R"(,"max_tokens_per_query":0,"max_tokens_per_doc":0)"), scores(pair));
  const Json ranked = answer("/rerank", R"("query":"cat","documents":["dogdog"],"max_tokens_per_doc":1)")["results"];
  EXPECT_EQ(ranked[0]["document"]["text"], "dogdog");
}

TEST_F(Scoring, MakesNothingElse) {
  EXPECT_EQ(status("/v1/embeddings", R"("input":"cat")"), 501);
  EXPECT_EQ(status("/v1/completions", R"("prompt":"cat")"), 501);
}

}  // namespace weft::ranking_server_test
