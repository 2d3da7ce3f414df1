// response_format and structured_outputs, with the tiny model, whose tokens are bytes.

#include "server/structured_outputs.h"

#include <set>

#include <gtest/gtest.h>

#include "tests/http_client.h"
#include "tests/server/running_server.h"

namespace weft::structured_outputs_test {

std::string completion(const std::string& fields) {
  return R"({"prompt":"Hello","temperature":1,"seed":7,"max_tokens":100,)" + fields + "}";
}

Json choices_of(const ClientResponse& response) {
  EXPECT_EQ(response.status, 200) << response.body;
  return parse_json(response.body)["choices"];
}

// The texts of a stream's events, joined.
std::string joined_text(const std::string& events) {
  std::string text;
  for (std::size_t at = events.find("data: {"); at != std::string::npos; at = events.find("data: {", at + 1)) {
    const Json event = parse_json(events.substr(at + 6, events.find("\n\n", at) - at - 6));
    text += event["choices"][0]["text"].get<std::string>();
  }
  return text;
}

TEST(StructuredOutputs, MakeAnswersOfTheAskedForm) {
  RunningServer running;
  HttpClient client(running.port());
  const Json several = choices_of(
      client.post("/v1/completions", completion(R"("n":3,"structured_outputs":{"choice":["red","green","blue"]})")));
  for (const Json& choice : several) {
    EXPECT_TRUE((std::set<std::string>{"red", "green", "blue"}.contains(choice["text"].get<std::string>())));
    EXPECT_EQ(choice["finish_reason"], "stop");
  }
  const std::string schema = R"({"type":"object","properties":{"a":{"enum":[1,2]},"b":{"type":"boolean"}},)"
                             R"("required":["a","b"],"additionalProperties":false})";
  const std::string format =
      R"("response_format":{"type":"json_schema","json_schema":{"name":"n","strict":true,"schema":)" + schema + "}}";
  const std::string whole = choices_of(client.post("/v1/completions", completion(format)))[0]["text"];
  const Json document = parse_json(whole);
  EXPECT_TRUE(document["a"] == 1 || document["a"] == 2) << whole;
  EXPECT_TRUE(document["b"].is_boolean()) << whole;
  EXPECT_EQ(joined_text(client.post("/v1/completions", completion(R"("stream":true,)" + format)).body), whole);
  const Json chat = choices_of(client.post(
      "/v1/chat/completions",
      R"({"messages":[{"role":"user","content":"a"}],"structured_outputs":{"regex":"[0-9]{3}-[a-f]{2}"}})"));
  const std::string content = chat[0]["message"]["content"];
  EXPECT_EQ(content.size(), 6U);
  EXPECT_EQ(content[3], '-');
  const Json cut = choices_of(client.post(
      "/v1/completions", completion(R"("max_tokens":2,"structured_outputs":{"grammar":"root ::= \"abc\""})")));
  EXPECT_EQ(cut[0]["text"], "ab");
  EXPECT_EQ(cut[0]["finish_reason"], "length");
  // A wanted format counts more; text is none.
  const Json number = choices_of(
      client.post("/v1/completions",
                  completion(R"("response_format":{"type":"text"},"structured_outputs":{"json":"{\"const\":12}"})")));
  EXPECT_EQ(number[0]["text"], "12");
}

TEST(StructuredOutputs, AFormatOfAnUnknownTypeIsAFieldOfAWrongType) {
  RunningServer running;
  HttpClient client(running.port());
  for (const char* format : {R"({"type":"yaml"})", "{}"}) {
    const ClientResponse response =
        client.post("/v1/completions", completion(R"("response_format":)" + std::string(format)));
    EXPECT_EQ(response.status, 400);
    const Json error = parse_json(response.body)["error"];
    EXPECT_EQ(error["type"], "Bad Request");
    EXPECT_EQ(error["param"], "body.response_format");
    EXPECT_NE(error["message"].get<std::string>().find("json_schema"), std::string::npos);
  }
}

TEST(StructuredOutputs, AreRefusedWithTheFieldsName) {
  RunningServer running;
  HttpClient client(running.port());
  struct Case {
    const char* field;
    const char* value;
    int status;
    const char* words;
  };
  const Case cases[] = {
      {"response_format", R"({"type":"json_schema"})", 400, "json_schema"},
      {"response_format", R"({"type":"structural_tag"})", 501, "structural_tag"},
      {"response_format", R"({"type":"json_schema","json_schema":{"schema":{"items":{"not":{}}}}})", 400, "#/items"},
      {"response_format", R"({"type":"json_schema","json_schema":{"schema":[]}})", 400, "schema"},
      {"structured_outputs", R"({})", 400, "one of"},
      {"structured_outputs", R"({"regex":"a","choice":["a"]})", 400, "one of"},
      {"structured_outputs", R"({"choice":[]})", 400, "choice"},
      {"structured_outputs", R"({"choice":[1]})", 400, "choice"},
      {"structured_outputs", R"_({"regex":"(?=a)"})_", 400, "look-around"},
      {"structured_outputs", R"({"grammar":"start: x"})", 400, "::="},
      {"structured_outputs", R"({"json":"{"})", 400, "JSON"},
      {"structured_outputs", R"({"regexp":"a"})", 400, "regexp"},
      {"structured_outputs", R"({"regex":"[^\\x{0}-\\x{10FFFF}]"})", 400, "no text matches"},
      {"structured_outputs", R"({"regex":"a\\x00"})", 400, "NUL"},
      {"structured_outputs", R"({"json":{},"whitespace_pattern":"x"})", 400, "whitespace_pattern"},
  };
  for (const Case& one : cases) {
    const ClientResponse response =
        client.post("/v1/completions", completion("\"" + std::string(one.field) + "\":" + one.value));
    EXPECT_EQ(response.status, one.status) << one.value;
    const Json error = parse_json(response.body)["error"];
    EXPECT_EQ(error["param"], one.field) << one.value;
    EXPECT_NE(error["message"].get<std::string>().find(one.words), std::string::npos) << error["message"];
  }
  for (const char* field : {"response_format", "structured_outputs"})
    EXPECT_EQ(
        parse_json(
            client.post("/v1/completions", completion("\"" + std::string(field) + "\":3")).body)["error"]["param"],
        "body." + std::string(field));
}

// A model whose template begins the reasoning. The bias makes it end; what it says is chance.
TEST(StructuredOutputs, BeginAfterTheReasoning) {
  const RunningServer::ModelChanges changes{
      .added_tokens = {"<think>", "</think>"}, .prompt_end = "<think>", .reasoning_parser = "think"};
  RunningServer running({}, {}, {}, changes);
  HttpClient client(running.port());
  const auto asked = [](int seed, const std::string& fields) {
    return R"({"messages":[{"role":"user","content":"a"}],"temperature":1,"max_tokens":90,"logit_bias":{"258":4},"seed":)" +
           std::to_string(seed) + "," + fields + "}";
  };
  const std::string choice = R"("structured_outputs":{"choice":[" red"," green"]})";
  int whole = 0, with_reasoning = 0;
  for (int seed = 0; seed < 8; ++seed) {
    const Json message = choices_of(client.post("/v1/chat/completions", asked(seed, choice)))[0]["message"];
    with_reasoning += message["reasoning"].is_null() ? 0 : 1;
    if (message["content"] == "") continue;  // the reasoning was cut
    ++whole;
    EXPECT_TRUE(message["content"] == " red" || message["content"] == " green") << message;
  }
  EXPECT_GT(whole, 0);
  EXPECT_GT(with_reasoning, 0);
  // With reasoning that is hidden, and with none because the template ended it, the answer has the form as well.
  const Json hidden = choices_of(
      client.post("/v1/chat/completions", asked(1, R"("logit_bias":{"258":100},"include_reasoning":false,)" + choice)));
  EXPECT_EQ(hidden[0]["message"]["reasoning"], nullptr);
  EXPECT_TRUE(hidden[0]["message"]["content"].get<std::string>().starts_with(" ")) << hidden;
  const Json cut = choices_of(
      client.post("/v1/chat/completions", asked(1, R"("logit_bias":{"258":-100},"max_tokens":9,)" + choice)));
  EXPECT_EQ(cut[0]["finish_reason"], "length");
  EXPECT_EQ(cut[0]["message"]["content"], "");
}

TEST(StructuredOutputs, NeedNoReasoning) {
  const std::string choice = R"("structured_outputs":{"choice":["red","green"]}})";
  for (const char* prompt_end : {"", "<think></think>"}) {
    const RunningServer::ModelChanges changes{
        .added_tokens = {"<think>", "</think>"}, .prompt_end = prompt_end, .reasoning_parser = "think"};
    RunningServer running({}, {}, {}, changes);
    HttpClient client(running.port());
    const Json message = choices_of(client.post(
        "/v1/chat/completions",
        R"({"messages":[{"role":"user","content":"a"}],"logit_bias":{"257":-100},)" + choice))[0]["message"];
    EXPECT_EQ(message["reasoning"], nullptr);
    EXPECT_TRUE(message["content"] == "red" || message["content"] == "green") << message;
    // Without a reasoning that is over the model may begin one.
    const Json biased = choices_of(client.post(
        "/v1/chat/completions",
        R"({"messages":[{"role":"user","content":"a"}],"temperature":0,"logit_bias":{"257":100,"258":50},)" +
            choice))[0]["message"];
    EXPECT_EQ(biased["content"] == "", *prompt_end == '\0') << biased;
  }
}

}  // namespace weft::structured_outputs_test
