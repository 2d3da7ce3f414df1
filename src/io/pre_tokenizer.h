#pragma once

// Splits text into the pieces that become tokens separately, by the steps of Hugging Face's pre-tokenizers. Each
// step splits each piece of the previous step separately, so a look-ahead does not see past its piece.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "io/regex.h"

namespace weft {

// How a split treats its matches. "Previous" and "next" are the pieces next to a match.
enum class SplitBehavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

struct PatternSplit {
  std::string pattern;
  bool is_literal = false;  // plain text instead of a regular expression
  SplitBehavior behavior = SplitBehavior::isolated;
  bool invert = false;  // swaps matches and the text between them
};

// Separates numeric characters (Unicode category N) from all others: each one individually, or in runs, or runs in
// groups of three that are counted from the right, as in 12 345 678.
struct DigitSplit {
  bool individual = true;
  bool in_thousands = false;
};

// Puts a space in front of every piece that does not begin with one.
struct PrefixSpace {};

// Writes each space as a mark, and puts a mark in front of pieces that do not begin with one.
struct Metaspace {
  enum class Front {
    always,
    first,  // only in front of the piece that begins the text
    never,
  };
  std::string mark = "\u2581";
  Front front = Front::always;
  bool split = true;  // before each mark
  // Hugging Face's Front::first: no mark if normalization removed the first character of the text.
  bool needs_first_character = false;
};

// Writes each piece in the byte-level alphabet, for the steps after it: Falcon looks for digits there. The pieces that
// PreTokenizer returns are the bytes again.
struct InByteAlphabet {};

using PreTokenizerStep = std::variant<PatternSplit, DigitSplit, PrefixSpace, Metaspace, InByteAlphabet>;

// The pattern of white space and the one of BERT's punctuation: the punctuation of Unicode and all signs of ASCII.
extern const std::string_view kWhiteSpacePattern;
extern const std::string_view kPunctuationPattern;
// The same with the punctuation of Hugging Face's pre-tokenizers.
const std::string& bert_punctuation_pattern();

// GPT-2's pattern, which a ByteLevel step with use_regex applies.
extern const std::string_view kGpt2Pattern;

// A text, possibly with inserted spaces or marks, and its non-empty pieces in order.
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
  // UserError if a pattern is not a regular expression or uses a construct outside the subset of regex.h.
  explicit PreTokenizer(const std::vector<PreTokenizerStep>& steps);

  // `text` must be valid UTF-8 and shorter than 2 GiB; `is_first` says whether it begins the whole text. The pieces are
  // UTF-8, too, except that steps after InByteAlphabet may cut inside of a character. UserError if a pattern exceeds
  // its limits.
  Pieces split(std::string text, bool is_first = true) const;

  // Whether a step has needs_first_character, so that `is_first` of split() depends on normalization.
  bool needs_first_character() const;

 private:
  struct Step {
    PreTokenizerStep what;
    std::optional<Regex> regex;  // for a PatternSplit
  };

  std::vector<Step> steps_;
};

}  // namespace weft
