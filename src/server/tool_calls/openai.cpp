// <|channel|>analysis<|message|>reasoning<|end|><|start|>assistant<|channel|>final<|message|>content<|return|>
// <|channel|>commentary to=functions.f <|constrain|>json<|message|>{..}<|call|>
// gpt-oss writes its answers so, in messages of channels. The prompt ends with <|start|>assistant. The last tokens,
// <|return|> and <|call|>, end the answer and have no text.

#include <iterator>
#include <utility>

#include "server/tool_calls/call_scanner.h"
#include "server/tool_calls/dialects.h"
#include "server/tool_calls/text_scanner.h"

namespace weft {
namespace {

constexpr std::string_view kChannelMark = "<|channel|>", kMessageMark = "<|message|>", kEndMark = "<|end|>",
                           kStartMark = "<|start|>", kCallMark = "<|call|>", kReturnMark = "<|return|>";
constexpr std::string_view kMessageEnds[] = {kEndMark, kCallMark, kReturnMark, kStartMark};
constexpr std::string_view kRecipientMark = " to=", kFunctionSpace = "functions.";

// The word after `before` in a header; "" if it is not there.
std::string word_after(std::string_view header, std::string_view before) {
  const std::size_t at = header.find(before);
  if (at == std::string_view::npos) return "";
  const std::string_view rest = header.substr(at + before.size());
  return std::string(rest.substr(0, rest.find_first_of(" <\n")));
}

class OpenAiParser final : public ToolParser {
 public:
  // `content` reads the text of the final channel; null: it is content. Without tools there are no calls.
  OpenAiParser(std::unique_ptr<ToolParser> content, bool has_tools)
      : inner_(std::move(content)), has_tools_(has_tools) {}

  void finish(AnswerEvents& events) override {
    if (part_ == Part::begin) begin_text(events);
    if (part_ == Part::call) call_.cut(events);
    end_message(events);
    text_.finish(events, false);
    if (inner_) inner_->finish(events);
  }

 private:
  enum class Part : std::uint8_t {
    begin,    // of the answer
    header,   // up to <|message|>
    text,     // reasoning or content
    call,     // arguments
    between,  // after a message, up to <|start|>
  };

  void take(char c, AnswerEvents& events) override {
    switch (part_) {
      case Part::begin:
        return take_begin(c, events);
      case Part::header:
        return take_header(c);
      case Part::text:
        return take_text(c, events);
      case Part::call:
        return take_call(c, events);
      case Part::between:
        return take_between(c);
    }
  }

  // An answer that begins with no header continues a message.
  void take_begin(char c, AnswerEvents& events) {
    header_ += c;
    const bool is_channel = kChannelMark.starts_with(header_), is_recipient = kRecipientMark.starts_with(header_);
    if (header_ == kChannelMark || header_ == kRecipientMark) {
      part_ = Part::header;
    } else if (!is_channel && !is_recipient) {
      begin_text(events);
    }
  }

  void begin_text(AnswerEvents& events) {
    part_ = Part::text;
    for (const char before : std::exchange(header_, {})) take_text(before, events);
  }

  void take_header(char c) {
    header_ += c;
    if (!header_.ends_with(kMessageMark)) return;
    const std::string channel = word_after(header_, kChannelMark), to = word_after(header_, kRecipientMark);
    const bool is_call = has_tools_ && to.starts_with(kFunctionSpace) && to.size() > kFunctionSpace.size();
    is_reasoning_ = !is_call && channel == "analysis";
    part_ = is_call ? Part::call : Part::text;
    if (is_call) call_.begin_arguments(header_, to.substr(kFunctionSpace.size()));
    text_.begin_text();
  }

  void take_text(char c, AnswerEvents& events) {
    const int marker = is_reasoning_ ? reasoning_.push(c, events) : text_.push(c, content_);
    if (marker < 0) return give_content(events);
    end_message(events);
    if (kMessageEnds[marker] == kStartMark) part_ = Part::header;
  }

  void take_call(char c, AnswerEvents& events) {
    const CallScanner::Status status = call_.push(c, events);
    if (status == CallScanner::Status::open) return;
    is_reasoning_ = false;
    part_ = status == CallScanner::Status::complete ? Part::between : Part::text;
    header_.clear();
  }

  void take_between(char c) {
    header_ += c;
    if (!header_.ends_with(kStartMark)) return;
    header_.clear();
    part_ = Part::header;
  }

  void end_message(AnswerEvents& events) {
    if (is_reasoning_) reasoning_.finish(events, false);
    if (!is_reasoning_ && part_ == Part::text) text_.finish(content_, true);
    give_content(events);
    is_reasoning_ = false;
    part_ = Part::between;
    header_.clear();
  }

  // What the scanner of the content found.
  void give_content(AnswerEvents& events) {
    for (const AnswerEvent& event : std::exchange(content_, {})) {
      if (inner_) {
        inner_->push(event.text, events);
      } else {
        add_text(events, event.kind, event.text);
      }
    }
  }

  std::unique_ptr<ToolParser> inner_;
  bool has_tools_;
  Part part_ = Part::begin;
  std::string header_;
  bool is_reasoning_ = false;
  TextScanner reasoning_{AnswerEvent::Kind::reasoning, {std::begin(kMessageEnds), std::end(kMessageEnds)}, true};
  TextScanner text_{AnswerEvent::Kind::content, {std::begin(kMessageEnds), std::end(kMessageEnds)}};
  AnswerEvents content_;
  CallScanner call_;
};

std::unique_ptr<ToolParser> openai_parser(const Json& tools) {
  return std::make_unique<OpenAiParser>(nullptr, !tools.is_null());
}

std::unique_ptr<ToolParser> openai_channels(std::unique_ptr<ToolParser> content) {
  return std::make_unique<OpenAiParser>(std::move(content), false);
}

bool is_openai(std::string_view, const Vocabulary& vocabulary) {
  return has_token(vocabulary, kChannelMark) && has_token(vocabulary, kMessageMark);
}

}  // namespace

// An answer that must be a call has it in the final channel, in hermes' form: a grammar has no control tokens.
const ToolDialect& openai_dialect() {
  static const ToolDialect kRow{.name = "openai",
                                .is_of = is_openai,
                                .parser = openai_parser,
                                .envelope_parser = hermes_dialect().envelope_parser,
                                .envelope = hermes_dialect().envelope,
                                .markers = {kChannelMark, kMessageMark, kEndMark, kStartMark, "<|constrain|>"},
                                .content_marker = "<|channel|>final<|message|>",
                                .channel_parser = openai_channels};
  return kRow;
}

}  // namespace weft
