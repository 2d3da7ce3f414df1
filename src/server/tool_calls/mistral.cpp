// [TOOL_CALLS] [{"name": "f", "arguments": {..}}, ..]       tokenizers before version 11
// [TOOL_CALLS]f[ARGS]{..}[TOOL_CALLS]g[ARGS]{..}            and since then
// An id, [CALL_ID] and its text, may be before [ARGS]; it is read and not used.

#include "server/tool_calls/call_scanner.h"
#include "server/tool_calls/dialects.h"
#include "server/tool_calls/text_scanner.h"

namespace weft {
namespace {

constexpr std::string_view kCalls = "[TOOL_CALLS]", kArguments = "[ARGS]", kId = "[CALL_ID]";

class MistralParser final : public ToolParser {
 public:
  explicit MistralParser(bool begins_in_list)
      : state_(begins_in_list ? State::before_list : State::text), is_list_(begins_in_list) {}

  void finish(AnswerEvents& events) override {
    if (state_ == State::call) call_.cut(events);
    if (state_ != State::call && state_ != State::text && state_ != State::after_item) text_.put(written_, events);
    text_.finish(events, !has_call_);
  }

 private:
  enum class State : std::uint8_t {
    text,
    before_list,  // only a list may follow
    after_marker,
    before_item,
    after_item,
    name,
    tag,  // in brackets, after a name
    id,
    before_arguments,
    call,
  };

  void take(char c, AnswerEvents& events) override {
    if (state_ == State::text) return take_text(c, events);
    if (state_ == State::call) return take_call(c, events);
    written_ += c;
    if (!takes_envelope(c, events)) {
      // It is no call, but text.
      state_ = State::text;
      text_.put(written_.substr(0, written_.size() - 1), events);
      take_text(c, events);
    }
  }

  void take_text(char c, AnswerEvents& events) {
    if (text_.push(c, events) != 0) return;
    state_ = State::after_marker;
    written_ = kCalls;
  }

  // What is around calls. False for what cannot be there.
  bool takes_envelope(char c, AnswerEvents& events) {
    switch (state_) {
      case State::before_list:
      case State::after_marker:
        return takes_first(c);
      case State::before_item:
        if (c == '{') return begin_call(events);
        return is_json_space(c) || (c == ']' && end_list());
      case State::after_item:
        if (c == ',') return go(State::before_item);
        return is_json_space(c) || (c == ']' && end_list());
      case State::name:
        return takes_name(c, events);
      case State::tag:
        return takes_tag(c);
      case State::id:
        return c != '[' || begin_tag();
      default:
        if (c == '{') return begin_call(events);
        return is_json_space(c);
    }
  }

  bool takes_first(char c) {
    if (is_json_space(c)) return true;
    is_list_ = c == '[';
    if (is_list_) return go(State::before_item);
    name_ = c;
    return state_ == State::after_marker && is_name_character(c) && go(State::name);
  }

  bool takes_name(char c, AnswerEvents& events) {
    if (c == '{') return begin_call(events);
    if (c == '[') return begin_tag();
    if (is_name_character(c)) name_ += c;
    return is_name_character(c) || is_json_space(c);
  }

  bool begin_tag() {
    tag_ = '[';
    return go(State::tag);
  }

  bool takes_tag(char c) {
    tag_ += c;
    if (tag_ == kArguments) return go(State::before_arguments);
    if (tag_ == kId) return go(State::id);
    return kArguments.starts_with(tag_) || kId.starts_with(tag_);
  }

  bool go(State state) {
    state_ = state;
    return true;
  }

  bool end_list() {
    text_.begin_text();
    return go(State::text);
  }

  // written_ ends with the first character of the object.
  bool begin_call(AnswerEvents& events) {
    written_.pop_back();
    if (is_list_) {
      call_.begin(written_);
    } else {
      call_.begin_arguments(written_, name_);
    }
    written_.clear();
    state_ = State::call;
    take_call('{', events);
    return true;
  }

  void take_call(char c, AnswerEvents& events) {
    const CallScanner::Status status = call_.push(c, events);
    if (status == CallScanner::Status::open) return;
    const bool is_call = status == CallScanner::Status::complete;
    has_call_ |= is_call;
    state_ = is_call && is_list_ ? State::after_item : State::text;
    if (is_call) text_.begin_text();
  }

  State state_;
  TextScanner text_{AnswerEvent::Kind::content, {kCalls}};
  CallScanner call_;
  bool is_list_;
  std::string written_;  // since the marker or the last call
  std::string name_, tag_;
  bool has_call_ = false;
};

std::unique_ptr<ToolParser> mistral_parser(const Json&) { return std::make_unique<MistralParser>(false); }
std::unique_ptr<ToolParser> mistral_list_parser() { return std::make_unique<MistralParser>(true); }

bool is_mistral(std::string_view, const Vocabulary& vocabulary) { return has_token(vocabulary, kCalls); }

}  // namespace

const ToolDialect& mistral_dialect() {
  static const ToolDialect kRow{.name = "mistral",
                                .is_of = is_mistral,
                                .parser = mistral_parser,
                                .envelope_parser = mistral_list_parser,
                                .envelope = {.begin = "[",
                                             .before_name = "{\"name\": \"",
                                             .before_arguments = "\", \"arguments\": ",
                                             .after_arguments = "}",
                                             .between = ", ",
                                             .end = "]"},
                                .markers = {kCalls, kArguments, kId},
                                .has_short_ids = true};
  return kRow;
}

}  // namespace weft
