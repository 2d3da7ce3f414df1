// A response from its tokens, in one piece and as a stream, without a socket or an engine.

#include "server/responses_answer.h"

#include <gtest/gtest.h>

#include "server/tool_calls/dialects.h"
#include "tests/server/recorded_reply.h"

namespace weft::responses_answer_test {

struct Asked {
  FinishReason finished = FinishReason::stop;
  std::size_t at_once = 3;
  bool has_reasoning = false, shows_reasoning = true;
  std::int64_t stream_interval = 1;
  const char* dialect = "hermes";
  bool is_aborted = false;  // in place of the last token
};

// Runs an answer of this text.
std::shared_ptr<RecordedReply> answered(const std::string& text, bool streams, const Asked& asked) {
  PreparedRequest prepared;
  prepared.request.endpoint = responses;
  prepared.request.stream = streams;
  prepared.request.stream_interval = asked.stream_interval;
  prepared.request.wants_logprobs = true;
  prepared.request.repeated["metadata"] = {{"a", "b"}};
  prepared.form.dialect = find_dialect(asked.dialect);
  prepared.form.shows_reasoning = asked.shows_reasoning;
  if (asked.has_reasoning) prepared.form.reasoning = find_reasoning_format("think");
  prepared.prompts.push_back({"", std::make_shared<const std::vector<int>>(3, 1)});
  ServedModel model;
  model.names = {"m"};
  const auto reply = std::make_shared<RecordedReply>();
  ResponsesAnswer answer(std::move(prepared), model, "ID", 5, reply);
  EXPECT_EQ(answer.begin(7).size(), 1U);
  for (std::size_t at = 0; at < text.size(); at += asked.at_once) {
    const bool is_last = at + asked.at_once >= text.size();
    if (is_last && asked.is_aborted) {
      for (int i = 0; i < 4; ++i) answer.keep_alive();
      answer.abort();
      break;
    }
    answer.take(
        {.ticket = 5,
         .event = {.token = static_cast<int>(at),
                   .text = text.substr(at, asked.at_once),
                   .finished = is_last ? asked.finished : FinishReason::none,
                   .error = "no memory",
                   .cached_tokens = 2,
                   .logprobs = TokenLogprobs{.chosen = {.id = static_cast<int>(at), .logprob = -1}, .rank = 1}}});
  }
  EXPECT_TRUE(answer.is_over());
  for (std::size_t i = 0; i < reply->events.size(); ++i) EXPECT_EQ(reply->names[i], reply->events[i]["type"]);
  return reply;
}

Json whole(const std::string& text, const Asked& asked = {}) { return parse_json(answered(text, false, asked)->body); }

void append(Json& text, const Json& delta) { text = text.get<std::string>() + delta.get<std::string>(); }

// What a client joins from the events of items. Each event must fit to those before it.
class JoinedItems {
 public:
  void take(const Json& event) {
    const std::string type = event["type"];
    if (type == "response.output_item.added") return add(event);
    Json& item = items_.at(event["output_index"].get<std::size_t>());
    if (type == "response.output_item.done") {
      if (item["type"] == "message") item["content"][0]["logprobs"] = event["item"]["content"][0]["logprobs"];
      item["status"] = event["item"]["status"];
      EXPECT_EQ(item, event["item"]);
      return;
    }
    EXPECT_EQ(event["item_id"], item["id"]);
    if (type.starts_with("response.function_call_arguments.")) {
      if (type.ends_with("delta")) return append(item["arguments"], event["delta"]);
      EXPECT_EQ(event["arguments"], item["arguments"]);
    } else if (type == "response.content_part.added") {
      item["content"].push_back(event["part"]);
    } else if (type.ends_with(".delta")) {
      append(item["content"][0]["text"], event["delta"]);
      if (event.contains("logprobs"))
        for (const Json& one : event["logprobs"]) logprobs_.push_back(one);
    } else {
      EXPECT_EQ(type == "response.content_part.done" ? event["part"]["text"] : event["text"],
                item["content"][0]["text"]);
    }
  }

  const Json& items() const { return items_; }
  const Json& logprobs() const { return logprobs_; }

 private:
  void add(const Json& event) {
    EXPECT_EQ(event["output_index"], items_.size());
    EXPECT_EQ(event["item"]["status"], "in_progress");
    items_.push_back(event["item"]);
  }

  Json items_ = Json::array(), logprobs_ = Json::array();
};

// The log probabilities of all messages, which leave the items.
Json taken_logprobs(Json& items) {
  Json all = Json::array();
  for (Json& item : items)
    if (item["type"] == "message")
      for (const Json& one : std::exchange(item["content"][0]["logprobs"], Json::array())) all.push_back(one);
  return all;
}

// Compares a stream with the answer in one piece, and returns its last response.
Json streamed(const std::string& text, const Asked& asked = {}) {
  const auto reply = answered(text, true, asked);
  EXPECT_TRUE(reply->has_ended);
  JoinedItems joined;
  for (std::size_t i = 0; i < reply->events.size(); ++i) {
    EXPECT_EQ(reply->events[i]["sequence_number"], i);
    if (reply->events[i].contains("response")) {
      EXPECT_EQ(reply->events[i]["type"] == "response.created", i == 0);
      EXPECT_EQ(reply->events[i]["type"] == "response.in_progress", i == 1);
      EXPECT_EQ(i > 1, i + 1 == reply->events.size());
    } else {
      joined.take(reply->events[i]);
    }
  }
  Json last = reply->events.back()["response"];
  EXPECT_EQ(reply->events.back()["type"], "response." + last["status"].get<std::string>());
  Json items = last["output"];
  EXPECT_EQ(taken_logprobs(items), joined.logprobs());
  EXPECT_EQ(items, joined.items()) << text;
  return last;
}

// Without the times.
Json timeless(Json response) {
  response.erase("created_at");
  response.erase("completed_at");
  return response;
}

const std::string kAllItems =
    "<think>\nHm.\n</think>\nLook:\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": [1, 2]}}\n</tool_call>\n"
    "<tool_call>\n{\"name\": \"g\"}\n</tool_call>";

TEST(ResponsesAnswer, HasItemsInTheirOrder) {
  const Json response = whole(kAllItems, {.has_reasoning = true});
  EXPECT_EQ(response["object"], "response");
  EXPECT_EQ(response["id"], "resp_ID");
  EXPECT_EQ(response["model"], "m");
  EXPECT_EQ(response["status"], "completed");
  EXPECT_EQ(response["incomplete_details"], nullptr);
  EXPECT_EQ(response["metadata"], Json({{"a", "b"}}));
  EXPECT_EQ(response["store"], false);
  const Json& output = response["output"];
  ASSERT_EQ(output.size(), 4U) << output.dump(1);
  EXPECT_EQ(output[0]["type"], "reasoning");
  EXPECT_EQ(output[0]["content"], parse_json(R"([{"type":"reasoning_text","text":"Hm."}])"));
  EXPECT_EQ(output[1]["role"], "assistant");
  EXPECT_EQ(output[1]["content"][0]["type"], "output_text");
  EXPECT_EQ(output[1]["content"][0]["text"], "Look:\n");
  EXPECT_FALSE(output[1]["content"][0]["logprobs"].empty());
  EXPECT_EQ(output[2]["name"], "f");
  EXPECT_EQ(output[2]["arguments"], "{\"a\": [1, 2]}");
  EXPECT_EQ(output[3]["arguments"], "{}");
  EXPECT_TRUE(output[2]["call_id"].get<std::string>().starts_with("call_"));
  EXPECT_NE(output[2]["call_id"], output[3]["call_id"]);
  for (const Json& item : output) EXPECT_EQ(item["status"], "completed");
  const Json short_id = whole("[TOOL_CALLS]f[ARGS]{}", {.dialect = "mistral"})["output"][0]["call_id"];
  EXPECT_EQ(short_id.get<std::string>().size(), 9U);
}

TEST(ResponsesAnswer, CountsTokens) {
  const std::string text = "<think>abc</think>defg";
  const Json usage = whole(text, {.at_once = 1, .has_reasoning = true})["usage"];
  EXPECT_EQ(usage["input_tokens"], 3);
  EXPECT_EQ(usage["input_tokens_details"]["cached_tokens"], 2);
  EXPECT_EQ(usage["output_tokens"], text.size());
  EXPECT_EQ(usage["output_tokens_details"]["reasoning_tokens"], 10) << "the first mark counts, and the text";
  EXPECT_EQ(usage["total_tokens"], 3 + text.size());
  EXPECT_EQ(whole("abc")["usage"]["output_tokens_details"]["reasoning_tokens"], 0);
  const Json cut = whole("<think>abc", {.at_once = 1, .has_reasoning = true})["usage"];
  EXPECT_EQ(cut["output_tokens_details"]["reasoning_tokens"], 10);
  const Json hidden = whole(text, {.at_once = 1, .has_reasoning = true, .shows_reasoning = false});
  EXPECT_EQ(hidden["usage"], usage);
  ASSERT_EQ(hidden["output"].size(), 1U);
  EXPECT_EQ(hidden["output"][0]["content"][0]["text"], "defg");
  EXPECT_EQ(hidden["output"][0]["content"][0]["logprobs"].size(), 12U) << "the second mark is before the text";
}

TEST(ResponsesAnswer, AStreamJoinsToTheWholeAnswer) {
  const std::string texts[] = {"Hi",
                               kAllItems,
                               "a\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1, b}}\n</tool_call> z",
                               "<tool_call>\n{\"name\": 3}</tool_call>",
                               "<think>\nHm",
                               "<tool_call>{\"name\":\"f\",\"arguments\":{\"a\":\"<tool_call>\"}}</tool_call>ab"};
  for (const std::string& text : texts) {
    for (const std::size_t at_once : {1, 2, 5, 1000})
      for (const std::int64_t interval : {1, 4})
        for (const FinishReason finished : {FinishReason::stop, FinishReason::length}) {
          const Asked asked{
              .finished = finished, .at_once = at_once, .has_reasoning = true, .stream_interval = interval};
          EXPECT_EQ(timeless(streamed(text, asked)), timeless(whole(text, asked))) << text << at_once;
        }
  }
}

TEST(ResponsesAnswer, AStreamSendsAsManyTokensTogetherAsAsked) {
  const auto reply = answered("abcdefghij", true, {.at_once = 1, .stream_interval = 4});
  std::vector<std::string> deltas;
  for (const Json& event : reply->events)
    if (event["type"] == "response.output_text.delta") deltas.push_back(event["delta"]);
  EXPECT_EQ(deltas, (std::vector<std::string>{"a", "bcde", "fghi", "j"}));
}

TEST(ResponsesAnswer, SaysWhatIsIncomplete) {
  const Json cut = whole("abc", {.finished = FinishReason::length});
  EXPECT_EQ(cut["status"], "incomplete");
  EXPECT_EQ(cut["incomplete_details"], Json({{"reason", "max_output_tokens"}}));
  EXPECT_EQ(cut["completed_at"], nullptr);
  EXPECT_EQ(cut["output"][0]["status"], "incomplete");
  const Json call =
      whole("<tool_call>{\"name\":\"f\",\"arguments\":{\"a", {.finished = FinishReason::length})["output"][0];
  EXPECT_EQ(call["type"], "function_call");
  EXPECT_EQ(call["status"], "incomplete") << "a client must not call it";
}

TEST(ResponsesAnswer, AStreamThatFailsHasAResponse) {
  const Json failed = streamed("abcdef", {.finished = FinishReason::failed});
  EXPECT_EQ(failed["status"], "failed");
  EXPECT_EQ(failed["error"]["code"], "server_error");
  EXPECT_EQ(failed["error"]["message"].get<std::string>().find("memory"), std::string::npos);
  EXPECT_EQ(failed["output"][0]["content"][0]["text"], "abc");
  const Json aborted = streamed("abcdef", {.is_aborted = true});
  EXPECT_EQ(aborted["status"], "failed");
  EXPECT_EQ(aborted["error"]["message"], "the server is shutting down");
  EXPECT_EQ(streamed("a", {.is_aborted = true})["output"], Json::array()) << "a comment was sent before";
  EXPECT_EQ(whole("abc", {.finished = FinishReason::failed})["error"]["code"], 500);
}

}  // namespace weft::responses_answer_test
