// The errors of requests, over sockets: which comes first, and what each says.

#include <gtest/gtest.h>

#include "base/json.h"
#include "tests/http_client.h"
#include "tests/server/running_server.h"

namespace weft::server_errors_test {

const std::string kKey = "Authorization: Bearer two\r\n";

ServerSettings with_keys() {
  ServerSettings settings;
  settings.api.keys = {"one", "two"};
  settings.limits.body_bytes = 5000;
  return settings;
}

Json error_of(const ClientResponse& response) { return parse_json(response.body)["error"]; }

struct Case {
  const char* path;
  std::string body;
  int status;
  const char* type;
  const char* parameter;  // "": null
};
const std::string kHi = R"("messages":[{"role":"user","content":"a"}])";

const Case kCases[] = {
    {"/v1/completions", "{", 400, "Bad Request", "body"},
    {"/v1/completions", R"({"model":"no","prompt":5})", 400, "Bad Request", "body.prompt"},
    {"/v1/completions", R"({"model":"no","prompt":"a","temperature":9})", 404, "NotFoundError", "model"},
    {"/v1/completions", R"({"prompt":"a","temperature":9,"stream_options":{}})", 400, "BadRequestError",
     "stream_options"},
    {"/v1/completions", R"({"prompt":"","temperature":9})", 400, "BadRequestError", "temperature"},
    {"/v1/completions", R"({"prompt":""})", 400, "BadRequestError", "prompt"},
    {"/v1/completions", "{}", 400, "Bad Request", "body.prompt"},
    {"/v1/completions", R"({"prompt":[]})", 400, "BadRequestError", "prompt"},
    {"/v1/completions", R"({"prompt":[[]]})", 400, "BadRequestError", "prompt"},
    {"/v1/completions", R"({"prompt":[257]})", 400, "BadRequestError", "prompt"},
    {"/v1/completions", R"({"prompt":[-1]})", 400, "BadRequestError", "prompt"},
    {"/v1/completions", R"({"prompt":[[5],[10000000000]]})", 400, "BadRequestError", "prompt"},
    {"/v1/completions", R"({"prompt":"a","allowed_token_ids":[-1]})", 400, "BadRequestError", "allowed_token_ids"},
    {"/v1/completions", R"({"prompt":"a","logit_bias":{"-1":1}})", 400, "BadRequestError", "logit_bias"},
    {"/v1/completions", R"({"prompt":"a","logit_bias":{"99999999999":1}})", 400, "BadRequestError", "logit_bias"},
    {"/v1/completions", R"({"prompt":[5],"truncate_prompt_tokens":0})", 400, "BadRequestError",
     "truncate_prompt_tokens"},
    {"/v1/completions", R"({"prompt":"a","stop_token_ids":[-1]})", 400, "BadRequestError", "stop_token_ids"},
    {"/v1/completions", R"({"prompt":"a","stop_token_ids":[257]})", 400, "BadRequestError", "stop_token_ids"},
    {"/v1/completions", R"({"prompt":")" + std::string(128, 'a') + "\"}", 400, "BadRequestError", "input_tokens"},
    {"/v1/completions", R"({"prompt":"a","max_tokens":129})", 400, "BadRequestError", "max_tokens"},
    {"/v1/chat/completions", "{" + kHi + R"(,"max_completion_tokens":129})", 400, "BadRequestError",
     "max_completion_tokens"},
    {"/v1/chat/completions", R"({"messages":[]})", 400, "BadRequestError", "messages"},
    {"/v1/chat/completions", R"({"messages":[{"content":"a"}]})", 400, "Bad Request", "body.messages"},
    {"/v1/chat/completions", R"({"messages":[{"role":"bad","content":"a"}]})", 400, "BadRequestError", "messages"},
    {"/v1/chat/completions", R"({"messages":[{"role":"user","content":[{"type":"image_url"}]}]})", 400,
     "BadRequestError", "messages"},
    {"/v1/chat/completions", "{" + kHi + R"(,"tools":[{}]})", 400, "Bad Request", "body.tools"},
    {"/v1/chat/completions",
     "{" + kHi +
         R"(,"truncate_prompt_tokens":5,"tool_choice":"required",)"
         R"("tools":[{"type":"function","function":{"name":"f","parameters":{"not":{}}}}]})",
     400, "BadRequestError", "tools"},
    {"/v1/chat/completions",
     R"({"messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"[1]"}}]}]})", 400,
     "BadRequestError", "messages"},
    {"/detokenize", R"({"tokens":[-1]})", 400, "BadRequestError", "tokens"},
    {"/detokenize", R"({"tokens":[300]})", 400, "BadRequestError", "tokens"},
    {"/v1/embeddings", R"({"input":"a"})", 501, "NotImplementedError", ""},
    {"/v1/audio/speech", "{}", 501, "NotImplementedError", ""},
    {"/v1/completions/", "{}", 404, "Not Found", ""},
    {"/nothing", "{}", 404, "Not Found", ""},
    {"/v1/models", "{}", 405, "Method Not Allowed", ""},
    {"/v1/completions", std::string(6000, ' '), 413, "Bad Request", ""},
};

TEST(ServerErrors, ComeInTheirOrder) {
  RunningServer running(with_keys());
  for (const Case& one : kCases) {
    HttpClient client(running.port());
    const ClientResponse response = client.post(one.path, one.body, kKey);
    EXPECT_EQ(response.status, one.status) << one.body;
    const Json error = error_of(response);
    EXPECT_EQ(error["code"], one.status) << one.body;
    EXPECT_EQ(error["type"], one.type) << one.body;
    EXPECT_EQ(error["param"], *one.parameter == '\0' ? Json(nullptr) : Json(one.parameter)) << one.body;
  }
}

TEST(ServerErrors, SayWhatIsWanted) {
  RunningServer running(with_keys());
  HttpClient client(running.port());
  const Json longest =
      parse_json(client.post("/v1/completions", R"({"prompt":")" + std::string(127, 'a') + "\"}", kKey).body);
  EXPECT_EQ(longest["usage"]["completion_tokens"], 1) << "what the context leaves";
  const auto message = [&](const std::string& json) {
    return error_of(client.post("/v1/completions", json, kKey))["message"].get<std::string>();
  };
  const std::string too_long = message(R"({"prompt":")" + std::string(200, 'a') + "\"}");
  for (const char* part : {"maximum context length", "128", "200"})
    EXPECT_NE(too_long.find(part), std::string::npos) << part << ": " << too_long;
  EXPECT_EQ(message(R"({"prompt":[-1]})"), "[prompt] a token must be in [0, 257), but is -1");
  EXPECT_EQ(message(R"({"prompt":[10000000000]})"), "[prompt] a token must be in [0, 257), but is 2147483647 or more");
  const std::string schema = message(R"({"prompt":"a","structured_outputs":{"json":{"type":"foo"}}})");
  EXPECT_EQ(schema, R"([structured_outputs] at "#": the type "foo" is not one of JSON)");
  const std::string text = message(R"({"prompt":"a","structured_outputs":{"json":""}})");
  EXPECT_TRUE(text.starts_with("[structured_outputs] json: wanted JSON")) << text;
  const std::string unknown = message(R"({"prompt":"a","model":"no"})");
  EXPECT_NE(unknown.find("tiny"), std::string::npos) << "the model that is served: " << unknown;
  EXPECT_NE(unknown.find("--served-model-name"), std::string::npos) << unknown;
  const std::string classes = error_of(client.post("/classify", R"({"input":"a"})", kKey))["message"];
  EXPECT_NE(classes.find("...ForSequenceClassification"), std::string::npos) << classes;
  const std::string broken = message(R"({"prompt":"a",})");
  EXPECT_NE(broken.find("(at byte 15 of 15)"), std::string::npos) << broken;
  for (const char* near : {"/v1/v1/chat/completions", "/v1/chat/completions/"}) {
    const std::string missing = error_of(client.post(near, "{}", kKey))["message"];
    EXPECT_NE(missing.find("did you mean \"/v1/chat/completions\"?"), std::string::npos) << missing;
  }
}

TEST(ServerErrors, AreThoseOfTheKeyAloneWithoutIt) {
  RunningServer running(with_keys());
  HttpClient client(running.port());
  for (const std::string& fields :
       {std::string(), std::string("Authorization: Bearer three\r\n"), std::string("Authorization: Bearer twoo\r\n"),
        std::string("Authorization: two\r\n")})
    for (const char* path : {"/v1/completions", "/nothing", "/tokenize", "/v1/models"}) {
      const ClientResponse response = client.post(path, "{", fields);
      EXPECT_EQ(response.status, 401) << path;
      EXPECT_EQ(response.fields.at("www-authenticate"), "Bearer");
    }
  EXPECT_EQ(client.get("/health").status, 200);
  EXPECT_EQ(client.get("/version").status, 200);
  EXPECT_EQ(client.get("/v1/models/small", kKey).status, 200);
  EXPECT_EQ(client.get("/v1/models/none", kKey).status, 404);
  const ClientResponse typed = client.get("/v1/completions", kKey);
  EXPECT_EQ(typed.status, 405);
  EXPECT_EQ(typed.fields.at("allow"), "POST");
  client.send("POST /v1/completions HTTP/1.1\r\nHost: a\r\n" + kKey +
              "Content-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}");
  const Json wrong = error_of(client.receive());
  EXPECT_EQ(wrong["type"], "Bad Request");
  EXPECT_EQ(wrong["param"], nullptr);
}

}  // namespace weft::server_errors_test
