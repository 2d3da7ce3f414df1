#include "server/responses_output.h"

#include <utility>

#include "base/content_hash.h"

namespace weft {

void ResponsesOutput::take(const AnswerEvents& events, const std::optional<TokenLogprobs>& logprobs) {
  ++waiting_tokens_;
  if (options_.has_logprobs && logprobs) waiting_logprobs_.push_back(*logprobs);
  for (const AnswerEvent& event : events) add(event);
  if (events.empty()) return;
  count_tokens(events.back().kind);
  take_logprobs();
}

void ResponsesOutput::finish(const AnswerEvents& events, bool is_cut) {
  for (const AnswerEvent& event : events) add(event);
  if (!events.empty()) is_reasoning_ = events.back().kind == AnswerEvent::Kind::reasoning;
  if (is_reasoning_) reasoning_tokens_ += waiting_tokens_;
  take_logprobs();
  end(is_cut ? "incomplete" : "completed");
}

void ResponsesOutput::count_tokens(AnswerEvent::Kind last) {
  is_reasoning_ = last == AnswerEvent::Kind::reasoning;
  const std::int64_t tokens = std::exchange(waiting_tokens_, 0);
  if (is_reasoning_) reasoning_tokens_ += tokens;
}

// Only the text of messages has log probabilities.
void ResponsesOutput::take_logprobs() {
  const std::vector<TokenLogprobs> tokens = std::exchange(waiting_logprobs_, {});
  if (open_.kind != Kind::message || tokens.empty()) return;
  std::int64_t text_offset = 0;
  Json list = logprobs_json(options_.logprobs, tokens, text_offset)["content"];
  for (Json& one : list) open_.logprobs.push_back(std::move(one));
}

void ResponsesOutput::add(const AnswerEvent& event) {
  using Event = AnswerEvent::Kind;
  switch (event.kind) {
    case Event::content:
      return add_text(Kind::message, event.text);
    case Event::reasoning:
      if (options_.shows_reasoning) add_text(Kind::reasoning, event.text);
      return;
    case Event::call_begin:
      return begin(Kind::call, event.text);
    case Event::call_arguments:
      open_.text += event.text;
      return;
    case Event::call_end:
      return end("completed");
    case Event::call_broken:
      // If all of it is unsent, no call has begun.
      if (event.unsent.size() < event.text.size()) end("incomplete");
      return add_text(Kind::message, event.unsent);
  }
}

void ResponsesOutput::add_text(Kind kind, std::string_view text) {
  if (text.empty()) return;
  if (open_.kind != kind) begin(kind);
  open_.text += text;
}

void ResponsesOutput::begin(Kind kind, std::string_view name) {
  end("completed");
  open_ = {.kind = kind, .name = std::string(name)};
  open_.id = new_id(kind == Kind::reasoning ? "rs_" : kind == Kind::message ? "msg_" : "fc_", "item");
  if (kind == Kind::call) {
    const std::string id = new_id("", "call");
    open_.call_id = options_.has_short_ids ? id.substr(0, 9) : "call_" + id;
  }
  send("response.output_item.added", {{"item", item("in_progress", false)}});
  if (kind != Kind::call) send_part("response.content_part.added", {{"part", part("", Json::array())}});
}

// Nothing is done if no item is open.
void ResponsesOutput::end(const char* status) {
  if (open_.kind == Kind::none) return;
  flush();
  // The events that repeat the text leave out its log probabilities, which the deltas and the response have.
  const Json none = Json::array();
  if (open_.kind == Kind::call) {
    send("response.function_call_arguments.done", {{"item_id", open_.id}, {"arguments", open_.text}});
  } else if (open_.kind == Kind::reasoning) {
    send_part("response.reasoning_text.done", {{"text", open_.text}});
  } else {
    send_part("response.output_text.done", {{"text", open_.text}, {"logprobs", none}});
  }
  if (open_.kind != Kind::call) send_part("response.content_part.done", {{"part", part(open_.text, none)}});
  Json whole = item(status, true);
  if (send_) {
    Json shown = whole;
    if (open_.kind == Kind::message) shown["content"][0]["logprobs"] = none;
    send("response.output_item.done", {{"item", std::move(shown)}});
  }
  items_.push_back(std::move(whole));
  open_ = {};
  sent_text_ = sent_logprobs_ = 0;
}

void ResponsesOutput::flush() {
  if (!send_ || open_.kind == Kind::none) return;
  if (open_.text.size() == sent_text_ && open_.logprobs.size() == sent_logprobs_) return;
  const std::string delta = open_.text.substr(std::exchange(sent_text_, open_.text.size()));
  if (open_.kind == Kind::call)
    return send("response.function_call_arguments.delta", {{"item_id", open_.id}, {"delta", delta}});
  if (open_.kind == Kind::reasoning) return send_part("response.reasoning_text.delta", {{"delta", delta}});
  Json logprobs = Json::array();
  for (; sent_logprobs_ < open_.logprobs.size(); ++sent_logprobs_) logprobs.push_back(open_.logprobs[sent_logprobs_]);
  send_part("response.output_text.delta", {{"delta", delta}, {"logprobs", std::move(logprobs)}});
}

std::string ResponsesOutput::new_id(std::string_view prefix, std::string_view what) const {
  ContentHasher hasher;
  hasher.add(options_.random_bits).add(static_cast<std::uint64_t>(items_.size())).add(what);
  return std::string(prefix) + hasher.finish().hex();
}

Json ResponsesOutput::item(const char* status, bool has_content) const {
  Json json{{"id", open_.id}};
  switch (open_.kind) {
    case Kind::call:
      json["type"] = "function_call";
      json["status"] = status;
      json["arguments"] = has_content ? open_.text : "";
      json["call_id"] = open_.call_id;
      json["name"] = open_.name;
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
  if (has_content) json["content"].push_back(part(open_.text, open_.logprobs));
  if (open_.kind == Kind::reasoning) json["encrypted_content"] = nullptr;
  return json;
}

Json ResponsesOutput::part(const std::string& text, const Json& logprobs) const {
  if (open_.kind == Kind::reasoning) return {{"type", "reasoning_text"}, {"text", text}};
  return {{"type", "output_text"}, {"annotations", Json::array()}, {"logprobs", logprobs}, {"text", text}};
}

void ResponsesOutput::send_part(const char* type, Json members) const {
  Json all{{"item_id", open_.id}, {"content_index", 0}};
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
