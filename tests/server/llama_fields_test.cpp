// llama.cpp's fields of requests, on OpenAI's endpoints and on its own, over sockets with the tiny model.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "server/llama_samplers.h"
#include "tests/http_client.h"
#include "tests/server/running_server.h"

namespace weft::llama_fields_test {

struct Asked {
  RunningServer running;
  HttpClient client{running.port()};

  Json completion(const std::string& fields) {
    return parse_json(client.post("/v1/completions", R"({"prompt":"Hello","seed":7,)" + fields + "}").body);
  }
  Json chat(const std::string& fields) {
    const std::string messages = R"({"messages":[{"role":"user","content":"a"}],"seed":7,)";
    return parse_json(client.post("/v1/chat/completions", messages + fields + "}").body);
  }
  Json llama(const std::string& fields) {
    return parse_json(client.post("/completion", R"({"prompt":"Hello","seed":7,)" + fields + "}").body);
  }
};

Json text_of(const Json& answer) {
  return answer.contains("choices") ? answer["choices"][0].value("text", Json()) : answer;
}
Json content_of(const Json& answer) {
  return answer.contains("choices") ? answer["choices"][0]["message"]["content"] : answer;
}
Json parameter_of(const Json& answer) { return answer.contains("error") ? answer["error"]["param"] : Json("none"); }

TEST(LlamaFields, ConstrainAnswersOfOpenAisEndpoints) {
  Asked asked;
  for (const char* fields :
       {R"("response_format":{"type":"json_object","schema":{"const":12}})",
        R"("response_format":{"type":"json_schema","schema":{"const":12}})", R"("json_schema":{"const":12})",
        R"("grammar":"root ::= \"12\"")", R"("grammar":"root ::= \"12\"","response_format":{"type":"text"})"}) {
    EXPECT_EQ(text_of(asked.completion(fields)), "12") << fields;
    EXPECT_EQ(content_of(asked.chat(fields)), "12") << fields;
  }
  const std::string both = R"("grammar":"root ::= \"12\"","response_format":{"type":"json_object"})";
  EXPECT_EQ(parameter_of(asked.chat(both)), "grammar");
  EXPECT_EQ(parameter_of(asked.chat(R"("json_schema":{"const":1},"grammar":"root ::= \"1\"")")), "json_schema");
  for (const char* format : {R"({"type":"json_object","json_schema":{"schema":{}}})",
                             R"({"type":"json_schema","schema":{},"json_schema":{"schema":{}}})",
                             R"({"type":"json_object","schema":3})", R"({"type":"json_object","schema":{"not":{}}})"})
    EXPECT_EQ(parameter_of(asked.chat("\"response_format\":" + std::string(format))), "response_format") << format;
}

TEST(LlamaFields, BoundAnswersOfOpenAisEndpoints) {
  Asked asked;
  const auto tokens = [&](const std::string& fields) {
    return asked.completion(R"("ignore_eos":true,)" + fields)["usage"]["completion_tokens"];
  };
  EXPECT_EQ(tokens(R"("n_predict":3)"), 3);
  EXPECT_EQ(tokens(R"("n_predict":3,"max_tokens":5)"), 3) << "as in llama.cpp";
  EXPECT_EQ(tokens(R"("n_predict":-1)"), 123) << "the rest of the context";
  EXPECT_EQ(asked.chat(R"("ignore_eos":true,"n_predict":4)")["usage"]["completion_tokens"], 4);
  EXPECT_EQ(parameter_of(asked.chat(R"("n_predict":0)")), "n_predict");
}

TEST(LlamaFields, NameTheRepetitionPenalty) {
  Asked asked;
  const std::string greedy = R"("max_tokens":12,"ignore_eos":true,"temperature":0,)";
  const Json plain = text_of(asked.completion(greedy + R"("repetition_penalty":1)"));
  const Json wanted = text_of(asked.completion(greedy + R"("repetition_penalty":5)"));
  ASSERT_NE(plain, wanted) << "the penalty changes this answer";
  EXPECT_EQ(text_of(asked.completion(greedy + R"("repeat_penalty":5)")), wanted);
  EXPECT_EQ(text_of(asked.completion(greedy + R"("repeat_penalty":5,"repeat_last_n":0)")), plain);
  EXPECT_EQ(text_of(asked.completion(greedy + R"("repeat_penalty":5,"repeat_last_n":-1)")), wanted);
  EXPECT_NE(text_of(asked.completion(greedy + R"("repeat_penalty":5,"repeat_last_n":1)")), wanted);
  EXPECT_EQ(parameter_of(asked.completion(R"("repeat_penalty":5,"repetition_penalty":2)")), "repeat_penalty");
  EXPECT_EQ(parameter_of(asked.completion(R"("repeat_last_n":-2)")), "repeat_last_n");
}

TEST(LlamaFields, RefuseSamplersThatAreNotThere) {
  Asked asked;
  const std::pair<const char*, std::pair<const char*, const char*>> cases[] = {
      {"mirostat", {"0", "2"}},
      {"dry_multiplier", {"0.0", "0.8"}},
      {"xtc_probability", {"0", "0.5"}},
      {"typical_p", {"1.0", "0.9"}},
      {"dynatemp_range", {"0", "1"}},
      {"top_n_sigma", {"-1", "1"}},
      {"adaptive_target", {"-1", "0.5"}},
      {"min_keep", {"0", "3"}},
      {"samplers", {"[\"penalties\",\"top_k\",\"temperature\"]", "[\"top_a\"]"}}};
  for (const auto& [field, values] : cases)
    for (const auto& ask : {&Asked::completion, &Asked::chat, &Asked::llama}) {
      EXPECT_EQ(parameter_of((asked.*ask)(fmt::format("\"{}\":{}", field, values.first))), "none") << field;
      const Json refused = parameter_of((asked.*ask)(fmt::format("\"{}\":{}", field, values.second)));
      EXPECT_TRUE(refused == field || refused == "body." + std::string(field)) << field << " " << refused;
    }
  for (const char* field : {"mirostat_tau", "mirostat_eta", "dry_base", "xtc_threshold", "dynatemp_exponent"})
    EXPECT_EQ(parameter_of(asked.chat(fmt::format("\"{}\":0.5", field))), "none") << field;
}

TEST(LlamaFields, OfVllmThatAreNotThereAreRefused) {
  Asked asked;
  for (const auto& [nothing, something] : {std::pair(R"("length_penalty":1)", R"("length_penalty":1.5)"),
                                           std::pair(R"("thinking_token_budget":-1)", R"("thinking_token_budget":64)"),
                                           std::pair(R"("logprob_token_ids":[])", R"("logprob_token_ids":[1])")}) {
    EXPECT_EQ(parameter_of(asked.chat(nothing)), "none") << nothing;
    EXPECT_NE(parameter_of(asked.chat(something)), "none") << something;
  }
}

SamplingParameters used(const std::vector<std::string>& names, double penalty = 1) {
  SamplingParameters parameters{
      .temperature = 0.5, .top_k = 9, .top_p = 0.9, .min_p = 0.1, .repetition_penalty = penalty};
  use_samplers(parameters, names);
  return parameters;
}

TEST(LlamaFields, SamplersSayTheOrder) {
  using enum SamplerStep;
  const SamplingParameters all =
      used({"penalties", "dry", "top_n_sigma", "top_k", "typ_p", "top_p", "min_p", "xtc", "temperature"}, 1.5);
  EXPECT_EQ(all.order, kLlamaOrder);
  EXPECT_EQ(all.repetition_penalty, 1.5);
  EXPECT_EQ(all.temperature, 0.5);
  const SamplingParameters some = used({"top_p", "temperature"}, 1.5);
  EXPECT_EQ(some.order, (SamplerOrder{top_p, temperature, min_p, top_k}));
  EXPECT_EQ(some.top_k, 0);
  EXPECT_EQ(some.min_p, 0);
  EXPECT_EQ(some.top_p, 0.9);
  EXPECT_EQ(some.repetition_penalty, 1) << "the list has no penalties";
  EXPECT_EQ(used({"top_k"}).temperature, 1);
  EXPECT_EQ(used({"top_k", "penalties"}).top_k, 9) << "no penalty is on";
  EXPECT_THROW(used({"top_k", "penalties"}, 1.5), ApiError);
}

TEST(LlamaFields, SamplersAreNamesOrLetters) {
  Asked asked;
  const auto order = [&](const std::string& samplers) -> Json {
    const Json answer = asked.llama(R"("n_predict":1,"samplers":)" + samplers);
    return answer.contains("error") ? answer["error"]["param"] : answer["generation_settings"]["samplers"];
  };
  const Json wanted = {"penalties", "top_k", "top_p", "min_p", "temperature"};
  EXPECT_EQ(asked.llama(R"("n_predict":1)")["generation_settings"]["samplers"], wanted) << "llama.cpp's order";
  EXPECT_EQ(order("\"edskypmxt\""), wanted);
  EXPECT_EQ(order(R"(["top-k","nucleus","min-p","temp"])"), wanted);
  EXPECT_EQ(
      order(R"(["penalties","dry","top_n_sigma","top_k","typ_p","tfs_z","typical_p","top_p","min_p","adaptive_p",)"
            R"("xtc","temperature"])"),
      wanted);
  for (const char* wrong : {"\"z\"", "[\"\"]", "[3]", "3", R"(["top_k","top-k"])"})
    EXPECT_EQ(order(wrong), "body.samplers") << wrong;
}

}  // namespace weft::llama_fields_test
