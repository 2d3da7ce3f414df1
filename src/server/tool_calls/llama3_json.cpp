// {"name": "f", "parameters": {..}}; {"name": "g", "parameters": {..}}
// Llama 3.1 and later write it so, as the whole answer, and sometimes begin with <|python_tag|>.

#include "server/tool_calls/call_scanner.h"
#include "server/tool_calls/dialects.h"
#include "server/tool_calls/text_scanner.h"

namespace weft {
namespace {

constexpr std::string_view kTag = "<|python_tag|>";

class Llama3JsonParser final : public ToolParser {
 public:
  void finish(AnswerEvents& events) override {
    if (state_ == State::before_call || (state_ == State::start && !has_call_)) text_.put(written_, events);
    if (state_ == State::call) call_.cut(events);
    text_.finish(events, !has_call_);
  }

 private:
  enum class State : std::uint8_t {
    start,  // of the answer
    text,
    before_call,  // after the tag
    call,
    after_call,
  };

  void take(char c, AnswerEvents& events) override {
    if (state_ == State::text) return take_text(c, events);
    if (state_ == State::call) return take_call(c, events);
    if (c == '{') {
      state_ = State::call;
      call_.begin(written_, true);
      return take_call(c, events);
    }
    if (is_json_space(c) || (c == ';' && state_ == State::after_call)) {
      written_ += c;
      return;
    }
    const bool has_tag = state_ == State::before_call;
    state_ = State::text;
    if (has_tag) {
      text_.put(written_, events);
    } else {
      for (const char before : written_) take_text(before, events);
    }
    take_text(c, events);
  }

  void take_text(char c, AnswerEvents& events) {
    if (text_.push(c, events) != 0) return;
    state_ = State::before_call;
    written_ = kTag;
  }

  // An object is a call if it has parameters; any other is an answer in JSON.
  void take_call(char c, AnswerEvents& events) {
    const CallScanner::Status status = call_.push(c, events);
    if (status == CallScanner::Status::open) return;
    const bool is_call = status == CallScanner::Status::complete;
    state_ = is_call ? State::after_call : State::text;
    has_call_ |= is_call;
    written_.clear();
    if (is_call) text_.begin_text();
  }

  State state_ = State::start;
  TextScanner text_{AnswerEvent::Kind::content, {kTag}};
  CallScanner call_;
  std::string written_;
  bool has_call_ = false;
};

std::unique_ptr<ToolParser> llama3_json_parser() { return std::make_unique<Llama3JsonParser>(); }
std::unique_ptr<ToolParser> llama3_json_parser_of(const Json&) { return llama3_json_parser(); }

bool is_llama3_json(std::string_view chat_template, const Vocabulary& vocabulary) {
  return has_token(vocabulary, kTag) || chat_template.find("\"parameters\"") != std::string_view::npos;
}

}  // namespace

const ToolDialect& llama3_json_dialect() {
  static const ToolDialect kRow{.name = "llama3_json",
                                .other_names = "llama4_json",
                                .is_of = is_llama3_json,
                                .parser = llama3_json_parser_of,
                                .envelope_parser = llama3_json_parser,
                                .envelope = {.begin = "",
                                             .before_name = "{\"name\": \"",
                                             .before_arguments = "\", \"parameters\": ",
                                             .after_arguments = "}",
                                             .between = "; ",
                                             .end = ""},
                                .markers = {kTag}};
  return kRow;
}

}  // namespace weft
