#include "server/tool_calls/call_scanner.h"

#include "base/json.h"
#include "server/tool_calls/text_scanner.h"

namespace weft {

void CallScanner::begin(std::string written, bool needs_arguments) {
  *this = CallScanner();
  written_ = std::move(written);
  needs_arguments_ = needs_arguments;
}

void CallScanner::begin_arguments(std::string written, std::string name) {
  *this = CallScanner();
  written_ = std::move(written);
  name_ = std::move(name);
  has_name_ = true;
  has_object_ = false;
  next_ = Part::arguments;
}

void CallScanner::send_begin(AnswerEvents& events) {
  has_begun_ = true;
  events.push_back({.kind = AnswerEvent::Kind::call_begin, .text = name_});
}

void CallScanner::send_arguments(std::string_view text, AnswerEvents& events) {
  add_text(events, AnswerEvent::Kind::call_arguments, text);
  sent_ = written_.size();
}

void CallScanner::begin_part(char c, AnswerEvents& events) {
  if (part_ != Part::none || json_.depth() != level() || is_json_space(c)) return;
  if (json_.expects_key() && c == '"') {
    part_ = Part::key;
  } else if (json_.expects_value()) {
    part_ = next_;
    streams_ = part_ == Part::arguments && c == '{' && has_name_ && !has_arguments_;
    if (streams_ && !has_begun_) send_begin(events);
  }
}

CallScanner::Status CallScanner::push(char c, AnswerEvents& events) {
  written_ += c;
  const bool was_number = json_.is_in_number() && json_.depth() == level();
  begin_part(c, events);
  const JsonScanner::Status status = json_.push(c);
  if (status == JsonScanner::Status::wrong) return fail(events);
  if (part_ != Part::none) {
    // The character after a number shows its end.
    const bool ended_before = was_number && !json_.is_in_number();
    if (!ended_before) {
      value_ += c;
      if (streams_) send_arguments({&c, 1}, events);
    }
    const bool ends_here = json_.depth() == level() && (json_.is_after_value() || json_.is_after_key());
    if ((ended_before || ends_here) && !end_part()) return fail(events);
  }
  return status == JsonScanner::Status::complete ? end(events) : Status::open;
}

bool CallScanner::end_name() {
  const Json name = parse_json(value_);
  if (has_name_ || !name.is_string() || name.get_ref<const std::string&>().empty()) return false;
  name_ = name.get<std::string>();
  has_name_ = true;
  return true;
}

// False if the part makes no sense.
bool CallScanner::end_part() {
  bool is_right = true;
  if (part_ == Part::key) {
    const Json key = parse_json(value_);
    const bool names_arguments = key == "arguments" || key == "parameters";
    next_ = key == "name" ? Part::name : names_arguments ? Part::arguments : Part::other;
  } else if (part_ == Part::name) {
    is_right = end_name();
  } else if (part_ == Part::arguments) {
    is_right = !has_arguments_;
    has_arguments_ = true;
    arguments_ = value_ == "null" ? "{}" : value_;
  }
  part_ = Part::none;
  value_.clear();
  return is_right;
}

CallScanner::Status CallScanner::end(AnswerEvents& events) {
  if (!has_name_ || (needs_arguments_ && !has_arguments_)) return fail(events);
  if (!has_begun_) {
    send_begin(events);
    send_arguments(has_arguments_ ? arguments_ : "{}", events);
  }
  events.push_back({.kind = AnswerEvent::Kind::call_end});
  return Status::complete;
}

CallScanner::Status CallScanner::fail(AnswerEvents& events) {
  events.push_back({.kind = AnswerEvent::Kind::call_broken, .text = written_, .unsent = written_.substr(sent_)});
  return Status::broken;
}

void CallScanner::cut(AnswerEvents& events) { fail(events); }

}  // namespace weft
