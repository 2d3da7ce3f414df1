// The prefix cache as clients see it.

#include <gtest/gtest.h>

#include "base/json.h"
#include "tests/http_client.h"
#include "tests/server/running_server.h"

namespace weft::prefix_cache_server_test {

Json completion(RunningServer& running, const std::string& fields) {
  HttpClient client(running.port());
  return parse_json(client.post("/v1/completions", "{" + fields + "}").body);
}

Json cached_tokens(const Json& answer) { return answer["usage"]["prompt_tokens_details"]["cached_tokens"]; }

const std::string kPrompt = R"("prompt":"abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG","temperature":0,"max_tokens":8)";

TEST(PrefixCacheOfServer, IsToldInUsageIfAsked) {
  RunningServer running({}, {}, {.has_prompt_details = true});
  const Json first = completion(running, kPrompt), second = completion(running, kPrompt);
  EXPECT_EQ(cached_tokens(first), 0);
  EXPECT_EQ(cached_tokens(second), 32);
  EXPECT_EQ(first["choices"], second["choices"]);
  EXPECT_EQ(cached_tokens(completion(running, kPrompt + R"(,"cache_salt":"mine")")), 0);
  // Of several prompts the tokens are added, each prompt once.
  const Json both = completion(
      running, R"("prompt":["abcdefghijklmnopqrstuvwxyz","abcdefghijklmnopqrstuvwxy0"],"n":2,"max_tokens":1)");
  EXPECT_EQ(cached_tokens(both), 32);
  HttpClient client(running.port());
  const ClientResponse stream =
      client.post("/v1/completions", "{" + kPrompt + R"(,"stream":true,"stream_options":{"include_usage":true}})");
  EXPECT_EQ(cached_tokens(parse_json(stream.chunks.at(stream.chunks.size() - 2).substr(6))), 32);
  RunningServer silent;
  EXPECT_EQ(completion(silent, kPrompt)["usage"]["prompt_tokens_details"], nullptr);
}

TEST(PrefixCacheOfServer, ChoicesOfAPromptAreTheAnswersThatItGetsAlone) {
  RunningServer running({}, {}, {.has_prompt_details = true});
  const std::string asked = R"("prompt":"abcdefghijklmnopqrstuvwxyz0123456789","temperature":0.9,"max_tokens":20,)";
  const Json together = completion(running, asked + R"("n":3,"seed":40)");
  for (int i = 0; i < 3; ++i) {
    const std::string seed = R"("seed":)" + std::to_string(40 + i);
    const Json alone = completion(running, asked + R"("cache_salt":"alone",)" + seed);
    EXPECT_EQ(alone["choices"][0]["text"], together["choices"][static_cast<std::size_t>(i)]["text"]) << i;
  }
}

TEST(PrefixCacheOfServer, IsEmptiedForDevelopersAlone) {
  ServerSettings settings;
  settings.api.has_developer_paths = true;
  RunningServer running(settings, {}, {.has_prompt_details = true});
  completion(running, kPrompt);
  HttpClient client(running.port());
  client.send("POST /reset_prefix_cache HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(client.receive().status, 200);
  EXPECT_EQ(cached_tokens(completion(running, kPrompt)), 0);
  EXPECT_EQ(HttpClient(running.port()).get("/reset_prefix_cache").status, 405);
  RunningServer users;
  HttpClient other(users.port());
  other.send("POST /reset_prefix_cache HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(other.receive().status, 404);
}

TEST(PrefixCacheOfServer, IsNotEmptiedWhileSequencesRun) {
  ServerSettings settings;
  settings.api.has_developer_paths = true;
  RunningServer running(settings);
  HttpClient busy(running.port()), client(running.port());
  busy.send(post_bytes("/v1/completions", R"({"prompt":"a","n":16384,"max_tokens":120,"ignore_eos":true})"));
  ASSERT_TRUE(running.has_load(1));
  client.send("POST /reset_prefix_cache HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(client.receive().status, 503);
}

}  // namespace weft::prefix_cache_server_test
