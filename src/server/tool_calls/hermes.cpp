// <tool_call>
// {"name": "f", "arguments": {..}}
// </tool_call>
// Hermes, Qwen 2.5 and Qwen 3 write it so, with any text before and after each call.

#include "server/tool_calls/call_scanner.h"
#include "server/tool_calls/dialects.h"
#include "server/tool_calls/text_scanner.h"

namespace weft {
namespace {

constexpr std::string_view kBegin = "<tool_call>", kEnd = "</tool_call>";

class HermesParser final : public ToolParser {
 public:
  void finish(AnswerEvents& events) override {
    if (state_ == State::before_call) text_.put(written_, events);
    if (state_ == State::call) call_.cut(events);
    text_.finish(events, !has_call_);
  }

 private:
  enum class State : std::uint8_t { text, before_call, call };

  void take(char c, AnswerEvents& events) override {
    switch (state_) {
      case State::text:
        return take_text(c, events);
      case State::before_call:
        return take_before_call(c, events);
      case State::call:
        return take_call(c, events);
    }
  }

  void take_text(char c, AnswerEvents& events) {
    const int marker = text_.push(c, events);
    if (marker == 0) {
      state_ = State::before_call;
      written_ = kBegin;
    } else if (marker == 1 && !(is_after_call_ && text_.is_blank())) {
      text_.put(kEnd, events);
    } else if (marker == 1) {
      is_after_call_ = false;
      text_.begin_text();
    }
  }

  void take_before_call(char c, AnswerEvents& events) {
    if (c == '{') {
      state_ = State::call;
      call_.begin(written_);
      return take_call(c, events);
    }
    if (is_json_space(c)) {
      written_ += c;
      return;
    }
    state_ = State::text;
    text_.put(written_, events);
    take_text(c, events);
  }

  void take_call(char c, AnswerEvents& events) {
    const CallScanner::Status status = call_.push(c, events);
    if (status == CallScanner::Status::open) return;
    state_ = State::text;
    is_after_call_ = status == CallScanner::Status::complete;
    has_call_ |= is_after_call_;
    if (is_after_call_) text_.begin_text();
  }

  State state_ = State::text;
  TextScanner text_{AnswerEvent::Kind::content, {kBegin, kEnd}};
  CallScanner call_;
  std::string written_;
  bool is_after_call_ = false, has_call_ = false;
};

std::unique_ptr<ToolParser> hermes_parser() { return std::make_unique<HermesParser>(); }
std::unique_ptr<ToolParser> hermes_parser_of(const Json&) { return hermes_parser(); }

// The dialects of other models that write their own form between the same markers come before this one.
bool is_hermes(std::string_view chat_template, const Vocabulary&) {
  return chat_template.find(kBegin) != std::string_view::npos;
}

bool is_any(std::string_view, const Vocabulary&) { return true; }

}  // namespace

const ToolDialect& hermes_dialect() {
  static const ToolDialect kRow{.name = "hermes",
                                .is_of = is_hermes,
                                .parser = hermes_parser_of,
                                .envelope_parser = hermes_parser,
                                .envelope = {.begin = "",
                                             .before_name = "<tool_call>\n{\"name\": \"",
                                             .before_arguments = "\", \"arguments\": ",
                                             .after_arguments = "}\n</tool_call>",
                                             .between = "\n",
                                             .end = ""},
                                .markers = {kBegin, kEnd}};
  return kRow;
}

// For models without a form of their own: the system message describes this one.
const ToolDialect& unknown_dialect() {
  static const ToolDialect kRow = [] {
    ToolDialect row = hermes_dialect();
    row.name = "tool_call";
    row.is_of = is_any;
    return row;
  }();
  return kRow;
}

}  // namespace weft
