#include "server/responses_output.h"

#include <utility>

namespace weft {

void ResponsesOutput::hold_logprobs(const TokenLogprobs& logprobs) {
  if (options_.has_logprobs) held_logprobs_.push_back(logprobs);
}

// Only the text of messages has log probabilities.
void ResponsesOutput::attach_logprobs() {
  const std::vector<TokenLogprobs> tokens = std::exchange(held_logprobs_, {});
  if (open().kind != Kind::text || tokens.empty()) return;
  std::int64_t text_offset = 0;
  Json list = logprobs_json(options_.logprobs, tokens, text_offset)["content"];
  for (Json& one : list) logprobs_.push_back(std::move(one));
}

void ResponsesOutput::begun() {
  const Kind kind = open().kind;
  id_ = (kind == Kind::reasoning ? "rs_" : kind == Kind::text ? "msg_" : "fc_") + new_id("item");
  call_id_ = kind == Kind::call ? new_call_id("call_") : "";
  logprobs_ = Json::array();
  sent_logprobs_ = 0;
  send("response.output_item.added", {{"item", item("in_progress", false)}});
  if (kind != Kind::call) send_part("response.content_part.added", {{"part", part("", Json::array())}});
}

void ResponsesOutput::ended(bool is_whole) {
  const Kind kind = open().kind;
  const std::string& text = open().text;
  // The events that repeat the text leave out its log probabilities, which the deltas and the response have.
  const Json none = Json::array();
  if (kind == Kind::call) {
    send("response.function_call_arguments.done", {{"item_id", id_}, {"arguments", text}});
  } else if (kind == Kind::reasoning) {
    send_part("response.reasoning_text.done", {{"text", text}});
  } else {
    send_part("response.output_text.done", {{"text", text}, {"logprobs", none}});
  }
  if (kind != Kind::call) send_part("response.content_part.done", {{"part", part(text, none)}});
  Json whole = item(is_whole ? "completed" : "incomplete", true);
  if (send_) {
    Json shown = whole;
    if (kind == Kind::text) shown["content"][0]["logprobs"] = none;
    send("response.output_item.done", {{"item", std::move(shown)}});
  }
  items_.push_back(std::move(whole));
}

void ResponsesOutput::send_more(const std::string& text) {
  if (text.empty() && logprobs_.size() == sent_logprobs_) return;
  if (open().kind == Kind::call)
    return send("response.function_call_arguments.delta", {{"item_id", id_}, {"delta", text}});
  if (open().kind == Kind::reasoning) return send_part("response.reasoning_text.delta", {{"delta", text}});
  Json logprobs = Json::array();
  for (; sent_logprobs_ < logprobs_.size(); ++sent_logprobs_) logprobs.push_back(logprobs_[sent_logprobs_]);
  send_part("response.output_text.delta", {{"delta", text}, {"logprobs", std::move(logprobs)}});
}

Json ResponsesOutput::item(const char* status, bool has_content) const {
  Json json{{"id", id_}};
  switch (open().kind) {
    case Kind::call:
      json["type"] = "function_call";
      json["status"] = status;
      json["arguments"] = has_content ? open().text : "";
      json["call_id"] = call_id_;
      json["name"] = open().name;
      return json;
    case Kind::reasoning:
      json["type"] = "reasoning";
      json["status"] = status;
      json["summary"] = Json::array();
      break;
    default:
      json["type"] = "message";
      json["status"] = status;
      json["role"] = "assistant";
  }
  json["content"] = Json::array();
  if (has_content) json["content"].push_back(part(open().text, logprobs_));
  if (open().kind == Kind::reasoning) json["encrypted_content"] = nullptr;
  return json;
}

Json ResponsesOutput::part(const std::string& text, const Json& logprobs) const {
  if (open().kind == Kind::reasoning) return {{"type", "reasoning_text"}, {"text", text}};
  return {{"type", "output_text"}, {"annotations", Json::array()}, {"logprobs", logprobs}, {"text", text}};
}

void ResponsesOutput::send_part(const char* type, Json members) const {
  Json all{{"item_id", id_}, {"content_index", 0}};
  all.update(members);
  send(type, std::move(all));
}

void ResponsesOutput::send(const char* type, Json members) const {
  if (!send_) return;
  Json event{{"type", type}, {"output_index", items_.size()}};
  event.update(members);
  send_(std::move(event));
}

}  // namespace weft
