#pragma once

// Changes text before it is split into pieces, by the steps of Hugging Face's normalizers and of SentencePiece.

#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace weft {

enum class UnicodeForm { nfc, nfd, nfkc, nfkd };

// Puts a text in front of any text that is not empty.
struct PrependText {
  std::string text;
  bool also_if_removed = false;  // also in front of a text of which the steps before left nothing, as SentencePiece
};

struct ReplaceText {
  std::string pattern;
  bool is_literal = true;
  std::string replacement;
};

// Removes white space at the ends.
struct StripSpaces {
  bool left = true;
  bool right = true;
};

// SentencePiece's remove_extra_whitespaces: no spaces at the ends, and one instead of several.
struct SqueezeSpaces {};

struct Lowercase {};

struct StripAccents {};  // removes combining marks

// BERT's normalizer.
struct BertText {
  bool clean = true;             // removes control characters, and writes each white space as a space
  bool separate_chinese = true;  // spaces around CJK ideographs
  bool strip_accents = true;
  bool lowercase = true;
};

// SentencePiece's precompiled map of characters (io/character_map.h). Hugging Face applies it to whole grapheme
// clusters.
struct MapCharacters {
  std::string bytes;
  bool by_grapheme = false;
};

using NormalizerStep = std::variant<UnicodeForm, PrependText, ReplaceText, StripSpaces, SqueezeSpaces, Lowercase,
                                    StripAccents, BertText, MapCharacters>;

class Normalizer {
 public:
  // UserError for a pattern that is not a regular expression, and for a broken map.
  explicit Normalizer(const std::vector<NormalizerStep>& steps);
  ~Normalizer();
  Normalizer(Normalizer&&) noexcept;
  Normalizer& operator=(Normalizer&&) noexcept;

  // `text` must be valid UTF-8, and so is the result.
  std::string apply(std::string_view text) const;

  // Whether the steps remove the first character of a text, whose normal form is `normal`. A removal that needs more
  // characters than the first one is not recognized. One by a map of grapheme clusters does not count, because Hugging
  // Face does not record it: the next character takes the place of the first one.
  bool removes_first(std::string_view text, std::string_view normal) const;

 private:
  struct Step;
  std::vector<Step> steps_;
};

}  // namespace weft
