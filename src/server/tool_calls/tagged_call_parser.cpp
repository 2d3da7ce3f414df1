#include "server/tool_calls/tagged_call_parser.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "server/tool_calls/tagged_value.h"
#include "server/tool_calls/text_scanner.h"

namespace weft {
namespace {

class TaggedCallParser final : public ToolParser {
 public:
  TaggedCallParser(const TaggedForm& form, const Json& tools)
      : form_(form), tools_(tools), text_(AnswerEvent::Kind::content, markers_of(form)) {}

  void finish(AnswerEvents& events) override {
    if (state_ != State::text) fail(events);
    text_.finish(events, !has_call_);
  }

 private:
  enum class State : std::uint8_t { text, tag, name, key, value };

  // A call may begin with the tag of its name.
  static std::vector<std::string_view> markers_of(const TaggedForm& form) {
    std::vector<std::string_view> markers = {form.call_begin, form.call_end};
    if (!form.name_begin.empty()) markers.push_back(form.name_begin);
    return markers;
  }

  void take(char c, AnswerEvents& events) override {
    if (state_ == State::text) return take_text(c, events);
    written_ += c;
    if (!takes(c, events)) fail(events);
  }

  void take_text(char c, AnswerEvents& events) {
    const int marker = text_.push(c, events);
    if (marker == 1 && is_after_call_ && text_.is_blank()) {
      is_after_call_ = false;
      text_.begin_text();
    } else if (marker == 1) {
      text_.put(form_.call_end, events);
    } else if (marker >= 0) {
      begin_call(marker == 0 ? form_.call_begin : form_.name_begin, marker == 0 && !form_.name_begin.empty());
    }
  }

  void begin_call(std::string_view marker, bool expects_name_tag) {
    written_ = marker;
    name_.clear();
    sent_ = 0;
    count_ = 0;
    has_begun_ = false;
    if (expects_name_tag) {
      expect({form_.name_begin});
    } else {
      state_ = State::name;
    }
  }

  // Within a call. False for what cannot be there.
  bool takes(char c, AnswerEvents& events) {
    switch (state_) {
      case State::tag:
        return takes_tag(c, events);
      case State::name:
        return takes_name(c);
      case State::key:
        return takes_key(c);
      default:
        takes_value(c, events);
        return true;
    }
  }

  void expect(std::array<std::string_view, 3> tags) {
    state_ = State::tag;
    expected_ = tags;
    tag_.clear();
  }

  // After the name or a value.
  void expect_key() { expect({form_.key_begin, form_.function_end.empty() ? form_.call_end : form_.function_end}); }

  bool takes_tag(char c, AnswerEvents& events) {
    if (tag_.empty() && is_json_space(c)) return true;
    tag_ += c;
    const auto has_begin = [&](std::string_view tag) { return tag.starts_with(tag_); };
    if (std::none_of(expected_.begin(), expected_.end(), has_begin)) return false;
    if (std::find(expected_.begin(), expected_.end(), tag_) == expected_.end()) return true;
    if (tag_ == form_.name_begin) {
      state_ = State::name;
    } else if (tag_ == form_.key_begin) {
      state_ = State::key;
      key_.clear();
    } else if (tag_ == form_.value_begin) {
      begin_value();
    } else {
      end_call(events);
    }
    return true;
  }

  bool takes_name(char c) {
    if (!form_.name_end.empty()) {
      if (form_.name_end.front() == c) return ends_name();
      name_ += c;
      return is_name_character(c);
    }
    if (is_json_space(c)) return name_.empty() || ends_name();
    if (c != '<') {
      name_ += c;
      return is_name_character(c);
    }
    if (!ends_name()) return false;
    tag_ = c;
    return true;
  }

  bool ends_name() {
    expect_key();
    return !name_.empty();
  }

  bool takes_key(char c) {
    key_ += c;
    if (!key_.ends_with(form_.key_end)) return c != '\n';
    key_.resize(key_.size() - form_.key_end.size());
    key_ = std::string(trim(key_));
    if (form_.value_begin.empty()) {
      begin_value();
    } else {
      expect({form_.value_begin});
    }
    return !key_.empty();
  }

  void begin_value() {
    state_ = State::value;
    is_unread_ = true;
  }

  void open_value(AnswerEvents& events) {
    is_unread_ = false;
    value_.clear();
    held_.clear();
    if (!has_begun_) events.push_back({.kind = AnswerEvent::Kind::call_begin, .text = name_});
    has_begun_ = true;
    schema_ = &argument_schema(tools_, name_, key_);
    streams_ = is_string_alone(*schema_);
    send((count_++ == 0 ? "{" : ", ") + json_text(key_) + ": " + (streams_ ? "\"" : ""), events);
    sent_ = written_.size() - 1;  // all but this character
  }

  void send(std::string_view json, AnswerEvents& events) {
    add_text(events, AnswerEvent::Kind::call_arguments, json);
    sent_ = written_.size();
  }

  // Characters that may begin the end of the value, or the line feed before it, are held back.
  void takes_value(char c, AnswerEvents& events) {
    const bool is_first = is_unread_;
    if (is_first) open_value(events);
    if (is_first && c == '\n' && form_.has_line_feeds) return;
    held_ += c;
    const auto begins_end = [&] {
      std::string_view end = held_;
      if (form_.has_line_feeds && end.starts_with('\n')) end.remove_prefix(1);
      return form_.value_end.starts_with(end);
    };
    for (; !held_.empty() && !begins_end(); held_.erase(0, 1)) {
      if (streams_) send(escaped(held_.substr(0, 1)), events);
      value_ += held_[0];
    }
    sent_ = streams_ ? written_.size() - held_.size() : sent_;
    if (!held_.ends_with(form_.value_end)) return;
    send(streams_ ? "\"" : value_as_json(value_, *schema_), events);
    expect_key();
  }

  void end_call(AnswerEvents& events) {
    if (!has_begun_) events.push_back({.kind = AnswerEvent::Kind::call_begin, .text = name_});
    send(count_ == 0 ? "{}" : "}", events);
    events.push_back({.kind = AnswerEvent::Kind::call_end});
    state_ = State::text;
    has_call_ = true;
    is_after_call_ = !form_.function_end.empty();
    text_.begin_text();
  }

  void fail(AnswerEvents& events) {
    events.push_back({.kind = AnswerEvent::Kind::call_broken, .text = written_, .unsent = written_.substr(sent_)});
    state_ = State::text;
  }

  const TaggedForm& form_;
  const Json& tools_;
  State state_ = State::text;
  TextScanner text_;
  std::string written_;   // all of the call
  std::size_t sent_ = 0;  // bytes of it up to the last that is in an event
  std::array<std::string_view, 3> expected_;
  std::string tag_, name_, key_;
  const Json* schema_ = nullptr;
  std::string value_, held_;  // of the value: what is known of it, and what may be its end
  std::size_t count_ = 0;     // of values
  bool is_unread_ = false;    // no character of the value came yet, and no event of it
  bool streams_ = false;      // the value is reported as it comes
  bool has_begun_ = false;    // the call is in an event
  bool has_call_ = false, is_after_call_ = false;
};

}  // namespace

std::unique_ptr<ToolParser> tagged_call_parser(const TaggedForm& form, const Json& tools) {
  return std::make_unique<TaggedCallParser>(form, tools);
}

}  // namespace weft
