#include "server/answer_blocks.h"

#include <utility>

#include "base/content_hash.h"

namespace weft {

void AnswerBlocks::take(const AnswerEvents& events, const std::optional<TokenLogprobs>& logprobs) {
  ++waiting_tokens_;
  if (logprobs) hold_logprobs(*logprobs);
  for (const AnswerEvent& event : events) add(event);
  if (events.empty()) return;
  count_tokens(events.back().kind);
  attach_logprobs();
}

void AnswerBlocks::finish(const AnswerEvents& events, bool is_cut) {
  for (const AnswerEvent& event : events) add(event);
  if (!events.empty()) is_reasoning_ = events.back().kind == AnswerEvent::Kind::reasoning;
  if (is_reasoning_) reasoning_tokens_ += waiting_tokens_;
  attach_logprobs();
  end(!is_cut);
}

void AnswerBlocks::count_tokens(AnswerEvent::Kind last) {
  is_reasoning_ = last == AnswerEvent::Kind::reasoning;
  const std::int64_t tokens = std::exchange(waiting_tokens_, 0);
  if (is_reasoning_) reasoning_tokens_ += tokens;
}

void AnswerBlocks::add(const AnswerEvent& event) {
  using Event = AnswerEvent::Kind;
  switch (event.kind) {
    case Event::content:
      return add_text(Kind::text, event.text);
    case Event::reasoning:
      if (options_.shows_reasoning) add_text(Kind::reasoning, event.text);
      return;
    case Event::call_begin:
      return begin(Kind::call, event.text);
    case Event::call_arguments:
      open_.text += event.text;
      return;
    case Event::call_end:
      return end(true);
    case Event::call_broken:
      return take_broken_call(event);
  }
}

void AnswerBlocks::take_broken_call(const AnswerEvent& event) {
  // If all of it is unsent, no call has begun.
  if (event.unsent.size() < event.text.size()) end(false);
  add_text(Kind::text, event.unsent);
}

void AnswerBlocks::add_text(Kind kind, std::string_view text) {
  if (text.empty()) return;
  if (open_.kind != kind) begin(kind);
  open_.text += text;
}

void AnswerBlocks::begin(Kind kind, std::string_view name) {
  end(true);
  open_ = {.kind = kind, .name = std::string(name), .text = ""};
  begun();
}

// Nothing is done if no block is open.
void AnswerBlocks::end(bool is_whole) {
  if (open_.kind == Kind::none) return;
  flush();
  ended(is_whole);
  has_whole_call_ |= open_.kind == Kind::call && is_whole;
  ++block_count_;
  drop_open();
}

void AnswerBlocks::drop_open() {
  open_ = {};
  sent_text_ = 0;
}

void AnswerBlocks::flush() {
  if (!sends_ || open_.kind == Kind::none) return;
  send_more(open_.text.substr(std::exchange(sent_text_, open_.text.size())));
}

std::string AnswerBlocks::new_id(std::string_view what) const {
  ContentHasher hasher;
  hasher.add(options_.random_bits).add(static_cast<std::uint64_t>(block_count_)).add(what);
  return hasher.finish().hex();
}

std::string AnswerBlocks::new_call_id(const std::string& prefix) const {
  const std::string id = new_id("call");
  return options_.has_short_ids ? id.substr(0, 9) : prefix + id;
}

}  // namespace weft
