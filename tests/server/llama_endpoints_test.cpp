// The endpoints of llama.cpp's server, over sockets with the tiny model.

#include "server/llama_endpoints.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/utf8.h"
#include "tests/engine/tiny_model.h"
#include "tests/http_client.h"
#include "tests/server/running_server.h"

namespace weft::llama_endpoints_test {

Json json_of(const ClientResponse& response) { return parse_json(response.body); }

TEST(LlamaEndpoints, CompleteAsTheEngineDoes) {
  RunningServer running;
  const auto engine = tiny_engine(running.model_path());
  SamplingParameters parameters = llama_defaults();
  parameters.seed = 5;
  parameters.max_tokens = 9;
  parameters.ignore_end = true;
  parameters.repetition_penalty = 1.25;
  const Engine::Generation wanted = engine->generate(engine->tokenizer().encode("Hello"), parameters);
  HttpClient client(running.port());
  const std::string asked = R"("seed":5,"n_predict":9,"ignore_eos":true,"repeat_penalty":1.25,"return_tokens":true})";
  for (const char* path : {"/completion", "/completions"}) {
    const Json json = json_of(client.post(path, R"({"prompt":["He",108,"lo"],)" + asked));
    EXPECT_EQ(json["content"], wanted.text);
    EXPECT_EQ(json["tokens"], Json(wanted.tokens));
    EXPECT_EQ(json["stop"], true);
    EXPECT_EQ(json["stop_type"], "limit");
    EXPECT_EQ(json["prompt"], "Hello");
    EXPECT_EQ(json["tokens_evaluated"], 5);
    EXPECT_EQ(json["tokens_predicted"], 9);
    EXPECT_EQ(json["generation_settings"]["repeat_penalty"], 1.25);
    EXPECT_EQ(json["timings"]["predicted_n"], 9);
  }
  const ClientResponse stream =
      client.post("/completion", R"({"prompt":"Hello","stream":true,"timings_per_token":true,)" + asked);
  ASSERT_EQ(stream.chunks.size(), 10U) << "an event for each token, and the end";
  std::string text;
  for (std::size_t i = 0; i < 9; ++i) {
    const Json event = parse_json(stream.chunks[i].substr(6));
    text += event["content"].get<std::string>();
    EXPECT_EQ(event["tokens"], Json::array({wanted.tokens[i]}));
    EXPECT_EQ(event["stop"], false);
    EXPECT_TRUE(event.contains("timings"));
  }
  EXPECT_EQ(text, wanted.text);
  const Json last = parse_json(stream.chunks[9].substr(6));
  EXPECT_EQ(last["stop"], true);
  EXPECT_EQ(last["content"], "");
}

TEST(LlamaEndpoints, AnswerEachOfSeveralPrompts) {
  RunningServer running;
  HttpClient client(running.port());
  const std::string asked = R"(,"seed":5,"n_predict":4,"ignore_eos":true,"return_tokens":true)";
  const auto answer = [&](const std::string& prompt, const std::string& fields = "") {
    Json json = json_of(client.post("/completion", "{\"prompt\":" + prompt + asked + fields + "}"));
    for (Json& one : json.is_array() ? json : (json = Json::array({json}))) one.erase("timings");
    return json;
  };
  const Json hello = answer("\"Hello\"")[0], world = answer("\"World\"")[0];
  for (const char* prompts : {R"(["Hello","World"])", R"([[72,"ello"],[87,111,114,108,100]])"}) {
    const Json both = answer(prompts);
    ASSERT_EQ(both.size(), 2U) << prompts;
    for (const char* key : {"content", "tokens", "prompt"}) {
      EXPECT_EQ(both[0][key], hello[key]) << prompts;
      EXPECT_EQ(both[1][key], world[key]) << prompts;
    }
    EXPECT_EQ(both[1]["index"], 1);
  }
  EXPECT_EQ(answer(R"(["Hello"])"), Json::array({hello})) << "a list of one is an answer alone";
  EXPECT_EQ(answer(R"([72,"ello"])")[0]["content"], hello["content"]);
  for (const char* field : {",\"n\":3", ",\"n_cmpl\":3"}) {
    const Json several = answer(R"(["Hello","World"])", field);
    ASSERT_EQ(several.size(), 6U);
    EXPECT_EQ(several[3]["content"], world["content"]);
    EXPECT_EQ(several[5]["index"], 5);
    EXPECT_EQ(several[5]["generation_settings"]["seed"], 7);
    EXPECT_EQ(several[4]["content"], answer("\"World\"", ",\"seed\":6")[0]["content"]);
  }
  const ClientResponse stream =
      client.post("/completion", R"({"prompt":["Hello","World"],"stream":true)" + asked + "}");
  ASSERT_EQ(stream.chunks.size(), 10U);
  std::string texts[2];
  for (const std::string& chunk : stream.chunks) {
    const Json event = parse_json(chunk.substr(6));
    texts[event["index"].get<std::size_t>()] += event["content"].get<std::string>();
  }
  EXPECT_EQ(texts[0], hello["content"]);
  EXPECT_EQ(texts[1], world["content"]);
  for (const char* wrong : {"[]", "[[]]", "[{}]", "[[1,[2]]]", "[1,null]"})
    EXPECT_EQ(json_of(client.post("/completion", "{\"prompt\":" + std::string(wrong) + "}"))["error"]["code"], 400)
        << wrong;
  EXPECT_EQ(client.post("/completion", R"({"prompt":"a","return_progress":true})").status, 501);
}

TEST(LlamaEndpoints, HaveTheOtherNamesOfPaths) {
  RunningServer running;
  HttpClient client(running.port());
  EXPECT_EQ(client.get("/models").body, client.get("/v1/models").body);
  EXPECT_EQ(client.get("/v1/health").body, client.get("/health").body);
  const std::string asked = R"({"messages":[{"role":"user","content":"a"}],"max_tokens":2,"seed":1})";
  EXPECT_EQ(json_of(client.post("/chat/completions", asked))["choices"],
            json_of(client.post("/v1/chat/completions", asked))["choices"]);
  EXPECT_EQ(json_of(client.post("/responses", R"({"input":"a","max_output_tokens":2})"))["object"], "response");
}

TEST(LlamaEndpoints, TakeAnyTemperature) {
  RunningServer running;
  HttpClient client(running.port());
  const auto content = [&](const std::string& temperature) {
    return json_of(client.post(
        "/completion", R"({"prompt":"ab","n_predict":5,"seed":1,"temperature":)" + temperature + "}"))["content"];
  };
  EXPECT_EQ(content("-1"), content("0"));
  EXPECT_TRUE(content("5").is_string());
  EXPECT_EQ(client.post("/v1/completions", R"({"prompt":"ab","temperature":2.5})").status, 400);
}

TEST(LlamaEndpoints, SayWhyAnAnswerEnded) {
  RunningServer running;
  HttpClient client(running.port());
  const std::string greedy = R"({"prompt":"ab","n_predict":30,"temperature":0,"ignore_eos":true)";
  const std::string whole = json_of(client.post("/completion", greedy + "}"))["content"];
  std::size_t length = 1;  // of the first character
  while (length < whole.size() && is_utf8_continuation(whole[length])) ++length;
  const std::string stop = json_text(whole.substr(0, length));
  const Json stopped = json_of(client.post("/completion", greedy + ",\"stop\":[" + stop + "]}"));
  EXPECT_EQ(stopped["stop_type"], "word");
  EXPECT_EQ(stopped["content"], "");
  EXPECT_EQ(json_text(stopped["stopping_word"]), stop);
  EXPECT_EQ(json_of(client.post("/completion", R"({"prompt":"a"})"))["stop"], true) << "to the end of the context";
}

TEST(LlamaEndpoints, StoreAPromptWithoutAnAnswer) {
  RunningServer running;
  HttpClient client(running.port());
  const std::string prompt = fmt::format(R"({{"prompt":"{}")", std::string(64, 'a'));
  const Json none = json_of(client.post("/completion", prompt + R"(,"n_predict":0,"return_tokens":true})"));
  EXPECT_EQ(none["tokens_predicted"], 0);
  EXPECT_EQ(none["content"], "");
  EXPECT_EQ(none["tokens"], Json::array());
  EXPECT_GT(json_of(client.post("/completion", prompt + R"(,"n_predict":1})"))["timings"]["cache_n"], 0);
}

TEST(LlamaEndpoints, TakeBothNamesOfTheLimit) {
  RunningServer running;
  HttpClient client(running.port());
  const auto predicted = [&](const std::string& limits) {
    return json_of(
        client.post("/completion", R"({"prompt":"a","ignore_eos":true,)" + limits + "}"))["tokens_predicted"];
  };
  EXPECT_EQ(predicted(R"("max_tokens":3)"), 3);
  EXPECT_EQ(predicted(R"("max_tokens":3,"n_predict":2)"), 2);
  EXPECT_EQ(predicted(R"("n_predict":2,"max_tokens":3)"), 2);
  EXPECT_EQ(client.post("/completion", R"({"prompt":"a","max_tokens":"3"})").status, 400);
}

TEST(LlamaEndpoints, SayASeedThatARequestCanHave) {
  RunningServer running;
  HttpClient client(running.port());
  const std::string asked = R"({"prompt":"ab","n_predict":4,"temperature":1)";
  for (int i = 0; i < 4; ++i) {
    const Json first = json_of(client.post("/completion", asked + "}"));
    const auto seed = first["generation_settings"]["seed"].get<std::uint64_t>();
    EXPECT_LT(seed, 4294967295U);
    const Json again = json_of(client.post("/completion", asked + fmt::format(",\"seed\":{}}}", seed)));
    EXPECT_EQ(again["content"], first["content"]);
  }
}

TEST(LlamaEndpoints, RefuseWhatIsNotThere) {
  RunningServer running;
  HttpClient client(running.port());
  const auto refused = [&](const std::string& field, const std::string& value) -> Json {
    const Json answer =
        json_of(client.post("/completion", R"({"prompt":"a","n_predict":1,")" + field + "\":" + value + "}"));
    return answer.contains("error") ? answer["error"]["param"] : Json(nullptr);
  };
  const std::pair<const char*, std::pair<const char*, const char*>> cases[] = {
      {"n_probs", {"0", "21"}},
      {"post_sampling_probs", {"false", "true"}},
      {"logit_bias", {"[]", "[[300, 1]]"}},
      {"grammar", {"\"\"", "\"root ::= 1\""}},
      {"json_schema", {"null", "{\"not\":{}}"}}};
  for (const auto& [field, values] : cases) {
    EXPECT_EQ(refused(field, values.first), nullptr) << field;
    EXPECT_EQ(refused(field, values.second), field);
  }
  EXPECT_EQ(refused("repeat_penalty\":1.1,\"repeat_last_n", "64"), nullptr);
}

TEST(LlamaEndpoints, ShowLikelyTokens) {
  RunningServer running;
  HttpClient client(running.port());
  const std::string greedy = R"({"prompt":"Hello","n_predict":4,"temperature":0,"ignore_eos":true,"n_probs":3)";
  const Json whole = json_of(client.post("/completion", greedy + R"(,"return_tokens":true})"));
  const Json& shown = whole["completion_probabilities"];
  const Json same = json_of(
      client.post("/v1/chat/completions",
                  R"({"messages":[{"role":"user","content":"a"}],"max_tokens":1,"logprobs":true,"top_logprobs":1})"));
  ASSERT_EQ(shown.size(), 4U);
  for (std::size_t i = 0; i < shown.size(); ++i) {
    EXPECT_EQ(shown[i]["id"], whole["tokens"][i]);
    ASSERT_EQ(shown[i]["top_logprobs"].size(), 3U);
    Json first = shown[i];
    first.erase("top_logprobs");
    EXPECT_EQ(shown[i]["top_logprobs"][0], first) << "the most likely token is the greedy one";
    EXPECT_GE(first["logprob"], shown[i]["top_logprobs"][1]["logprob"]);
    Json of_chat = same["choices"][0]["logprobs"]["content"][0]["top_logprobs"][0];
    for (const char* key : {"token", "bytes", "logprob"})
      EXPECT_TRUE(first.contains(key) && of_chat.contains(key)) << key;
  }
  const ClientResponse stream = client.post("/completion", greedy + R"(,"stream":true})");
  ASSERT_EQ(stream.chunks.size(), 5U);
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_EQ(parse_json(stream.chunks[i].substr(6))["completion_probabilities"], Json::array({shown[i]}));
  EXPECT_FALSE(parse_json(stream.chunks[4].substr(6)).contains("completion_probabilities"));
  EXPECT_FALSE(
      json_of(client.post("/completion", R"({"prompt":"a","n_predict":1})")).contains("completion_probabilities"));
}

TEST(LlamaEndpoints, AddBiases) {
  RunningServer running;
  HttpClient client(running.port());
  const auto content = [&](const std::string& bias) {
    return json_of(
        client.post("/completion", R"({"prompt":"a","n_predict":3,"seed":1,"logit_bias":)" + bias + "}"))["content"];
  };
  EXPECT_EQ(content("[[98, 100]]"), "bbb");
  EXPECT_EQ(content(R"([["b", 100]])"), "bbb");
  EXPECT_EQ(content(R"({"b": 60, "98": 60, "c": 100})"), "bbb") << "biases of a token are added";
  EXPECT_EQ(content(R"([["b", 100], [98, false], ["c", 50]])"), "ccc");
  for (const char* wrong : {"[98]", "[[98]]", "[[98, true]]", "7", R"({"b": "c"})"})
    EXPECT_EQ(json_of(client.post("/completion",
                                  R"({"prompt":"a","logit_bias":)" + std::string(wrong) + "}"))["error"]["param"],
              "body.logit_bias")
        << wrong;
  const Json settings = json_of(
      client.post("/completion", R"({"prompt":"a","n_predict":1,"logit_bias":[[98,false]]})"))["generation_settings"];
  EXPECT_EQ(settings["logit_bias"], parse_json(R"([{"bias":false,"token":98}])"));
}

TEST(LlamaEndpoints, ConstrainAnswers) {
  RunningServer running;
  HttpClient client(running.port());
  const auto content = [&](const std::string& fields) {
    return json_of(client.post("/completion", R"({"prompt":"a","seed":3,)" + fields + "}"))["content"];
  };
  EXPECT_EQ(content(R"("grammar":"root ::= \"abc\"")"), "abc");
  EXPECT_EQ(content(R"("json_schema":{"const":12})"), "12");
  const Json both =
      json_of(client.post("/completion", R"({"prompt":"a","json_schema":{"const":12},"grammar":"root ::= \"abc\""})"));
  EXPECT_EQ(both["error"]["param"], "json_schema");
}

TEST(LlamaEndpoints, ShowTheModelAndItsTemplate) {
  ServerSettings settings;
  settings.api.has_slots = true;
  RunningServer running(std::move(settings), {{"max-num-seqs", "3"}});
  HttpClient client(running.port());
  const Json applied = json_of(client.post("/apply-template", R"({"messages":[{"role":"user","content":"a"}]})"));
  EXPECT_EQ(applied["prompt"], "<user>a<assistant>");
  const Json props = json_of(client.get("/props"));
  EXPECT_EQ(props["total_slots"], 3);
  EXPECT_EQ(props["default_generation_settings"]["n_ctx"], 128);
  EXPECT_NE(props["chat_template"].get<std::string>().find("m.role"), std::string::npos);
  const Json slots = json_of(client.get("/slots"));
  ASSERT_EQ(slots.size(), 3U);
  EXPECT_EQ(slots[0]["is_processing"], false);
  RunningServer without;
  EXPECT_EQ(HttpClient(without.port()).get("/slots").status, 501);
}

TEST(LlamaEndpoints, ShowSlotsThatAreInUse) {
  ServerSettings settings;
  settings.api.has_slots = true;
  RunningServer running(std::move(settings), {{"max-num-seqs", "2"}});
  HttpClient client(running.port()), stream(running.port());
  EXPECT_EQ(client.get("/slots?fail_on_no_slot=1").status, 200);
  stream.send(
      post_bytes("/v1/completions",
                 R"({"prompt":"a","n":400,"temperature":0.5,"max_tokens":120,"ignore_eos":true,"stream":true})"));
  ASSERT_FALSE(stream.some_bytes().empty());
  // Most of the 400 sequences wait: the slots stay in use.
  EXPECT_EQ(client.get("/slots?a=b&fail_on_no_slot=1").status, 503);
  const Json slots = json_of(client.get("/slots?fail_on_no_slot=0"));
  ASSERT_EQ(slots.size(), 2U);
  EXPECT_TRUE(slots[1]["is_processing"].get<bool>());
  EXPECT_NE(slots[0]["id_task"], slots[1]["id_task"]);
  EXPECT_EQ(slots[0]["params"]["temperature"], 0.5);
  EXPECT_EQ(slots[0]["next_token"]["n_decoded"].get<int>() + slots[0]["next_token"]["n_remain"].get<int>(), 120);
}

}  // namespace weft::llama_endpoints_test
