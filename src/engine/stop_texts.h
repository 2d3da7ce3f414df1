#pragma once

// Ends an answer at the first of several texts. A stop text is looked for in the text that is shown, and also in that
// text with special tokens written out, so that a special token's own text stops there although it is never shown.

#include <string>
#include <string_view>
#include <vector>

namespace weft {

class StopTexts {
 public:
  StopTexts() = default;
  // No text may be empty.
  explicit StopTexts(std::vector<std::string> stops) : stops_(std::move(stops)) {}

  // Adds what a token is, and gives the text that may be shown now. What may begin a stop text is held back; once one
  // is complete, everything from it on is dropped.
  std::string push(std::string_view text);
  std::string push_special(std::string_view text);
  bool has_stopped() const { return has_stopped_; }
  // What is still held back, once it is known that nothing follows.
  std::string finish();

 private:
  enum Kind : char { shown, special_begin, special_rest };

  std::string advance();
  std::string take_shown(std::size_t end);

  std::vector<std::string> stops_;
  std::string held_;   // with special tokens written out
  std::string kinds_;  // a Kind for each byte of it
  bool has_stopped_ = false;
};

}  // namespace weft
