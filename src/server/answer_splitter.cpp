#include "server/answer_splitter.h"

namespace weft {

AnswerSplitter::AnswerSplitter(std::optional<ReasoningParser> reasoning, std::unique_ptr<ToolParser> tools, Calls calls)
    : reasoning_(std::move(reasoning)), tools_(std::move(tools)), calls_(calls) {}

AnswerEvents AnswerSplitter::push(std::string_view text) {
  AnswerEvents events;
  if (reasoning_) {
    std::string answer;
    reasoning_->push(text, events, answer);
    take_answer(answer, events);
  } else {
    take_answer(text, events);
  }
  drop_other_events(events);
  return events;
}

AnswerEvents AnswerSplitter::finish() {
  AnswerEvents events;
  std::string answer;
  if (reasoning_) reasoning_->finish(events, answer);
  take_answer(answer, events);
  if (tools_) tools_->finish(events);
  drop_other_events(events);
  return events;
}

void AnswerSplitter::take_answer(std::string_view text, AnswerEvents& events) {
  if (tools_) return tools_->push(text, events);
  add_text(events, AnswerEvent::Kind::content, text);
}

void AnswerSplitter::drop_other_events(AnswerEvents& events) {
  using Kind = AnswerEvent::Kind;
  std::erase_if(events, [&](const AnswerEvent& event) {
    // Where an answer must be a call, other text is that of a call which is cut.
    if (calls_.must && (event.kind == Kind::call_broken || event.kind == Kind::content)) return true;
    const bool is_text = event.kind == Kind::content || event.kind == Kind::reasoning;
    if (calls_.one && has_call_ && !is_text) return true;
    has_call_ |= event.kind == Kind::call_end;
    return false;
  });
}

}  // namespace weft
