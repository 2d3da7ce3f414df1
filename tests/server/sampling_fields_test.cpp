// The fields of sampling and log probabilities over sockets, with the tiny model. Its tokens are bytes, and 256 is the
// end.

#include "server/sampling_fields.h"

#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "engine/sampling/logprobs.h"
#include "tests/engine/tiny_model.h"
#include "tests/http_client.h"
#include "tests/server/running_server.h"

namespace weft::sampling_fields_test {

const std::string kAsked = R"("max_tokens":6,"temperature":0.8,"seed":3,"ignore_eos":true)";

Json answer(const RunningServer& running, const std::string& path, const std::string& body) {
  return parse_json(HttpClient(running.port()).post(path, body).body);
}

Json completion(const RunningServer& running, const std::string& fields) {
  return answer(running, "/v1/completions", R"({"prompt":"Hello",)" + fields + "}");
}

Json chat_answer(const RunningServer& running, const std::string& fields) {
  return answer(running, "/v1/chat/completions", R"({"messages":[{"role":"user","content":"ab"}],)" + fields + "}");
}

// The events of a stream that have choices.
std::vector<Json> stream(const RunningServer& running, const std::string& path, const std::string& body) {
  std::vector<Json> events;
  const ClientResponse response = HttpClient(running.port()).post(path, body);
  for (const std::string& chunk : response.chunks)
    if (!chunk.starts_with("data: [DONE]")) events.push_back(parse_json(chunk.substr(6))["choices"][0]);
  return events;
}

std::vector<Json> completion_stream(const RunningServer& running, const std::string& fields) {
  return stream(running, "/v1/completions", R"({"prompt":"Hello","stream":true,)" + fields + "}");
}

// The lists of the events' logprobs, joined.
Json joined(const std::vector<Json>& events) {
  Json all = Json::object();
  for (const Json& event : events) {
    if (event["logprobs"].is_null()) continue;
    for (const auto& [key, list] : event["logprobs"].items()) {
      if (!all.contains(key)) all[key] = Json::array();
      for (const Json& item : list) all[key].push_back(item);
    }
  }
  return all;
}

TEST(SamplingFields, LogprobsAreThoseOfTheEngine) {
  RunningServer running;
  const auto engine = tiny_engine(running.model_path());
  const Json choice = completion(running, kAsked + R"(,"logprobs":2,"return_token_ids":true)")["choices"][0];
  std::vector<int> ids = engine->tokenizer().encode("Hello");
  const std::vector<int> output = choice["token_ids"];
  ids.insert(ids.end(), output.begin(), output.end());
  const std::vector<std::vector<float>> logits = all_logits(*engine, ids);
  for (std::size_t i = 0; i < output.size(); ++i) {
    const TokenLogprobs wanted = weft::logprobs_of(logits[4 + i], output[i], 2);
    EXPECT_EQ(choice["logprobs"]["token_logprobs"][i], wanted.chosen.logprob);
    EXPECT_EQ(choice["logprobs"]["top_logprobs"][i].items().begin().value(), wanted.top[0].logprob);
    EXPECT_EQ(choice["logprobs"]["text_offset"][i], i) << "each byte is a character or U+FFFD";
  }
  EXPECT_EQ(completion(running, kAsked)["choices"][0]["logprobs"], nullptr);
}

TEST(SamplingFields, LogprobsOfAStreamAreThoseOfTheAnswerInOnePiece) {
  RunningServer running;
  const std::string asked = kAsked + R"(,"logprobs":3)";
  const Json whole = completion(running, asked)["choices"][0];
  const std::vector<Json> events = completion_stream(running, asked);
  ASSERT_EQ(events.size(), 6U);
  for (const Json& event : events) EXPECT_EQ(event["logprobs"]["tokens"].size(), 1U);
  EXPECT_EQ(joined(events), whole["logprobs"]);

  const std::string chat_asked = kAsked + R"(,"logprobs":true,"top_logprobs":2)";
  const Json chat_whole = chat_answer(running, chat_asked)["choices"][0];
  ASSERT_EQ(chat_whole["logprobs"]["content"].size(), 6U);
  for (const Json& entry : chat_whole["logprobs"]["content"]) EXPECT_EQ(entry["top_logprobs"].size(), 2U);
  EXPECT_EQ(joined(stream(running, "/v1/chat/completions",
                          R"({"messages":[{"role":"user","content":"ab"}],"stream":true,)" + chat_asked + "}")),
            chat_whole["logprobs"]);
  EXPECT_EQ(
      chat_answer(running, kAsked + R"(,"logprobs":true)")["choices"][0]["logprobs"]["content"][0]["top_logprobs"],
      Json::array());
}

TEST(SamplingFields, LogprobsHaveTheSameBitsBesideOthers) {
  RunningServer running({}, {{"max-num-seqs", "5"}, {"max-num-batched-tokens", "11"}});
  const std::string asked = kAsked + R"(,"logprobs":4,"prompt_logprobs":2)";
  const Json alone = completion(running, asked)["choices"];
  std::vector<std::thread> threads;
  std::vector<Json> together(12);
  for (std::size_t i = 0; i < together.size(); ++i)
    threads.emplace_back([&, i] {
      together[i] = i % 2 == 0 ? completion(running, asked)["choices"]
                               : completion(running, R"("max_tokens":30,"logprobs":0,"n":2)")["choices"];
    });
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < together.size(); i += 2) EXPECT_EQ(together[i], alone) << i;
}

// Such an answer is written on another thread.
TEST(SamplingFields, ALargeAnswerHasTheChoicesOfSmallOnes) {
  RunningServer running;
  const auto asked = [](int seed) {
    return fmt::format(R"("max_tokens":8,"temperature":1,"ignore_eos":true,"logprobs":5,"seed":{})", seed);
  };
  const Json large = completion(running, asked(7) + R"(,"n":40)")["choices"];
  ASSERT_EQ(large.size(), 40U);
  for (int i = 0; i < 40; ++i) {
    Json small = completion(running, asked(7 + i))["choices"][0];
    small["index"] = i;
    EXPECT_EQ(large[static_cast<std::size_t>(i)], small);
  }
  // One that no step of the engine is for.
  std::string prompts = "[1,2,3,4,5]";
  for (int i = 1; i < 300; ++i) prompts += ",[1,2,3,4,5]";
  const Json echoed =
      answer(running, "/v1/completions",
             fmt::format(R"({{"prompt":[{}],"max_tokens":0,"echo":true,"return_token_ids":true}})", prompts));
  ASSERT_EQ(echoed["choices"].size(), 300U);
  EXPECT_EQ(echoed["choices"][299]["prompt_token_ids"], (Json{1, 2, 3, 4, 5}));
}

TEST(SamplingFields, AnEchoHasTheLogprobsOfThePrompt) {
  RunningServer running;
  const std::string asked = kAsked + R"(,"logprobs":2,"echo":true)";
  const Json whole = completion(running, asked)["choices"][0];
  const Json plain = completion(running, kAsked + R"(,"logprobs":2,"prompt_logprobs":0)")["choices"][0];
  const Json& logprobs = whole["logprobs"];
  ASSERT_EQ(logprobs["tokens"].size(), 11U);
  EXPECT_EQ(logprobs["tokens"][1], "e");
  EXPECT_EQ(logprobs["token_logprobs"][0], nullptr);
  EXPECT_EQ(logprobs["top_logprobs"][0], nullptr);
  for (std::size_t i = 1; i < 5; ++i) {
    const Json& of_prompt = plain["prompt_logprobs"][i];
    ASSERT_EQ(of_prompt.size(), 1U);
    EXPECT_EQ(of_prompt.items().begin().key(), std::to_string(static_cast<int>("Hello"[i])));
    EXPECT_EQ(of_prompt.items().begin().value()["logprob"], logprobs["token_logprobs"][i]);
  }
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(logprobs["token_logprobs"][5 + i], plain["logprobs"]["token_logprobs"][i]);
    EXPECT_EQ(logprobs["text_offset"][5 + i], 5 + i);
  }
  EXPECT_EQ(whole["prompt_logprobs"], nullptr) << "not asked for";
  EXPECT_EQ(joined(completion_stream(running, asked)), logprobs);
  // Two choices of one prompt, in one piece and as a stream.
  const Json choices = completion(running, asked + R"(,"n":2)")["choices"];
  for (std::size_t i = 0; i < 5; ++i)
    EXPECT_EQ(choices[1]["logprobs"]["token_logprobs"][i], logprobs["token_logprobs"][i]);
  // The prompt alone is scored as well.
  const std::string alone = R"("max_tokens":0,"echo":true,"logprobs":2)";
  const Json scored = completion(running, alone + R"(,"prompt_logprobs":1)");
  EXPECT_EQ(scored["choices"][0]["text"], "Hello");
  EXPECT_EQ(scored["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(scored["choices"][0]["prompt_logprobs"].size(), 5U);
  EXPECT_EQ(scored["usage"]["completion_tokens"], 0);
  ASSERT_EQ(scored["choices"][0]["logprobs"]["tokens"].size(), 5U);
  for (std::size_t i = 0; i < 5; ++i)
    EXPECT_EQ(scored["choices"][0]["logprobs"]["top_logprobs"][i], logprobs["top_logprobs"][i]);
  EXPECT_EQ(joined(completion_stream(running, alone)), scored["choices"][0]["logprobs"]);
}

TEST(SamplingFields, PromptLogprobsOfAChatAreOfItsTemplate) {
  RunningServer running;
  const Json json = chat_answer(running, kAsked + R"(,"prompt_logprobs":1)");
  ASSERT_EQ(json["prompt_logprobs"].size(), json["usage"]["prompt_tokens"].get<std::size_t>());
  EXPECT_EQ(json["prompt_logprobs"][0], nullptr);
  EXPECT_TRUE(json["prompt_logprobs"][1].contains(std::to_string(static_cast<int>('u'))));
}

TEST(SamplingFields, MasksChooseTheTokens) {
  RunningServer running;
  const auto text = [&](const std::string& fields) {
    return completion(running, R"("max_tokens":4,"temperature":0,)" + fields)["choices"][0]["text"];
  };
  EXPECT_EQ(text(R"("allowed_token_ids":[122])"), "zzzz");
  EXPECT_EQ(text(R"("logit_bias":{"121":1000})"), "yyyy");
  EXPECT_EQ(text(R"("logit_bias":{"121":2000,"122":1000},"bad_words":["yy"])"), "yzyz");
  EXPECT_EQ(text(R"("logit_bias":{"121":2000,"122":1000},"bad_words":["y"])"), "zzzz");
  EXPECT_EQ(text(R"("logit_bias":{"256":2000,"122":1000},"min_tokens":3)"), "zzz");
  EXPECT_EQ(text(R"("allowed_token_ids":[122],"stop":["zz","z"],"include_stop_str_in_output":true)"), "z");
  EXPECT_EQ(text(R"("allowed_token_ids":[256],"ignore_eos":true,"skip_special_tokens":false)"), "<end><end><end><end>");
  const Json failed = completion(running, R"("allowed_token_ids":[122],"bad_words":["z"])");
  EXPECT_EQ(failed["error"]["code"], 500);
}

TEST(SamplingFields, AnEventOfAStreamHasAsManyTokensAsItsInterval) {
  const std::string asked = R"("max_tokens":8,"temperature":0,"ignore_eos":true,"logprobs":0,"return_token_ids":true)";
  const auto sizes = [&](const RunningServer& running, const std::string& fields) {
    std::vector<std::size_t> counts;
    const std::vector<Json> events = completion_stream(running, asked + fields);
    for (const Json& event : events) {
      counts.push_back(event["token_ids"].size());
      EXPECT_EQ(event["logprobs"]["tokens"].size(), counts.back());
    }
    const Json whole = completion(running, asked)["choices"][0];
    EXPECT_EQ(joined(events), whole["logprobs"]);
    std::string text;
    for (const Json& event : events) text += event["text"].get<std::string>();
    EXPECT_EQ(text, whole["text"].get<std::string>());
    return counts;
  };
  using Sizes = std::vector<std::size_t>;
  EXPECT_EQ(sizes(RunningServer(), R"(,"stream_interval":3)"), (Sizes{1, 3, 3, 1}));
  const RunningServer coarse({}, {}, {.stream_interval = 4});
  EXPECT_EQ(sizes(coarse, ""), (Sizes{1, 4, 3}));
  EXPECT_EQ(sizes(coarse, R"(,"stream_interval":2)"), (Sizes{1, 4, 3})) << "a request may ask for more alone";
  EXPECT_EQ(sizes(coarse, R"(,"stream_interval":5)"), (Sizes{1, 5, 2}));
}

TEST(SamplingFields, TokensAreWrittenByTheirIdsIfAsked) {
  const std::string asked = R"("max_tokens":1,"logprobs":0,"allowed_token_ids":[122])";
  const auto token = [&](const RunningServer& running, const std::string& fields) {
    return completion(running, asked + fields)["choices"][0]["logprobs"]["tokens"][0];
  };
  RunningServer plain;
  const RunningServer by_ids({}, {}, {.tokens_as_ids = true});
  EXPECT_EQ(token(plain, ""), "z");
  EXPECT_EQ(token(plain, R"(,"return_tokens_as_token_ids":true)"), "token_id:122");
  EXPECT_EQ(token(by_ids, ""), "token_id:122");
  EXPECT_EQ(token(by_ids, R"(,"return_tokens_as_token_ids":false)"), "z");
}

TEST(SamplingFields, RefusesWhatTheModelOrTheServerDoesNotHave) {
  RunningServer running;
  const auto parameter = [&](const RunningServer& server, const std::string& fields) {
    const Json json = completion(server, fields);
    return json.contains("error") && json["error"]["code"] == 400 ? json["error"]["param"].get<std::string>() : "none";
  };
  EXPECT_EQ(parameter(running, R"("logprobs":21)"), "logprobs");
  EXPECT_EQ(parameter(running, R"("logprobs":-1)"), "logprobs");
  EXPECT_EQ(parameter(running, R"("logprobs":20)"), "none");
  EXPECT_EQ(parameter(running, R"("prompt_logprobs":21)"), "prompt_logprobs");
  EXPECT_EQ(parameter(running, R"("logit_bias":{"257":1})"), "logit_bias");
  EXPECT_EQ(parameter(running, R"("logit_bias":{"1":1e300})"), "logit_bias");
  EXPECT_EQ(parameter(running, R"("allowed_token_ids":[257])"), "allowed_token_ids");
  EXPECT_EQ(parameter(running, R"("min_tokens":17)"), "min_tokens") << "more than the default of max_tokens";
  EXPECT_EQ(parameter(running, R"("min_tokens":17,"max_tokens":17)"), "none");
  const Json chat = chat_answer(running, R"("logprobs":true,"top_logprobs":21)");
  EXPECT_EQ(chat["error"]["param"], "top_logprobs");
  const RunningServer all({}, {}, {.max_logprobs = -1});
  EXPECT_EQ(parameter(all, R"("logprobs":-1,"max_tokens":1)"), "none");
  EXPECT_EQ(parameter(all, R"("logprobs":258)"), "logprobs");
}

}  // namespace weft::sampling_fields_test
