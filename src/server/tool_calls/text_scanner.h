#pragma once

// The text between the markers of an answer, which it looks for. What may begin a marker is held back until it is
// decided.

#include <string>
#include <string_view>
#include <vector>

#include "server/answer_events.h"

namespace weft {

class TextScanner {
 public:
  // Text is reported in events of `kind`. A text of nothing but white space is held back, too: it is dropped if a
  // marker follows it. With `is_trimmed` white space at both ends of a text is dropped always. No marker begins another
  // one.
  TextScanner(AnswerEvent::Kind kind, std::vector<std::string_view> markers, bool is_trimmed = false)
      : kind_(kind), markers_(std::move(markers)), is_trimmed_(is_trimmed) {}

  // Returns the index of the marker that `c` completes, or -1.
  int push(char c, AnswerEvents& events);
  // Text in which no marker is looked for.
  void put(std::string_view text, AnswerEvents& events);
  // The text before is over, and another one begins.
  void begin_text();
  // The text is over, and with it the answer. `keeps_spaces`: also a text of nothing but white space is one.
  void finish(AnswerEvents& events, bool keeps_spaces);
  // Nothing but white space came in this text.
  bool is_blank() const { return !has_text_; }

 private:
  void add(char c, AnswerEvents& events);

  AnswerEvent::Kind kind_;
  std::vector<std::string_view> markers_;
  bool is_trimmed_;
  bool has_text_ = false;
  std::string spaces_;  // held back
  std::string match_;   // the begin of a marker
};

// White space between the tokens of JSON.
bool is_json_space(char c);
// Of the names of functions.
bool is_name_character(char c);

}  // namespace weft
