#pragma once

// A set of characters of Oniguruma, as a class of PCRE2. Oniguruma's scripts are those of the property Script, where
// PCRE2 takes Script_Extensions; its words have other characters; and its tables are those of a newer Unicode.

#include <string>
#include <string_view>
#include <vector>

#include "io/unicode_additions.h"

namespace weft {

class CharacterSet {
 public:
  // Text that PCRE2 takes inside brackets: characters and ranges.
  void add_text(std::string_view text) { items_ += text; }
  // The name between the braces of \p{...}.
  void add_property(std::string_view name, bool is_negated);
  // \w or \W. Outside a class, Oniguruma also counts six signs of Latin-1 as characters of words.
  void add_words(bool is_negated, bool in_class);

  // All characters of another set.
  void add_set(const CharacterSet& other);
  // All characters outside of it. False and no change if it has complements itself.
  bool add_complement(const CharacterSet& other);

  // The pattern of one character of the set, or of one outside it.
  std::string text(bool is_negated = false) const;

 private:
  std::string items_;
  std::vector<CharacterRange> additions_;  // of the properties in items_
  std::vector<std::string> complements_;   // the set has all characters that such a class lacks
};

// Oniguruma's \b and \B.
std::string word_boundary();
std::string no_word_boundary();

}  // namespace weft
