#include "server/messages_output.h"

namespace weft {

void MessagesOutput::begun() { send("content_block_start", {{"content_block", block()}}); }

void MessagesOutput::send_more(const std::string& text) {
  if (text.empty()) return;
  Json delta;
  switch (open().kind) {
    case Kind::reasoning:
      delta = {{"type", "thinking_delta"}, {"thinking", text}};
      break;
    case Kind::call:
      delta = {{"type", "input_json_delta"}, {"partial_json", text}};
      break;
    default:
      delta = {{"type", "text_delta"}, {"text", text}};
  }
  send("content_block_delta", {{"delta", std::move(delta)}});
}

// The open block without its text. Clients send the signature of a thinking back, and nothing reads it.
Json MessagesOutput::block() const {
  switch (open().kind) {
    case Kind::reasoning:
      return {{"type", "thinking"}, {"thinking", ""}, {"signature", ""}};
    case Kind::call:
      return {{"type", "tool_use"}, {"id", new_call_id("toolu_")}, {"name", open().name}, {"input", Json::object()}};
    default:
      return {{"type", "text"}, {"text", ""}};
  }
}

void MessagesOutput::ended(bool is_whole) {
  const Block& open = this->open();
  if (sends()) {
    if (open.kind == Kind::reasoning)
      send("content_block_delta", {{"delta", {{"type", "signature_delta"}, {"signature", new_id("signature")}}}});
    send("content_block_stop", Json::object());
    ++count_;
    return;
  }
  Json whole = block();
  if (open.kind == Kind::call) {
    whole["input"] = open.text.empty() ? Json::object() : parse_json(open.text);
    // An input is an object: what is none must not look like a call.
    if (!is_whole || !whole["input"].is_object()) whole = {{"type", "text"}, {"text", open.text}};
  } else if (open.kind == Kind::reasoning) {
    whole["thinking"] = open.text;
    whole["signature"] = new_id("signature");
  } else {
    whole["text"] = open.text;
  }
  content_.push_back(std::move(whole));
}

// In one piece the text of the call is all there; a stream has sent the begin of its input.
void MessagesOutput::take_broken_call(const AnswerEvent& event) {
  if (sends()) return AnswerBlocks::take_broken_call(event);
  if (open().kind == Kind::call) drop_open();
  add_text(Kind::text, event.text);
}

void MessagesOutput::send(const char* type, Json members) const {
  if (!send_) return;
  Json event{{"type", type}, {"index", count_}};
  event.update(members);
  send_(std::move(event));
}

}  // namespace weft
