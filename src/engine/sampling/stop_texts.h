#pragma once

// Ends an answer at one of several texts: the one that ends first, of several that end at the same byte the first one
// given. Stop texts are searched for in the shown text, and also in that text with special tokens written out. So the
// text of a special token can be a stop text although it is never shown.

#include <string>
#include <string_view>
#include <vector>

namespace weft {

class StopTexts {
 public:
  StopTexts() = default;
  // No text may be empty. With `includes_stop` the stop text is part of the answer.
  explicit StopTexts(std::vector<std::string> stops, bool includes_stop = false)
      : stops_(std::move(stops)), includes_stop_(includes_stop) {}

  // Adds the text of a token and returns the text that may be shown now. Text that may begin a stop text is held back.
  // Once a stop text is complete, everything from its beginning (or end) on is dropped. Without `looks` no stop text
  // can end in this text.
  std::string push(std::string_view text, bool looks = true);
  std::string push_special(std::string_view text, bool looks = true);
  bool has_stopped() const { return stopped_by_ >= 0; }
  // The index of the stop text that was found; -1 before that.
  int stopped_by() const { return stopped_by_; }
  // Returns the text that is still held back, when no more text follows.
  std::string finish();

 private:
  enum Kind : char { shown, special_begin, special_rest };

  // Where a stop text is in held_.
  struct Match {
    int stop = -1;
    std::size_t begin = 0, end = 0;
    bool is_shown = true;  // it is in the shown text alone
  };
  struct Visible;

  std::string advance(std::size_t old, bool looks);
  Match first_match(const Visible& visible, std::size_t old) const;
  std::string take_stopped(const Match& match);
  std::string take_shown(std::size_t end);

  std::vector<std::string> stops_;
  bool includes_stop_ = false;
  std::string held_;   // with special tokens written out
  std::string kinds_;  // a Kind for each byte of held_
  int stopped_by_ = -1;
};

}  // namespace weft
