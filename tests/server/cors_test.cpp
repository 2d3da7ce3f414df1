// Which pages of other origins may use the server.

#include "server/cors.h"

#include <gtest/gtest.h>

#include "tests/http_client.h"
#include "tests/server/running_server.h"

namespace weft::cors_test {

std::string value_of(const HttpFields& fields, const std::string& name) {
  for (const auto& [key, value] : fields)
    if (key == name) return value;
  return "-";
}

HttpRequest preflight(const std::string& origin, const std::string& method, const std::string& headers) {
  return {
      .method = "OPTIONS",
      .path = "/v1/completions",
      .fields = {
          {"origin", origin}, {"access-control-request-method", method}, {"access-control-request-headers", headers}}};
}

TEST(Cors, AllowsNobodyUnlessOriginsAreGiven) {
  EXPECT_TRUE(cors_fields({}, preflight("https://a.b", "POST", "")).empty());
  EXPECT_FALSE(preflight_response({}, preflight("https://a.b", "POST", "")));
}

TEST(Cors, NamesTheOriginOrAll) {
  const HttpRequest request = preflight("https://a.b", "POST", "content-type");
  EXPECT_EQ(value_of(cors_fields({.origins = {"*"}}, request), "access-control-allow-origin"), "*");
  const CorsSettings credentials{.origins = {"*"}, .allows_credentials = true};
  EXPECT_EQ(value_of(cors_fields(credentials, request), "access-control-allow-origin"), "https://a.b");
  EXPECT_EQ(value_of(cors_fields(credentials, request), "access-control-allow-credentials"), "true");
  EXPECT_EQ(value_of(cors_fields({.origins = {"https://a.b"}}, request), "access-control-allow-origin"), "https://a.b");
  const HttpFields other = cors_fields({.origins = {"https://c.d"}}, request);
  EXPECT_EQ(value_of(other, "access-control-allow-origin"), "-");
  EXPECT_EQ(value_of(other, "vary"), "Origin");
}

TEST(Cors, AnswersWhatBrowsersAskBeforehand) {
  const CorsSettings settings{.origins = {"https://a.b"}, .methods = {"POST"}, .headers = {"Content-Type"}};
  const auto status = [&](const HttpRequest& request) { return preflight_response(settings, request)->status; };
  EXPECT_EQ(status(preflight("https://a.b", "POST", "content-type")), 200);
  EXPECT_EQ(status(preflight("https://c.d", "POST", "content-type")), 400);
  EXPECT_EQ(status(preflight("https://a.b", "DELETE", "content-type")), 400);
  EXPECT_EQ(status(preflight("https://a.b", "POST", "content-type, x-other")), 400);
  const HttpFields all = preflight_response({.origins = {"*"}}, preflight("https://a.b", "POST", "x-other"))->fields;
  EXPECT_EQ(value_of(all, "access-control-allow-headers"), "x-other");
}

TEST(Cors, KnowsThePagesOfOtherOrigins) {
  const auto refused = [](const CorsSettings& settings, const std::string& origin) {
    return refused_origin(settings,
                          {.method = "POST", .path = "/", .fields = {{"host", "A.b:8000"}, {"origin", origin}}});
  };
  EXPECT_EQ(refused({}, "https://c.d"), "https://c.d");
  EXPECT_EQ(refused({}, "null"), "null") << "a page of a file";
  EXPECT_EQ(refused({}, "http://a.b:8000"), "") << "the page of the server";
  EXPECT_EQ(refused({}, "http://a.b"), "http://a.b");
  EXPECT_EQ(refused({.origins = {"https://c.d"}}, "https://c.d"), "");
  EXPECT_EQ(refused({.origins = {"*"}}, "https://c.d"), "");
  EXPECT_EQ(refused_origin({}, {.method = "POST", .path = "/", .fields = {{"host", "a"}}}), "") << "no browser";
}

TEST(Cors, SaysOnceWhichOriginIsRefused) {
  RunningServer running;
  HttpClient client(running.port());
  for (const char* origin : {"https://a.b", "https://a.b", "https://c.d"})
    client.get("/v1/models", "Origin: " + std::string(origin) + "\r\n");
  std::vector<std::string> notes;
  for (const std::string& line : running.log())
    if (line.find("--allowed-origins") != std::string::npos) notes.push_back(line);
  ASSERT_EQ(notes.size(), 2U);
  EXPECT_NE(notes[0].find("https://a.b"), std::string::npos) << notes[0];
  EXPECT_NE(notes[1].find("https://c.d"), std::string::npos) << notes[1];
}

TEST(Cors, IsInTheServersResponses) {
  ServerSettings settings;
  settings.api.keys = {"one"};
  settings.api.cors.origins = {"https://a.b"};
  settings.api.root_path = "/x";
  RunningServer running(std::move(settings));
  HttpClient client(running.port());
  const std::string asked =
      "OPTIONS /v1/completions HTTP/1.1\r\nHost: a\r\nOrigin: https://a.b\r\nAccess-Control-Request-Method: "
      "POST\r\n\r\n";
  client.send(asked);
  const ClientResponse preflight = client.receive();
  EXPECT_EQ(preflight.status, 200) << "without a key, which browsers do not send here";
  EXPECT_EQ(preflight.fields.at("access-control-allow-origin"), "https://a.b");
  const ClientResponse refused = client.get("/v1/models", "Origin: https://a.b\r\n");
  EXPECT_EQ(refused.status, 401);
  EXPECT_EQ(refused.fields.at("access-control-allow-origin"), "https://a.b") << "pages see errors, too";
  const std::string fields = "Origin: https://a.b\r\nAuthorization: Bearer one\r\n";
  const ClientResponse stream =
      client.post("/v1/completions", R"({"prompt":"a","max_tokens":1,"stream":true})", fields);
  EXPECT_EQ(stream.fields.at("vary"), "Origin");
  // The prefix of a proxy may be there or not.
  EXPECT_EQ(client.get("/x/v1/models", fields).status, 200);
  EXPECT_EQ(client.get("/x/v1/models/tiny", fields).status, 200);
  EXPECT_EQ(client.get("/v1/models", fields).status, 200);
  EXPECT_EQ(client.get("/xv1/models", fields).status, 404);
  EXPECT_EQ(client.get("/x/x/v1/models", fields).status, 404);
}

}  // namespace weft::cors_test
