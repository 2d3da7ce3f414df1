#pragma once

// Cuts text into the pieces that byte-pair merging never crosses, by the steps of Hugging Face's pre-tokenizers: each
// step cuts every piece of the step before it, on its own (a look-ahead does not see past its piece).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "io/regex.h"

namespace weft {

// What becomes of the matches of a split. "Previous" and "next" are the pieces beside a match.
enum class SplitBehavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

struct PatternSplit {
  std::string pattern;
  bool is_literal = false;  // plain text instead of a regular expression
  SplitBehavior behavior = SplitBehavior::isolated;
  bool invert = false;  // matches and what lies between them change places
};

// Numeric characters (Unicode category N) apart from all others; each on its own, or runs of them together.
struct DigitSplit {
  bool individual = true;
};

// Puts a space in front of every piece that does not begin with one.
struct PrefixSpace {};

using PreTokenizerStep = std::variant<PatternSplit, DigitSplit, PrefixSpace>;

// GPT-2's pattern, which a ByteLevel step with use_regex applies.
extern const std::string_view kGpt2Pattern;

// A text, possibly with prefix spaces put in, and its non-empty pieces in order.
struct Pieces {
  struct Range {
    uint32_t begin = 0;  // bytes
    uint32_t end = 0;
  };
  std::string text;
  std::vector<Range> ranges;

  std::string_view operator[](size_t index) const {
    return std::string_view(text).substr(ranges[index].begin, ranges[index].end - ranges[index].begin);
  }
};

class PreTokenizer {
 public:
  // UserError: a pattern that is no regular expression or uses a construct outside the subset of regex.h.
  explicit PreTokenizer(const std::vector<PreTokenizerStep>& steps);

  // `text` must be valid UTF-8 and shorter than 2 GiB. UserError: a pattern ran past its limits.
  Pieces split(std::string text) const;

 private:
  struct Step {
    PreTokenizerStep what;
    std::optional<Regex> regex;  // of a PatternSplit
  };

  std::vector<Step> steps_;
};

}  // namespace weft
