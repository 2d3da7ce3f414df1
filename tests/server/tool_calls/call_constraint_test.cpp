// Answers that must be calls, with the tiny model, whose tokens are bytes: what it says is chance, so that calls come
// from the constraint alone.

#include "server/tool_calls/call_constraint.h"

#include <gtest/gtest.h>

#include "tests/http_client.h"
#include "tests/server/running_server.h"

namespace weft::call_constraint_test {

constexpr const char* kTools =
    R"([{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"a":{"enum":[1,2]},)"
    R"("b":{"type":"boolean"}},"required":["a","b"]}}},{"type":"function","function":{"name":"g"}}])";

// The context is shorter than what the model is told of the tools.
std::string asked(const std::string& fields, int seed = 7) {
  return R"({"messages":[{"role":"user","content":"a"}],"truncate_prompt_tokens":9,"max_tokens":110,"temperature":1,"seed":)" +
         std::to_string(seed) + ",\"tools\":" + kTools + "," + fields + "}";
}

Json choice_of(HttpClient& client, const std::string& request) {
  const ClientResponse response = client.post("/v1/chat/completions", request);
  EXPECT_EQ(response.status, 200) << response.body;
  return parse_json(response.body)["choices"][0];
}

void expect_arguments(const Json& function) {
  const Json arguments = parse_json(function["arguments"].get<std::string>());
  if (function["name"] == "g") {
    EXPECT_EQ(arguments, Json::object());
    return;
  }
  EXPECT_EQ(function["name"], "f");
  EXPECT_EQ(arguments.size(), 2U);
  EXPECT_TRUE(arguments["a"] == 1 || arguments["a"] == 2) << arguments;
  EXPECT_TRUE(arguments["b"].is_boolean()) << arguments;
}

TEST(CallConstraint, MakesARequiredAnswerOneCall) {
  RunningServer running;
  HttpClient client(running.port());
  int whole = 0;
  for (int seed = 0; seed < 12; ++seed) {
    const Json choice = choice_of(client, asked(R"("tool_choice":"required","parallel_tool_calls":false)", seed));
    if (choice["finish_reason"] == "length") continue;  // all the white space that is allowed is too long
    ++whole;
    EXPECT_EQ(choice["finish_reason"], "tool_calls");
    EXPECT_EQ(choice["message"]["content"], "");
    ASSERT_EQ(choice["message"]["tool_calls"].size(), 1U);
    expect_arguments(choice["message"]["tool_calls"][0]["function"]);
  }
  EXPECT_GT(whole, 0);
}

TEST(CallConstraint, MakesANamedAnswerTheArguments) {
  RunningServer running;
  HttpClient client(running.port());
  for (const char* name : {"f", "g"}) {
    const std::string named = R"("tool_choice":{"type":"function","function":{"name":")" + std::string(name) + "\"}}";
    const Json choice = choice_of(client, asked(named));
    EXPECT_EQ(choice["finish_reason"], "stop");
    EXPECT_EQ(choice["message"]["content"], "");
    ASSERT_EQ(choice["message"]["tool_calls"].size(), 1U);
    EXPECT_EQ(choice["message"]["tool_calls"][0]["function"]["name"], name);
    expect_arguments(choice["message"]["tool_calls"][0]["function"]);
  }
}

TEST(CallConstraint, RefusesWhatItCannotEnforce) {
  RunningServer running;
  HttpClient client(running.port());
  const auto refused = [&](const std::string& request) -> Json {
    return parse_json(client.post("/v1/chat/completions", request).body)["error"]["param"];
  };
  EXPECT_EQ(refused(asked(R"("tool_choice":"required","response_format":{"type":"json_object"})")), "tool_choice");
  EXPECT_EQ(
      refused(R"({"messages":[{"role":"user","content":"a"}],"tool_choice":"required","truncate_prompt_tokens":9,)"
              R"("tools":[{"type":"function","function":{"name":"f","parameters":{"not":{}}}}]})"),
      "tools");
  const Json error = parse_json(
      client
          .post("/v1/chat/completions",
                R"({"messages":[{"role":"user","content":"a"}],"tool_choice":"required","truncate_prompt_tokens":9,)"
                R"("tools":[{"type":"function","function":{"name":"f"}},{"type":"function","function":)"
                R"_({"name":"culprit","parameters":{"properties":{"a":{"pattern":"(?=x)"}}}}}]})_")
          .body)["error"];
  const auto message = error["message"].get<std::string>();
  EXPECT_NE(message.find(R"([tools] parameters of "culprit": [schema] at "#/properties/a": pattern)"),
            std::string::npos)
      << message;
}

TEST(CallConstraint, ComesAfterTheReasoning) {
  RunningServer running(
      {}, {}, {}, {.added_tokens = {"<think>", "</think>"}, .prompt_end = "<think>", .reasoning_parser = "think"});
  HttpClient client(running.port());
  const std::string named = R"("tool_choice":{"type":"function","function":{"name":"g"}},)";
  const Json choice = choice_of(client, asked(named + R"("logit_bias":{"258":100})"));
  EXPECT_EQ(choice["message"]["content"], "");
  ASSERT_EQ(choice["message"]["tool_calls"].size(), 1U);
  expect_arguments(choice["message"]["tool_calls"][0]["function"]);
  const Json cut = choice_of(client, asked(named + R"("max_tokens":5,"logit_bias":{"258":-100})"));
  EXPECT_FALSE(cut["message"].contains("tool_calls")) << "cut within its reasoning";
  EXPECT_FALSE(cut["message"]["reasoning"].is_null());
}

}  // namespace weft::call_constraint_test
