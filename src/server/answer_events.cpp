#include "server/answer_events.h"

namespace weft {

void add_text(AnswerEvents& events, AnswerEvent::Kind kind, std::string_view text) {
  if (text.empty()) return;
  if (events.empty() || events.back().kind != kind) events.push_back({.kind = kind, .text = ""});
  events.back().text += text;
}

void AnswerParts::add(const AnswerEvent& event) {
  switch (event.kind) {
    case AnswerEvent::Kind::content:
      content += event.text;
      break;
    case AnswerEvent::Kind::reasoning:
      reasoning += event.text;
      break;
    case AnswerEvent::Kind::call_begin:
      calls.push_back({.name = event.text, .arguments = ""});
      break;
    case AnswerEvent::Kind::call_arguments:
      calls.back().arguments += event.text;
      break;
    case AnswerEvent::Kind::call_end:
      break;
    case AnswerEvent::Kind::call_broken:
      // If all of it is unsent, the call had no event.
      if (event.unsent.size() < event.text.size()) calls.pop_back();
      content += event.text;
      break;
  }
}

}  // namespace weft
