// The answer of a chat from its events, in one piece and as a stream, without a socket or an engine.

#include "server/generation.h"

#include <gtest/gtest.h>

#include "server/tool_calls/dialects.h"
#include "tests/server/recorded_reply.h"

namespace weft::generation_test {

struct Asked {
  ToolChoice::Kind choice = ToolChoice::Kind::automatic;
  FinishReason finished = FinishReason::stop;
  std::size_t at_once = 3;
  bool has_reasoning = false, has_one_call = false;
  std::int64_t stream_interval = 1;
  const char* dialect = "hermes";
};

// Runs an answer of this text.
std::shared_ptr<RecordedReply> answered(const std::string& text, bool streams, const Asked& asked) {
  PreparedRequest prepared;
  prepared.request.endpoint = chat;
  prepared.request.stream = streams;
  prepared.request.return_token_ids = true;
  prepared.request.stream_interval = asked.stream_interval;
  prepared.request.wants_logprobs = true;
  prepared.form.dialect = find_dialect(asked.dialect);
  prepared.form.tool_choice = {.kind = asked.choice, .function = "f"};
  prepared.form.has_one_call = asked.has_one_call;
  if (asked.has_reasoning) prepared.form.reasoning = find_reasoning_format("think");
  prepared.prompts.push_back({"", std::make_shared<const std::vector<int>>(3, 1)});
  ServedModel model;
  model.names = {"m"};
  const auto reply = std::make_shared<RecordedReply>();
  Generation generation(std::move(prepared), model, "ID", 5, reply);
  generation.begin(7);
  for (std::size_t at = 0; at < text.size(); at += asked.at_once) {
    const bool is_last = at + asked.at_once >= text.size();
    generation.take(
        {.ticket = 5,
         .event = {.token = static_cast<int>(at),
                   .text = text.substr(at, asked.at_once),
                   .finished = is_last ? asked.finished : FinishReason::none,
                   .logprobs = TokenLogprobs{.chosen = {.id = static_cast<int>(at), .logprob = -1}, .rank = 1}}});
  }
  EXPECT_TRUE(generation.is_over());
  return reply;
}

Json whole(const std::string& text, const Asked& asked = {}) {
  return parse_json(answered(text, false, asked)->body)["choices"][0];
}

// What a client joins from a stream, with the keys of an answer in one piece.
Json joined(const std::string& text, const Asked& asked = {}) {
  const auto reply = answered(text, true, asked);
  EXPECT_TRUE(reply->has_ended);
  Json message{{"content", ""}, {"tool_calls", Json::array()}, {"reasoning", ""}}, choice;
  Json ids = Json::array(), logprobs = Json::array();
  for (const Json& event : reply->events) {
    const Json& one = event["choices"][0];
    const Json& delta = one["delta"];
    if (one.contains("token_ids"))
      for (const Json& id : one["token_ids"]) ids.push_back(id);
    if (!one["logprobs"].is_null())
      for (const Json& token : one["logprobs"]["content"]) logprobs.push_back(token);
    for (const char* key : {"content", "reasoning"})
      if (delta.contains(key)) message[key] = message[key].get<std::string>() + delta[key].get<std::string>();
    if (!one["finish_reason"].is_null()) {
      EXPECT_FALSE(choice.contains("finish_reason"));
      choice["finish_reason"] = one["finish_reason"];
    }
    if (!delta.contains("tool_calls")) continue;
    EXPECT_EQ(delta["tool_calls"].size(), 1U);
    const Json& call = delta["tool_calls"][0];
    if (call.contains("id")) {
      EXPECT_EQ(call["index"], message["tool_calls"].size());
      EXPECT_EQ(call["function"]["arguments"], "");
      message["tool_calls"].push_back({{"id", call["id"]}, {"type", call["type"]}, {"function", call["function"]}});
    } else {
      Json& begun = message["tool_calls"][call["index"].get<std::size_t>()]["function"]["arguments"];
      begun = begun.get<std::string>() + call["function"]["arguments"].get<std::string>();
    }
  }
  choice["message"] = std::move(message);
  choice["token_ids"] = std::move(ids);
  choice["logprobs"]["content"] = std::move(logprobs);
  return choice;
}

const std::string kTwoCalls =
    "Look:\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": [1, 2]}}\n</tool_call>\n"
    "<tool_call>\n{\"name\": \"g\"}\n</tool_call>";

TEST(Generation, WritesToolCalls) {
  const Json choice = whole(kTwoCalls);
  const Json& message = choice["message"];
  EXPECT_EQ(choice["finish_reason"], "tool_calls");
  EXPECT_EQ(message["content"], "Look:\n");
  ASSERT_EQ(message["tool_calls"].size(), 2U);
  const Json& first = message["tool_calls"][0];
  EXPECT_EQ(first["type"], "function");
  EXPECT_EQ(first["function"], Json({{"name", "f"}, {"arguments", "{\"a\": [1, 2]}"}}));
  EXPECT_EQ(message["tool_calls"][1]["function"]["arguments"], "{}");
  const std::string id = first["id"];
  EXPECT_TRUE(id.starts_with("chatcmpl-tool-") && id.size() == 30) << id;
  EXPECT_NE(id, message["tool_calls"][1]["id"]);
  const Json alone = whole("<tool_call>{\"name\":\"f\"}</tool_call>");
  EXPECT_EQ(alone["message"]["content"], nullptr);
  EXPECT_FALSE(whole("Hi")["message"].contains("tool_calls"));
  EXPECT_EQ(whole("Hi")["finish_reason"], "stop");
  const std::string short_id = whole("[TOOL_CALLS]f[ARGS]{}", {.dialect = "mistral"})["message"]["tool_calls"][0]["id"];
  EXPECT_EQ(short_id.size(), 9U);
}

TEST(Generation, AStreamJoinsToTheWholeAnswer) {
  for (const std::string& text : {kTwoCalls, std::string("Hi <tool"), std::string("<tool_call>{\"name\":\"f\"}")})
    for (std::size_t at_once = 1; at_once <= 6; ++at_once) {
      const Asked asked{.at_once = at_once, .has_reasoning = true, .stream_interval = at_once % 2 == 0 ? 1 : 4};
      const Json one = whole(text, asked), other = joined(text, asked);
      EXPECT_EQ(other["finish_reason"], one["finish_reason"]) << text;
      EXPECT_EQ(other["token_ids"], one["token_ids"]) << text;
      EXPECT_EQ(other["logprobs"], one["logprobs"]) << text;
      EXPECT_EQ(other["message"]["tool_calls"], one["message"].value("tool_calls", Json::array())) << text;
      const Json content = one["message"]["content"];
      EXPECT_EQ(other["message"]["content"], content.is_null() ? Json("") : content) << text;
    }
}

TEST(Generation, AStreamSendsAsManyTokensTogetherAsAsked) {
  const auto reply =
      answered("<think>abc</think>defgh", true, {.at_once = 1, .has_reasoning = true, .stream_interval = 6});
  std::vector<std::size_t> counts;
  for (const Json& event : reply->events) {
    const Json ids = event["choices"][0].value("token_ids", Json::array());
    if (!ids.empty()) counts.push_back(ids.size());
  }
  EXPECT_EQ(counts, (std::vector<std::size_t>{1, 6, 6, 6, 4})) << "the first event is sent at once";
}

// What began as a call and is cut is content of an answer in one piece.
TEST(Generation, ACutCallEndsWithTheReasonLength) {
  const std::string cut = "<tool_call>{\"name\":\"f\",\"arguments\":{\"a\":";
  const Asked asked{.finished = FinishReason::length};
  const Json one = whole(cut, asked), other = joined(cut, asked);
  EXPECT_EQ(one["finish_reason"], "length");
  EXPECT_EQ(one["message"]["content"], cut);
  EXPECT_FALSE(one["message"].contains("tool_calls"));
  EXPECT_EQ(other["finish_reason"], "length");
  EXPECT_EQ(other["message"]["tool_calls"][0]["function"]["arguments"], "{\"a\":");
  EXPECT_EQ(whole(kTwoCalls, asked)["finish_reason"], "length") << "cut after the calls";
  EXPECT_EQ(whole(cut)["finish_reason"], "stop") << "there is no whole call";
  EXPECT_EQ(joined(cut)["finish_reason"], "stop");
}

TEST(Generation, ReturnsOneCallWhereSeveralAreNotAsked) {
  for (const bool streams : {false, true}) {
    const Json choice = streams ? joined(kTwoCalls, {.has_one_call = true}) : whole(kTwoCalls, {.has_one_call = true});
    EXPECT_EQ(choice["message"]["tool_calls"].size(), 1U);
    EXPECT_EQ(choice["finish_reason"], "tool_calls");
  }
}

TEST(Generation, AnswersThatMustBeCalls) {
  const Json named = whole("{\"a\":1}", {.choice = ToolChoice::Kind::named});
  EXPECT_EQ(named["finish_reason"], "stop");
  EXPECT_EQ(named["message"]["content"], "");
  EXPECT_EQ(named["message"]["tool_calls"][0]["function"], Json({{"name", "f"}, {"arguments", "{\"a\":1}"}}));
  const Json required = whole("[{\"name\": \"f\", \"arguments\": {\"a\":1}}]",
                              {.choice = ToolChoice::Kind::required, .dialect = "mistral"});
  EXPECT_EQ(required["finish_reason"], "tool_calls");
  EXPECT_EQ(required["message"]["content"], "");
  EXPECT_EQ(required["message"]["tool_calls"].size(), 1U);
}

// Cut anywhere, also within a marker.
TEST(Generation, ACutCallStaysACallWhereTheAnswerMustBeOne) {
  const std::string hermes = kTwoCalls.substr(kTwoCalls.find('<'));
  const std::pair<std::string, const char*> answers[] = {
      {hermes, "hermes"}, {"[{\"name\": \"f\", \"arguments\": {\"a\":1}}, {\"name\": \"g\"", "mistral"}};
  for (const auto& [text, dialect] : answers)
    for (std::size_t length = 1; length < text.size(); ++length) {
      const Asked asked{.choice = ToolChoice::Kind::required, .finished = FinishReason::length, .dialect = dialect};
      const std::string cut = text.substr(0, length);
      const Json one = whole(cut, asked), other = joined(cut, asked);
      EXPECT_EQ(one["finish_reason"], "length") << cut;
      EXPECT_EQ(one["message"]["content"], "") << cut;
      EXPECT_EQ(other["message"]["content"], "") << cut;
      EXPECT_EQ(other["message"]["tool_calls"], one["message"].value("tool_calls", Json::array())) << cut;
    }
}

TEST(Generation, WritesReasoningBesideTheContent) {
  const std::string text = "<think>\nHm.\n</think>\n\nYes";
  const Asked asked{.has_reasoning = true};
  const Json message = whole(text, asked)["message"];
  EXPECT_EQ(message["reasoning"], "Hm.");
  EXPECT_EQ(message["content"], "Yes");
  EXPECT_EQ(joined(text, asked)["message"]["reasoning"], "Hm.");
  EXPECT_EQ(joined(text, asked)["message"]["content"], "Yes");
  EXPECT_EQ(whole("Yes", asked)["message"]["reasoning"], nullptr);
}

}  // namespace weft::generation_test
