#pragma once

// Ends an answer at the first of several texts. Stop texts are searched for in the shown text, and also in that text
// with special tokens written out. So the text of a special token can be a stop text although it is never shown.

#include <string>
#include <string_view>
#include <vector>

namespace weft {

class StopTexts {
 public:
  StopTexts() = default;
  // No text may be empty.
  explicit StopTexts(std::vector<std::string> stops) : stops_(std::move(stops)) {}

  // Adds the text of a token and returns the text that may be shown now. Text that may begin a stop text is held back.
  // Once a stop text is complete, everything from its beginning on is dropped.
  std::string push(std::string_view text);
  std::string push_special(std::string_view text);
  bool has_stopped() const { return stopped_by_ >= 0; }
  // The index of the stop text that was found; -1 before that.
  int stopped_by() const { return stopped_by_; }
  // Returns the text that is still held back, when no more text follows.
  std::string finish();

 private:
  enum Kind : char { shown, special_begin, special_rest };

  std::string advance();
  std::string take_shown(std::size_t end);

  std::vector<std::string> stops_;
  std::string held_;   // with special tokens written out
  std::string kinds_;  // a Kind for each byte of held_
  int stopped_by_ = -1;
};

}  // namespace weft
