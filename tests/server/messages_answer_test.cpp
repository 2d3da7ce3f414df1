// A message from its tokens, in one piece and as a stream, without a socket or an engine.

#include "server/messages_answer.h"

#include <gtest/gtest.h>

#include "server/tool_calls/dialects.h"
#include "tests/server/recorded_reply.h"

namespace weft::messages_answer_test {

struct Asked {
  RequestEvent last = {.finished = FinishReason::stop};
  std::size_t at_once = 3;
  bool has_reasoning = false;
  std::int64_t max_tokens = 1;
  std::int64_t stream_interval = 1;
  const char* dialect = "hermes";
  ToolChoice::Kind choice = ToolChoice::Kind::automatic;
  bool is_aborted = false;  // in place of the last token
};

const Json kTools = parse_json(R"([{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}])");

// Runs an answer of this text.
std::shared_ptr<RecordedReply> answered(const std::string& text, bool streams, const Asked& asked) {
  PreparedRequest prepared;
  prepared.request.endpoint = anthropic_messages;
  prepared.request.stream = streams;
  prepared.request.stream_interval = asked.stream_interval;
  prepared.request.max_tokens = asked.max_tokens;
  prepared.request.tools = kTools;
  prepared.parameters.stop = {"END", "STOP"};
  prepared.form.dialect = find_dialect(asked.dialect);
  prepared.form.tool_choice = {.kind = asked.choice, .function = "f"};
  if (asked.has_reasoning) prepared.form.reasoning = find_reasoning_format("think");
  prepared.prompts.push_back({"", std::make_shared<const std::vector<int>>(5, 1)});
  ServedModel model;
  model.names = {"m"};
  const auto reply = std::make_shared<RecordedReply>();
  MessagesAnswer answer(std::move(prepared), model, "ID", 5, reply);
  EXPECT_EQ(answer.begin(7).size(), 1U);
  for (std::size_t at = 0; at < text.size(); at += asked.at_once) {
    const bool is_last = at + asked.at_once >= text.size();
    if (is_last && asked.is_aborted) {
      for (int i = 0; i < 4; ++i) answer.keep_alive();
      answer.abort();
      break;
    }
    RequestEvent event = is_last ? asked.last : RequestEvent();
    event.text = text.substr(at, asked.at_once);
    event.error = "no memory";
    event.cached_tokens = 2;
    answer.take({.ticket = 5, .event = event});
  }
  EXPECT_TRUE(answer.is_over());
  for (std::size_t i = 0; i < reply->events.size(); ++i) EXPECT_EQ(reply->names[i], reply->events[i]["type"]);
  return reply;
}

Json whole(const std::string& text, const Asked& asked = {}) { return parse_json(answered(text, false, asked)->body); }

// What a client joins from a stream. Each event must fit to those before it.
class JoinedMessage {
 public:
  void take(const Json& event) {
    const std::string type = event["type"];
    if (type == "message_start") {
      message_ = event["message"];
      EXPECT_EQ(message_["content"], Json::array());
      EXPECT_EQ(message_["stop_reason"], nullptr);
      EXPECT_EQ(message_["usage"]["cache_read_input_tokens"], 2);
    } else if (type == "content_block_start") {
      EXPECT_FALSE(is_open_);
      EXPECT_EQ(event["index"], message_["content"].size());
      is_open_ = true;
      input_.clear();
      message_["content"].push_back(event["content_block"]);
    } else if (type == "content_block_delta") {
      EXPECT_TRUE(is_open_);
      EXPECT_EQ(event["index"], message_["content"].size() - 1);
      add(event["delta"], message_["content"].back());
    } else if (type == "content_block_stop") {
      EXPECT_TRUE(is_open_);
      is_open_ = false;
      Json& block = message_["content"].back();
      if (block["type"] == "tool_use") block["input"] = input_.empty() ? Json::object() : parse_json(input_);
    } else if (type == "message_delta") {
      EXPECT_FALSE(is_open_);
      message_.update(event["delta"]);
      message_["usage"].update(event["usage"]);
    } else {
      EXPECT_TRUE(type == "ping" || type == "message_stop" || type == "error") << type;
    }
  }
  const Json& message() const { return message_; }

 private:
  void add(const Json& delta, Json& block) {
    const std::string kind = delta["type"];
    if (kind == "input_json_delta") {
      EXPECT_EQ(block["type"], "tool_use");
      input_ += delta["partial_json"].get<std::string>();
      return;
    }
    const char* key = kind == "text_delta" ? "text" : kind == "thinking_delta" ? "thinking" : "signature";
    block[key] = block[key].get<std::string>() + delta[key].get<std::string>();
  }

  Json message_;
  std::string input_;
  bool is_open_ = false;
};

Json streamed(const std::string& text, const Asked& asked = {}) {
  const auto reply = answered(text, true, asked);
  EXPECT_TRUE(reply->has_ended);
  EXPECT_EQ(reply->names.front(), "message_start");
  EXPECT_EQ(reply->names[1], "ping");
  EXPECT_EQ(reply->names.back(), "message_stop");
  EXPECT_EQ(reply->names[reply->names.size() - 2], "message_delta");
  JoinedMessage joined;
  for (const Json& event : reply->events) joined.take(event);
  return joined.message();
}

const std::string kAllBlocks =
    "<think>\nHm.\n</think>\nLook:\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": [1, 2]}}\n</tool_call>\n"
    "<tool_call>\n{\"name\": \"g\"}\n</tool_call>";

TEST(MessagesAnswer, HasBlocksInTheirOrder) {
  const Json message = whole(kAllBlocks, {.has_reasoning = true});
  EXPECT_EQ(message["id"], "msg_ID");
  EXPECT_EQ(message["type"], "message");
  EXPECT_EQ(message["role"], "assistant");
  EXPECT_EQ(message["model"], "m");
  EXPECT_EQ(message["stop_reason"], "tool_use");
  EXPECT_EQ(message["stop_sequence"], nullptr);
  const Json& content = message["content"];
  ASSERT_EQ(content.size(), 4U) << content.dump(1);
  EXPECT_EQ(content[0]["type"], "thinking");
  EXPECT_EQ(content[0]["thinking"], "Hm.");
  EXPECT_FALSE(content[0]["signature"].get<std::string>().empty());
  EXPECT_EQ(content[1], parse_json(R"({"type":"text","text":"Look:\n"})"));
  EXPECT_EQ(content[2]["type"], "tool_use");
  EXPECT_EQ(content[2]["name"], "f");
  EXPECT_EQ(content[2]["input"], parse_json(R"({"a":[1,2]})"));
  EXPECT_EQ(content[3]["input"], Json::object());
  EXPECT_TRUE(content[2]["id"].get<std::string>().starts_with("toolu_"));
  EXPECT_NE(content[2]["id"], content[3]["id"]);
  const Json short_id = whole("[TOOL_CALLS]f[ARGS]{}", {.dialect = "mistral"})["content"][0]["id"];
  EXPECT_EQ(short_id.get<std::string>().size(), 9U);
}

TEST(MessagesAnswer, CountsTokens) {
  const std::string text = "<think>abc</think>defg";
  const Json usage = whole(text, {.at_once = 1, .has_reasoning = true})["usage"];
  EXPECT_EQ(usage["input_tokens"], 3) << "without those of the prefix cache";
  EXPECT_EQ(usage["cache_read_input_tokens"], 2);
  EXPECT_EQ(usage["cache_creation_input_tokens"], 0);
  EXPECT_EQ(usage["output_tokens"], text.size());
  EXPECT_EQ(usage["output_tokens_details"]["thinking_tokens"], 10);
}

TEST(MessagesAnswer, AStreamJoinsToTheWholeAnswer) {
  const std::string texts[] = {"Hi", kAllBlocks, "<tool_call>\n{\"name\": 3}</tool_call>", "<think>\nHm",
                               "<tool_call>{\"name\":\"f\",\"arguments\":{\"a\":\"<tool_call>\"}}</tool_call>ab"};
  for (const std::string& text : texts)
    for (const std::size_t at_once : {1, 2, 5, 1000})
      for (const std::int64_t interval : {1, 4})
        for (const FinishReason finished : {FinishReason::stop, FinishReason::length}) {
          const Asked asked{
              .last = {.finished = finished}, .at_once = at_once, .has_reasoning = true, .stream_interval = interval};
          EXPECT_EQ(streamed(text, asked), whole(text, asked)) << text << at_once;
        }
}

TEST(MessagesAnswer, SaysWhyItEnds) {
  EXPECT_EQ(whole("abc")["stop_reason"], "end_turn");
  const Json stopped = whole("abc", {.last = {.finished = FinishReason::stop, .stop_text = 1}});
  EXPECT_EQ(stopped["stop_reason"], "stop_sequence");
  EXPECT_EQ(stopped["stop_sequence"], "STOP");
  const Json streamed_stop = streamed("abc", {.last = {.finished = FinishReason::stop, .stop_text = 0}});
  EXPECT_EQ(streamed_stop["stop_sequence"], "END");
  EXPECT_EQ(whole("abc", {.last = {.finished = FinishReason::stop, .stop_id = 4}})["stop_reason"], "end_turn");
  EXPECT_EQ(whole("abc", {.last = {.finished = FinishReason::length}})["stop_reason"], "max_tokens");
  EXPECT_EQ(whole("abc", {.last = {.finished = FinishReason::length}, .max_tokens = 2})["stop_reason"],
            "model_context_window_exceeded");
}

TEST(MessagesAnswer, ACallThatIsCutIsNoToolUseInOnePiece) {
  const std::string cut = "a<tool_call>{\"name\":\"f\",\"arguments\":{\"a";
  const Asked asked{.last = {.finished = FinishReason::length}};
  const Json message = whole(cut, asked);
  EXPECT_EQ(message["stop_reason"], "max_tokens");
  std::string text;
  for (const Json& block : message["content"]) {
    EXPECT_EQ(block["type"], "text") << block;
    text += block["text"].get<std::string>();
  }
  EXPECT_EQ(text, cut);
  const auto reply = answered(cut, true, asked);
  EXPECT_EQ(reply->events[reply->events.size() - 2]["delta"]["stop_reason"], "max_tokens");
  const Json broken =
      whole("<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1, b}}\n</tool_call> z", {.at_once = 1});
  EXPECT_EQ(broken["stop_reason"], "end_turn");
  EXPECT_EQ(broken["content"][0]["type"], "text");
  const Json must = whole("<tool_call>{\"name\":\"f\",\"arguments\":{\"a",
                          {.last = {.finished = FinishReason::length}, .choice = ToolChoice::Kind::required});
  for (const Json& block : must["content"]) EXPECT_EQ(block["type"], "text") << block;
  EXPECT_EQ(must["stop_reason"], "max_tokens");
}

TEST(MessagesAnswer, AStreamThatFailsEndsWithAnError) {
  const auto failed = answered("abcdef", true, {.last = {.finished = FinishReason::failed}});
  EXPECT_TRUE(failed->has_ended);
  EXPECT_EQ(failed->events.back()["error"]["type"], "api_error");
  EXPECT_EQ(failed->body, "");
  EXPECT_EQ(failed->events.back().dump().find("memory"), std::string::npos);
  const auto aborted = answered("abcdef", true, {.is_aborted = true});
  EXPECT_EQ(aborted->events.back()["type"], "error");
  EXPECT_EQ(aborted->events.back()["error"]["type"], "overloaded_error");
  EXPECT_EQ(answered("a", true, {.is_aborted = true})->names.front(), "message_start") << "a comment was sent before";
  const Json whole_failure = whole("abc", {.last = {.finished = FinishReason::failed}});
  EXPECT_EQ(whole_failure["type"], "error");
  EXPECT_EQ(whole_failure["error"]["type"], "api_error");
}

}  // namespace weft::messages_answer_test
