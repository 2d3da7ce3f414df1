// POST /v1/messages and /v1/messages/count_tokens over sockets with the tiny model: the answers are those of a chat.

#include <algorithm>

#include <gtest/gtest.h>

#include "tests/http_client.h"
#include "tests/server/running_server.h"

namespace weft::messages_server_test {

const std::string kSampling = R"("temperature":1,"seed":7,"top_k":50,"repetition_penalty":1.1)";
constexpr const char* kPath = "/v1/messages?beta=true";

Json json_of(const ClientResponse& response) {
  EXPECT_EQ(response.status, 200) << response.body;
  return parse_json(response.body);
}

Json message_of(HttpClient& client, const std::string& fields) {
  return json_of(client.post(kPath, "{" + kSampling + "," + fields + "}"));
}

Json chat_of(HttpClient& client, const std::string& fields) {
  return json_of(client.post("/v1/chat/completions", "{" + kSampling + "," + fields + "}"));
}

// The events of a stream, by their names.
std::vector<std::pair<std::string, Json>> events_of(const std::string& body) {
  std::vector<std::pair<std::string, Json>> events;
  for (std::size_t at = 0; (at = body.find("event: ", at)) != std::string::npos;) {
    const std::size_t data = body.find("\ndata: ", at), end = body.find("\n\n", at);
    events.emplace_back(body.substr(at + 7, data - at - 7), parse_json(body.substr(data + 7, end - data - 7)));
    at = end;
  }
  return events;
}

std::string text_of(const std::string& events) {
  std::string text;
  for (const auto& [name, event] : events_of(events))
    if (name == "content_block_delta") text += event["delta"].value("text", event["delta"].value("partial_json", ""));
  return text;
}

TEST(MessagesServer, AnswersAsAChat) {
  RunningServer running;
  HttpClient client(running.port());
  const std::string asked =
      R"("system":[{"type":"text","text":"Be","cache_control":{"type":"ephemeral"}}],"max_tokens":9,
         "metadata":{"user_id":"u"},"messages":[{"role":"user","content":[{"type":"text","text":"Hi"}]}])";
  const Json chat = chat_of(client, R"("messages":[{"role":"system","content":"Be"},{"role":"user","content":"Hi"}],
                                       "max_completion_tokens":9)");
  const Json whole = message_of(client, asked);
  EXPECT_EQ(whole["content"][0]["text"], chat["choices"][0]["message"]["content"]);
  EXPECT_EQ(whole["stop_reason"], chat["choices"][0]["finish_reason"] == "length" ? "max_tokens" : "end_turn");
  const Json& usage = whole["usage"];
  const int input = usage["input_tokens"].get<int>() + usage["cache_read_input_tokens"].get<int>();
  EXPECT_EQ(input, chat["usage"]["prompt_tokens"]);
  EXPECT_EQ(usage["output_tokens"], chat["usage"]["completion_tokens"]);
  EXPECT_EQ(json_of(client.post("/v1/messages/count_tokens?beta=true", "{" + asked + "}")),
            Json({{"input_tokens", input}}));
  const ClientResponse stream = client.post(kPath, "{" + kSampling + ",\"stream\":true," + asked + "}");
  EXPECT_EQ(stream.fields.at("content-type"), "text/event-stream; charset=utf-8");
  EXPECT_EQ(text_of(stream.body), whole["content"][0]["text"]);
  const auto events = events_of(stream.body);
  EXPECT_EQ(events.front().second["message"]["usage"]["output_tokens"], 0);
  EXPECT_EQ(events[events.size() - 2].second["delta"]["stop_reason"], whole["stop_reason"]);
  EXPECT_EQ(events[events.size() - 2].second["usage"]["output_tokens"], usage["output_tokens"]);
}

TEST(MessagesServer, ContinuesAnAnswerThatIsBegun) {
  RunningServer running;
  HttpClient client(running.port());
  const std::string messages = R"("messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"I am"}])";
  const Json chat = chat_of(client, messages + R"(,"max_completion_tokens":6,"continue_final_message":true)");
  EXPECT_EQ(message_of(client, messages + R"(,"max_tokens":6)")["content"][0]["text"],
            chat["choices"][0]["message"]["content"]);
}

TEST(MessagesServer, FollowsFormatsAndChoicesOfTools) {
  RunningServer running;
  HttpClient client(running.port());
  const std::string schema = R"({"type":"object","properties":{"a":{"enum":[1,2]}},"required":["a"],)"
                             R"("additionalProperties":false})";
  const std::string begin = R"("max_tokens":200,"messages":[{"role":"user","content":"Hi"}],)";
  const std::string format = R"({"type":"json_schema","schema":)" + schema + "}";
  for (const std::string& field : {"\"output_config\":{\"format\":" + format + "}", "\"output_format\":" + format}) {
    const Json formed = message_of(client, begin + field);
    const Json document = parse_json(formed["content"][0]["text"].get<std::string>());
    EXPECT_TRUE(document["a"] == 1 || document["a"] == 2) << formed;
  }
  const std::string tools =
      begin + R"("truncate_prompt_tokens":20,"tools":[{"name":"f","input_schema":)" + schema + "}]";
  for (const char* choice : {R"({"type":"any","disable_parallel_tool_use":true})",
                             R"({"type":"tool","name":"f","disable_parallel_tool_use":true})"}) {
    const std::string asked = tools + ",\"tool_choice\":" + choice;
    const Json whole = message_of(client, asked);
    ASSERT_EQ(whole["content"].size(), 1U) << whole.dump(1);
    const Json& call = whole["content"][0];
    EXPECT_EQ(call["type"], "tool_use");
    EXPECT_EQ(call["name"], "f");
    EXPECT_TRUE(call["input"].contains("a"));
    EXPECT_EQ(whole["stop_reason"], "tool_use");
    const ClientResponse stream = client.post(kPath, "{" + kSampling + ",\"stream\":true," + asked + "}");
    EXPECT_EQ(parse_json(text_of(stream.body)), call["input"]);
  }
}

TEST(MessagesServer, AnswersErrorsInTheFormOfItsClients) {
  ServerSettings settings;
  settings.limits.body_bytes = 100000;
  RunningServer running(std::move(settings));
  HttpClient client(running.port());
  const std::string user = R"("messages":[{"role":"user","content":"a"}])";
  const std::tuple<std::string, int, const char*, const char*> cases[] = {
      {"{" + user + "}", 400, "invalid_request_error", "[max_tokens]"},
      {R"({"max_tokens":4})", 400, "invalid_request_error", "[messages]"},
      {"{", 400, "invalid_request_error", "JSON"},
      {R"({"max_tokens":4,"model":"nobody",)" + user + "}", 404, "not_found_error", "nobody"},
      {R"({"max_tokens":4,"temperature":9,)" + user + "}", 400, "invalid_request_error", "[temperature]"},
      {R"({"max_tokens":4,"stream":true,"container":"c",)" + user + "}", 400, "invalid_request_error", "[container]"},
      {R"({"max_tokens":4,"output_config":{"format":{"type":"json_schema","schema":{"not":{}}}},)" + user + "}", 400,
       "invalid_request_error", "[output_config.format]"},
      {R"({"max_tokens":4,"messages":[{"role":"user","content":")" + std::string(20000, 'a') + "\"}]}", 400,
       "invalid_request_error", "prompt is too long: "}};
  for (const auto& [body, status, type, word] : cases) {
    const ClientResponse response = client.post("/v1/messages", body);
    EXPECT_EQ(response.status, status) << body;
    const Json error = parse_json(response.body);
    EXPECT_EQ(error["type"], "error");
    EXPECT_EQ(error["error"]["type"], type) << error;
    EXPECT_NE(error["error"]["message"].get<std::string>().find(word), std::string::npos) << error;
  }
  EXPECT_EQ(parse_json(client.get("/v1/messages").body)["error"]["type"], "invalid_request_error");
  for (const char* path : {"/v1/messages/batches", "/v1/messages/batches/a", "/v1/messages/a"})
    EXPECT_EQ(parse_json(client.post(path, "{}").body)["type"], "error") << path;
  const ClientResponse large = client.post("/v1/messages", std::string(200000, ' '));
  EXPECT_EQ(large.status, 413);
  EXPECT_EQ(parse_json(large.body)["error"]["type"], "request_too_large");
}

TEST(MessagesServer, CountsWhatIsTooLongAndAnswersUpToTheContext) {
  RunningServer running;
  HttpClient client(running.port());
  const std::string text(20000, 'a');
  const Json counted =
      json_of(client.post("/v1/messages/count_tokens", R"({"messages":[{"role":"user","content":")" + text + "\"}]}"));
  EXPECT_GT(counted["input_tokens"], 1000);
  EXPECT_EQ(client.post("/v1/messages/count_tokens", "{}").status, 400);
  const Json whole =
      message_of(client, R"("max_tokens":32000,"ignore_eos":true,"messages":[{"role":"user","content":"a"}])");
  EXPECT_EQ(whole["stop_reason"], "model_context_window_exceeded");
}

TEST(MessagesServer, SystemMessagesAfterOthersAreWhereTheTemplateReadsThem) {
  const auto count = [](const RunningServer& running, const std::string& turns) {
    HttpClient client(running.port());
    return json_of(client.post("/v1/messages/count_tokens", "{\"messages\":[" + turns + "]}"))["input_tokens"];
  };
  const std::string late = R"({"role":"user","content":"a"},{"role":"system","content":"b"})";
  const std::string joined = R"({"role":"user","content":"a\nb"})";
  const RunningServer reads;
  const int roles = std::string("<system>").size();
  EXPECT_EQ(count(reads, late).get<int>(), count(reads, joined).get<int>() - 1 + roles) << "a token is a byte";
  const std::string refuses = "{% if messages[-1].role == 'system' %}{{ raise_exception('no') }}{% endif %}<assistant>";
  const RunningServer folds({}, {}, {}, {.prompt_end = refuses});
  EXPECT_EQ(count(folds, late), count(folds, joined));
}

TEST(MessagesServer, TakesKeysAsAnthropicsClientsSendThem) {
  ServerSettings settings;
  settings.api.keys = {"one"};
  RunningServer running(std::move(settings));
  const std::string body = R"({"max_tokens":1,"messages":[{"role":"user","content":"a"}]})";
  const auto answer_with = [&](const std::string& fields) {
    return HttpClient(running.port()).post("/v1/messages", body, fields);
  };
  EXPECT_EQ(answer_with("x-api-key: one\r\nanthropic-version: 2023-06-01\r\nanthropic-beta: a,b\r\n").status, 200);
  EXPECT_EQ(answer_with("authorization: Bearer one\r\n").status, 200);
  EXPECT_EQ(answer_with("authorization: Bearer two\r\nx-api-key: one\r\n").status, 200);
  for (const char* field : {"x-api-key: two\r\n", "x-api-key: \r\n", "x-api-key: Bearer one\r\n", ""}) {
    const ClientResponse refused = answer_with(field);
    EXPECT_EQ(refused.status, 401) << field;
    EXPECT_EQ(parse_json(refused.body)["error"]["type"], "authentication_error");
  }
}

}  // namespace weft::messages_server_test
