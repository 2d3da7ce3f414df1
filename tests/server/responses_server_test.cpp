// POST /v1/responses over sockets with the tiny model: its answers are those of a chat.

#include <gtest/gtest.h>

#include "tests/http_client.h"
#include "tests/server/running_server.h"

namespace weft::responses_server_test {

const std::string kSampling = R"("temperature":1,"seed":7,"top_k":50,"repetition_penalty":1.1)";

Json json_of(const ClientResponse& response) {
  EXPECT_EQ(response.status, 200) << response.body;
  return parse_json(response.body);
}

Json response_of(HttpClient& client, const std::string& fields) {
  return json_of(client.post("/v1/responses", "{" + kSampling + "," + fields + "}"));
}

Json choice_of(HttpClient& client, const std::string& fields) {
  return json_of(client.post("/v1/chat/completions", "{" + kSampling + "," + fields + "}"))["choices"][0];
}

// The response of the last event.
Json last_response(const std::string& events) {
  const std::size_t data = events.rfind("data: ");
  return parse_json(events.substr(data + 6, events.find("\n\n", data) - data - 6))["response"];
}

TEST(ResponsesServer, AnswersAsAChat) {
  RunningServer running;
  HttpClient client(running.port());
  const std::string logprobs = R"(,"top_logprobs":2,"include":["message.output_text.logprobs"])";
  const std::string asked =
      R"("instructions":"Be","input":[{"role":"user","content":[{"type":"input_text","text":"Hi"}]}],"max_output_tokens":9)";
  const Json choice = choice_of(client, R"("messages":[{"role":"system","content":"Be"},{"role":"user","content":"Hi"}],
                                           "max_completion_tokens":9,"logprobs":true,"top_logprobs":2)");
  const Json whole = response_of(client, asked + logprobs);
  const Json& part = whole["output"][0]["content"][0];
  EXPECT_EQ(part["text"], choice["message"]["content"]);
  EXPECT_EQ(part["logprobs"], choice["logprobs"]["content"]);
  EXPECT_EQ(whole["status"], choice["finish_reason"] == "length" ? "incomplete" : "completed");
  EXPECT_EQ(whole["temperature"], 1.0);
  EXPECT_EQ(whole["instructions"], "Be");
  const ClientResponse stream =
      client.post("/v1/responses", "{" + kSampling + ",\"stream\":true," + asked + logprobs + "}");
  EXPECT_EQ(stream.fields.at("content-type"), "text/event-stream; charset=utf-8");
  const Json last = last_response(stream.body);
  EXPECT_EQ(last["output"][0]["content"], whole["output"][0]["content"]);
  EXPECT_EQ(last["usage"]["output_tokens"], whole["usage"]["output_tokens"]);
}

TEST(ResponsesServer, FollowsTextFormatsAndChoicesOfTools) {
  RunningServer running;
  HttpClient client(running.port());
  const std::string schema = R"({"type":"object","properties":{"a":{"enum":[1,2]}},"required":["a"],)"
                             R"("additionalProperties":false})";
  const Json formed =
      response_of(client, R"("input":"Hi","text":{"format":{"type":"json_schema","name":"n","strict":true,"schema":)" +
                              schema + "}}");
  const Json document = parse_json(formed["output"][0]["content"][0]["text"].get<std::string>());
  EXPECT_TRUE(document["a"] == 1 || document["a"] == 2);
  EXPECT_EQ(formed["text"]["format"]["name"], "n");
  const std::string tools =
      R"("input":"Hi","truncate_prompt_tokens":20,"tools":[{"type":"function","name":"f","parameters":)" + schema +
      "}]";
  for (const char* choice : {"\"required\"", R"({"type":"function","name":"f"})"}) {
    const std::string asked = tools + R"(,"parallel_tool_calls":false,"tool_choice":)" + choice;
    const Json whole = response_of(client, asked);
    ASSERT_EQ(whole["output"].size(), 1U) << whole.dump(1);
    const Json& call = whole["output"][0];
    EXPECT_EQ(call["type"], "function_call");
    EXPECT_EQ(call["name"], "f");
    EXPECT_TRUE(parse_json(call["arguments"].get<std::string>()).contains("a"));
    EXPECT_EQ(json_text(whole["tool_choice"]), json_text(parse_json(choice)));
    const Json last =
        last_response(client.post("/v1/responses", "{" + kSampling + ",\"stream\":true," + asked + "}").body);
    EXPECT_EQ(last["output"][0]["arguments"], call["arguments"]);
  }
}

TEST(ResponsesServer, NamesTheFieldsThatTheRequestHas) {
  RunningServer running;
  HttpClient client(running.port());
  const std::pair<const char*, const char*> cases[] = {
      {R"({"input":[]})", "input"},
      {R"({"input":[{"type":"function_call","call_id":"c","name":"f","arguments":"{"}]})", "input"},
      {R"({"input":"a","max_output_tokens":100000000})", "max_output_tokens"},
      {R"({"input":"a","text":{"format":{"type":"xml"}}})", "body.text.format"},
      {R"({"input":"a","text":{"format":{"type":"json_schema","schema":{"not":{}}}}})", "text.format"},
      {R"({"input":"a","previous_response_id":"resp_1"})", "previous_response_id"},
      {R"({"input":"a","stream":true,"background":true})", "background"}};
  for (const auto& [body, parameter] : cases) {
    const ClientResponse response = client.post("/v1/responses", body);
    EXPECT_EQ(response.status, 400) << body;
    EXPECT_EQ(parse_json(response.body)["error"]["param"], parameter) << response.body;
  }
  EXPECT_EQ(client.get("/v1/responses").status, 405);
  EXPECT_EQ(client.get("/v1/responses/resp_1").status, 404) << "nothing is stored";
  EXPECT_EQ(json_of(client.post("/v1/responses", R"({"input":"a","colour":1,"max_output_tokens":1})"))["object"],
            "response");
  const std::vector<std::string> log = running.log();
  EXPECT_TRUE(std::any_of(log.begin(), log.end(),
                          [](const std::string& line) { return line.find("colour") != std::string::npos; }));
}

TEST(ResponsesServer, WritesLargeAnswersElsewhere) {
  RunningServer running;
  HttpClient client(running.port());
  const Json whole = response_of(client, R"("input":"a","max_output_tokens":100,"ignore_eos":true,"top_logprobs":20,
                                            "include":["message.output_text.logprobs"])");
  EXPECT_EQ(whole["usage"]["output_tokens"], 100);
  EXPECT_EQ(whole["output"][0]["content"][0]["logprobs"].size(), 100U);
}

}  // namespace weft::responses_server_test
