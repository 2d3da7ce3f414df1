#include "server/tool_calls/text_scanner.h"

#include <algorithm>

namespace weft {

bool is_json_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
}

void TextScanner::add(char c, AnswerEvents& events) {
  if (is_json_space(c) && (is_trimmed_ || !has_text_)) {
    spaces_ += c;
    return;
  }
  if (has_text_ || !is_trimmed_) add_text(events, kind_, spaces_);
  spaces_.clear();
  has_text_ = true;
  add_text(events, kind_, {&c, 1});
}

int TextScanner::push(char c, AnswerEvents& events) {
  match_ += c;
  const auto begins_one = [&] {
    return std::any_of(markers_.begin(), markers_.end(), [&](auto marker) { return marker.starts_with(match_); });
  };
  while (!match_.empty() && !begins_one()) {
    add(match_[0], events);
    match_.erase(0, 1);
  }
  const auto found = std::find(markers_.begin(), markers_.end(), match_);
  if (match_.empty() || found == markers_.end()) return -1;
  match_.clear();
  return static_cast<int>(found - markers_.begin());
}

void TextScanner::put(std::string_view text, AnswerEvents& events) {
  for (const char c : text) add(c, events);
}

void TextScanner::begin_text() {
  has_text_ = false;
  spaces_.clear();
}

void TextScanner::finish(AnswerEvents& events, bool keeps_spaces) {
  put(match_, events);
  match_.clear();
  if (keeps_spaces && !is_trimmed_) add_text(events, kind_, spaces_);
  begin_text();
}

}  // namespace weft
