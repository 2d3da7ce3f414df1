// The API over sockets, with the tiny model.

#include "server/server.h"

#include <thread>

#include <gtest/gtest.h>

#include "base/json.h"
#include "base/text.h"
#include "tests/engine/tiny_model.h"
#include "tests/http_client.h"
#include "tests/server/running_server.h"

namespace weft::server_test {

Json json_of(const ClientResponse& response) { return parse_json(response.body); }

// The text with the id and the time of the answer replaced by ID and T.
std::string without_id(std::string text, const std::string& prefix) {
  const auto begin = text.find("\"id\":\"" + prefix);
  if (begin == std::string::npos) return text;
  const auto id = begin + 6 + prefix.size();
  text = replace_all(text, text.substr(id, text.find('"', id) - id), "ID");
  const auto created = text.find("\"created\":") + 10;
  return replace_all(text, text.substr(created, text.find(',', created) - created), "T");
}

TEST(Server, CompletesAsTheEngineDoes) {
  RunningServer running;
  const auto engine = tiny_engine(running.model_path());
  SamplingParameters parameters{.temperature = 0.75, .top_k = 20, .seed = 5, .max_tokens = 9, .ignore_end = true};
  parameters.frequency_penalty = 0.5;
  const Engine::Generation wanted = engine->generate(engine->tokenizer().encode("Hello"), parameters);
  HttpClient client(running.port());
  const std::string body =
      R"("temperature":0.75,"top_k":20,"seed":5,"max_tokens":9,"ignore_eos":true,"frequency_penalty":0.5})";
  const Json json = json_of(client.post("/v1/completions", R"({"prompt":"Hello",)" + body));
  EXPECT_EQ(json["choices"][0]["text"], wanted.text);
  EXPECT_EQ(json["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(json["usage"]["completion_tokens"], 9);
  EXPECT_EQ(json["usage"]["total_tokens"], 14);
  // Prompts as ids, and one choice of each seed.
  const Json ids = json_of(client.post(
      "/v1/completions", R"({"prompt":[[72,101,108,108,111],"Hello"],"n":2,"return_token_ids":true,)" + body));
  ASSERT_EQ(ids["choices"].size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(ids["choices"][i]["index"], i);
    EXPECT_EQ(ids["choices"][i]["token_ids"].size(), 9U);
    parameters.seed = 5 + i % 2;
    const Engine::Generation alone = engine->generate(engine->tokenizer().encode("Hello"), parameters);
    EXPECT_EQ(ids["choices"][i]["token_ids"], Json(alone.tokens)) << i;
    EXPECT_EQ(ids["choices"][i]["text"], alone.text) << i;
  }
}

TEST(Server, WritesAnswersWithTheseKeys) {
  RunningServer running;
  HttpClient client(running.port());
  const ClientResponse whole = client.post("/v1/completions", R"({"prompt":"ab","max_tokens":1,"temperature":0})");
  EXPECT_EQ(whole.status, 200);
  EXPECT_EQ(whole.fields.at("content-type"), "application/json");
  const Json json = json_of(whole);
  const std::string text = json_text(json["choices"][0]["text"]), print = json_text(json["system_fingerprint"]);
  EXPECT_EQ(
      without_id(whole.body, "cmpl-"),
      R"({"id":"cmpl-ID","object":"text_completion","created":T,"model":"tiny","choices":[{"index":0,"text":)" + text +
          R"(,"logprobs":null,"finish_reason":"length","stop_reason":null,"token_ids":null,"prompt_logprobs":null,)" +
          R"("prompt_token_ids":null}],"service_tier":null,"system_fingerprint":)" + print +
          R"(,"usage":{"prompt_tokens":2,"total_tokens":3,"completion_tokens":1,"prompt_tokens_details":null,)" +
          R"("completion_tokens_details":null}})");
  const ClientResponse chat =
      client.post("/v1/chat/completions",
                  R"({"model":"small","messages":[{"role":"user","content":"ab"}],"max_tokens":1,"temperature":0})");
  const std::string content = json_text(json_of(chat)["choices"][0]["message"]["content"]);
  EXPECT_EQ(
      without_id(chat.body, "chatcmpl-"),
      R"({"id":"chatcmpl-ID","object":"chat.completion","created":T,"model":"tiny","choices":[{"index":0,)"
      R"("message":{"role":"assistant","content":)" +
          content +
          R"(,"refusal":null,"annotations":null,"audio":null,"function_call":null,"reasoning":null},)"
          R"("logprobs":null,"finish_reason":"length","stop_reason":null,"token_ids":null}],"service_tier":null,)"
          R"("system_fingerprint":)" +
          print +
          R"(,"usage":{"prompt_tokens":19,"total_tokens":20,"completion_tokens":1,"prompt_tokens_details":null,)"
          R"("completion_tokens_details":null},"prompt_logprobs":null,"prompt_token_ids":null,"prompt_text":null})");
  const ClientResponse named = client.post("/v1/completions", R"({"prompt":"a"})", "X-Request-Id: my-id\r\n");
  EXPECT_EQ(json_of(named)["id"], "cmpl-my-id");
  EXPECT_EQ(json_of(client.post("/v1/completions", R"({"prompt":"a","request_id":"other"})"))["id"], "cmpl-other");
}

TEST(Server, StreamsByteForByte) {
  RunningServer running;
  HttpClient client(running.port());
  const std::string asked = R"("max_tokens":3,"temperature":0,"ignore_eos":true)";
  const Json ids = json_of(client.post("/v1/completions", R"({"prompt":"ab","return_token_ids":true,)" + asked + "}"));
  const std::string print = json_text(ids["system_fingerprint"]);
  const ClientResponse stream = client.post(
      "/v1/completions", R"({"prompt":"ab","stream":true,"stream_options":{"include_usage":true},)" + asked + "}");
  EXPECT_EQ(stream.fields.at("content-type"), "text/event-stream; charset=utf-8");
  EXPECT_EQ(stream.fields.at("cache-control"), "no-cache");
  EXPECT_FALSE(stream.fields.contains("content-length"));
  EXPECT_TRUE(stream.is_whole);
  ASSERT_EQ(stream.chunks.size(), 5U) << "an event for each token, the usage, the end";
  const std::string head = R"(data: {"id":"cmpl-ID","object":"text_completion","created":T,"model":"tiny","choices":[)";
  std::string joined;
  for (std::size_t i = 0; i < 3; ++i) {
    const std::string event = without_id(stream.chunks[i], "cmpl-");
    const std::string text = parse_json(stream.chunks[i].substr(6))["choices"][0]["text"];
    joined += text;
    EXPECT_EQ(event, head + R"({"index":0,"text":)" + json_text(text) + R"(,"logprobs":null,"finish_reason":)" +
                         (i == 2 ? "\"length\"" : "null") +
                         ",\"stop_reason\":null,\"prompt_token_ids\":null,\"token_ids\":null}]}\n\n");
  }
  EXPECT_EQ(joined, ids["choices"][0]["text"].get<std::string>());
  EXPECT_EQ(without_id(stream.chunks[3], "cmpl-"),
            head + R"(],"usage":{"prompt_tokens":2,"total_tokens":5,"completion_tokens":3},"system_fingerprint":)" +
                print + "}\n\n");
  EXPECT_EQ(stream.chunks[4], "data: [DONE]\n\n");
}

TEST(Server, StreamsChatsByteForByte) {
  RunningServer running;
  HttpClient client(running.port());
  const std::string messages = R"("messages":[{"role":"user","content":"ab"}],"temperature":0,"ignore_eos":true,)";
  const ClientResponse stream =
      client.post("/v1/chat/completions", "{" + messages + R"("max_completion_tokens":2,"stream":true,"n":2})");
  ASSERT_EQ(stream.chunks.size(), 7U);
  const std::string head =
      R"(data: {"id":"chatcmpl-ID","object":"chat.completion.chunk","created":T,"model":"tiny","choices":[{"index":)";
  for (std::size_t i = 0; i < 2; ++i)
    EXPECT_EQ(without_id(stream.chunks[i], "chatcmpl-"),
              head + std::to_string(i) + R"(,"delta":{"role":"assistant","content":""},"logprobs":null,)" +
                  "\"finish_reason\":null}],\"prompt_token_ids\":null,\"prompt_text\":null}\n\n");
  std::string texts[2];
  int counts[2] = {0, 0};  // the second choice may wait for the blocks of the prompt that the first computes
  for (std::size_t i = 2; i < 6; ++i) {
    const Json json = parse_json(stream.chunks[i].substr(6));
    const std::size_t index = json["choices"][0]["index"];
    const std::string text = json["choices"][0]["delta"]["content"];
    texts[index] += text;
    const bool is_end = ++counts[index] == 2;
    const std::string end = is_end ? R"("length","stop_reason":null,"token_ids":null}])" : R"(null,"token_ids":null}])";
    const std::string print =
        i == 5 ? ",\"system_fingerprint\":" + json_text(json.value("system_fingerprint", "")) : "";
    EXPECT_EQ(without_id(stream.chunks[i], "chatcmpl-"), head + std::to_string(index) + R"(,"delta":{"content":)" +
                                                             json_text(text) + R"(},"logprobs":null,"finish_reason":)" +
                                                             end + print + "}\n\n");
  }
  const Json whole =
      json_of(client.post("/v1/chat/completions", "{" + messages + R"("max_tokens":2,"return_token_ids":true})"));
  for (const std::string& text : texts) EXPECT_EQ(text, whole["choices"][0]["message"]["content"].get<std::string>());
  EXPECT_EQ(whole["prompt_token_ids"].size(), 19U);
}

TEST(Server, TheAnswerToMessagesIsThatToTheirTokens) {
  RunningServer running;
  HttpClient client(running.port());
  const std::string messages =
      R"("messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}])";
  const Json tokens = json_of(client.post("/tokenize", "{" + messages + "}"));
  EXPECT_EQ(tokens["count"], tokens["tokens"].size());
  EXPECT_EQ(tokens["max_model_len"], 128);
  const Json text = json_of(client.post("/detokenize", R"({"tokens":)" + json_text(tokens["tokens"]) + "}"));
  EXPECT_EQ(text["prompt"], "<user>a\nb<assistant>");
  const std::string asked = R"("temperature":0,"max_tokens":8,"stop":["q"]})";
  const Json chat = json_of(client.post("/v1/chat/completions", "{" + messages + "," + asked));
  const Json completion =
      json_of(client.post("/v1/completions", R"({"prompt":)" + json_text(tokens["tokens"]) + "," + asked));
  EXPECT_EQ(chat["choices"][0]["message"]["content"], completion["choices"][0]["text"]);
  EXPECT_EQ(chat["choices"][0]["finish_reason"], completion["choices"][0]["finish_reason"]);
  EXPECT_EQ(chat["usage"], completion["usage"]);
  const Json continued = json_of(client.post(
      "/v1/chat/completions",
      R"({"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}],"continue_final_message":true,)"
      R"("echo":true,"return_prompt_text":true,"max_tokens":1,"temperature":0})"));
  EXPECT_EQ(continued["prompt_text"], "<user>a<assistant>b");
  EXPECT_TRUE(continued["choices"][0]["message"]["content"].get<std::string>().starts_with("b"));
  const Json silent = json_of(client.post(
      "/apply-template",
      R"({"messages":[{"role":"user"},{"role":"assistant","content":null},{"role":"user","content":"a"}]})"));
  EXPECT_EQ(silent["prompt"], "<user><assistant><user>a<assistant>") << "nothing is an empty text, but beside calls";
}

TEST(Server, EndsAtStops) {
  RunningServer running;
  HttpClient client(running.port());
  const Json whole = json_of(
      client.post("/v1/completions",
                  R"({"prompt":"ab","max_tokens":30,"temperature":0,"ignore_eos":true,"return_token_ids":true})"));
  const int stop = whole["choices"][0]["token_ids"][4];
  const Json stopped = json_of(client.post(
      "/v1/completions", R"({"prompt":"ab","max_tokens":30,"temperature":0,"ignore_eos":true,"stop_token_ids":[)" +
                             std::to_string(stop) + "]}"));
  EXPECT_EQ(stopped["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(stopped["choices"][0]["stop_reason"], stop);
  EXPECT_LE(stopped["usage"]["completion_tokens"], 5);
  const Json echoed = json_of(client.post("/v1/completions", R"({"prompt":["ab",[99]],"max_tokens":0,"echo":true})"));
  EXPECT_EQ(echoed["choices"][0]["text"], "ab");
  EXPECT_EQ(echoed["choices"][1]["text"], "c");
  EXPECT_EQ(echoed["usage"]["completion_tokens"], 0);
  const ClientResponse stream =
      client.post("/v1/completions",
                  R"({"prompt":"ab","max_tokens":2,"echo":true,"stream":true,"temperature":0,"ignore_eos":true})");
  EXPECT_TRUE(parse_json(stream.chunks[0].substr(6))["choices"][0]["text"].get<std::string>().starts_with("ab"));
  EXPECT_FALSE(parse_json(stream.chunks[1].substr(6))["choices"][0]["text"].get<std::string>().starts_with("ab"));
}

// Many clients at once get the answers that each gets alone, in one piece and as streams, when prompts are cut and
// sequences wait.
TEST(Server, ConcurrentClientsGetTheAnswersThatTheyGetAlone) {
  RunningServer running({}, {{"max-num-seqs", "5"}, {"max-num-batched-tokens", "11"}});
  constexpr std::size_t kClients = 8;
  const auto body = [](std::size_t client, bool streams) {
    return R"({"prompt":")" + std::string(3 + 9 * client, static_cast<char>('a' + client)) +
           R"(","max_tokens":20,"ignore_eos":true,"n":2,"temperature":)" + (client % 2 == 0 ? "0" : "0.9") +
           R"(,"seed":)" + std::to_string(client) + (streams ? R"(,"stream":true})" : "}");
  };
  const auto ask = [&](std::size_t client, bool streams) {
    HttpClient connection(running.port());
    const ClientResponse response = connection.post("/v1/completions", body(client, streams));
    std::vector<std::string> texts(2);
    if (!streams) {
      for (std::size_t i = 0; i < 2; ++i) texts[i] = json_of(response)["choices"][i]["text"];
      return texts;
    }
    for (std::size_t i = 0; i + 1 < response.chunks.size(); ++i) {
      const Json choice = parse_json(response.chunks[i].substr(6))["choices"][0];
      texts[choice["index"].get<std::size_t>()] += choice["text"].get<std::string>();
    }
    return texts;
  };
  std::vector<std::vector<std::string>> alone;
  for (std::size_t i = 0; i < kClients; ++i) alone.push_back(ask(i, false));
  std::vector<std::thread> threads;
  std::vector<std::vector<std::vector<std::string>>> together(kClients);
  for (std::size_t i = 0; i < kClients; ++i)
    threads.emplace_back([&, i] {
      for (int round = 0; round < 4; ++round) together[i].push_back(ask(i, round % 2 == 1));
    });
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < kClients; ++i)
    for (const auto& texts : together[i]) EXPECT_EQ(texts, alone[i]) << i;
}

// The requests would take minutes if they were not cancelled.
TEST(Server, ConcurrentDisconnectsFreeTheirRequests) {
  RunningServer running;
  for (const bool streams : {true, false}) {
    {
      HttpClient client(running.port());
      client.send(post_bytes("/v1/completions",
                             std::string(R"({"prompt":"a","n":16384,"max_tokens":120,"ignore_eos":true,"stream":)") +
                                 (streams ? "true}" : "false}")));
      EXPECT_TRUE(!streams || !client.some_bytes().empty());
      EXPECT_TRUE(running.has_load(1));
    }
    EXPECT_EQ(running.load_at_rest(), 0) << streams;
    EXPECT_EQ(HttpClient(running.port()).post("/v1/completions", R"({"prompt":"a"})").status, 200);
  }
}

TEST(Server, SaysTheTimesOfARequestOfOneChoice) {
  RunningServer running({}, {}, {.has_metrics = true});
  HttpClient client(running.port());
  const Json one = json_of(client.post("/v1/completions", R"({"prompt":"a","max_tokens":4,"ignore_eos":true})"));
  for (const char* key :
       {"time_to_first_token_ms", "generation_time_ms", "queue_time_ms", "mean_itl_ms", "tokens_per_second"})
    EXPECT_TRUE(one["metrics"][key].is_number() && one["metrics"][key] >= 0) << json_text(one);
  const Json two = json_of(client.post("/v1/completions", R"({"prompt":"a","max_tokens":4,"n":2,"temperature":1})"));
  EXPECT_FALSE(two.contains("metrics"));
  const std::string stream =
      client.post("/v1/completions", R"({"prompt":"a","max_tokens":4,"stream":true,"ignore_eos":true})").body;
  EXPECT_EQ(stream.find("metrics"), stream.rfind("metrics")) << "of the last event alone";
  EXPECT_NE(stream.find("\"metrics\":{\"time_to_first_token_ms\":"), std::string::npos) << stream;
}

TEST(Server, TakesTheTemplateOfARequestWhereItIsTrusted) {
  const std::string body =
      R"({"messages":[{"role":"user","content":"a"}],"max_tokens":2,"return_prompt_text":true,"chat_template":"T{{ 1 + 1 }}"})";
  RunningServer careful;
  const ClientResponse refused = HttpClient(careful.port()).post("/v1/chat/completions", body);
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(json_of(refused)["error"]["param"], "chat_template");
  RunningServer trusting({}, {}, {}, {.trusts_templates = true, .fingerprint_mode = "none"});
  const Json answer = json_of(HttpClient(trusting.port()).post("/v1/chat/completions", body));
  EXPECT_EQ(answer["prompt_text"], "T2");
  EXPECT_EQ(answer["system_fingerprint"], nullptr);
}

TEST(Server, EchoesTheTokensThatTruncationLeaves) {
  RunningServer running;
  HttpClient client(running.port());
  const Json answer = json_of(client.post(
      "/v1/completions", R"({"prompt":"abcdef","max_tokens":0,"truncate_prompt_tokens":3,"echo":true,"logprobs":0})"));
  const Json& choice = answer["choices"][0];
  std::string tokens;
  for (const Json& token : choice["logprobs"]["tokens"]) tokens += token.get<std::string>();
  EXPECT_EQ(choice["text"], "def");
  EXPECT_EQ(tokens, "def");
}

TEST(Server, ReadsIntegersBeyond64BitsAsNumbers) {
  RunningServer running;
  HttpClient client(running.port());
  const auto error = [&](const std::string& field) {
    const ClientResponse response = client.post("/v1/completions", "{\"prompt\":\"a\",\"max_tokens\":1," + field + "}");
    return response.status == 200 ? Json("none") : json_of(response)["error"]["param"];
  };
  EXPECT_EQ(error(R"("x":18446744073709551616)"), "none");
  EXPECT_EQ(error(R"("x":["-\"18446744073709551616",-123456789012345678901234567890])"), "none");
  EXPECT_EQ(error(R"("seed":18446744073709551616)"), "body.seed");
  EXPECT_EQ(error(R"("top_k":100000000000000000000000000000)"), "body.top_k");
  EXPECT_EQ(error(R"("temperature":100000000000000000000)"), "temperature");
  EXPECT_EQ(error(R"("repetition_penalty":1e-300,"x":1)"), "none");
  EXPECT_EQ(error(R"("repetition_penalty":1e18)"), "none");
}

}  // namespace weft::server_test
