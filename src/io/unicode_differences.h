#pragma once

// Hugging Face's tokenizers has the properties of characters of several versions of Unicode: those of punctuation,
// control characters and BERT's accents are of version 8, its normal forms and other accents of version 9, and letter
// case is the newest. A tokenizer has the same tokens as there only if it has the same properties.

#include <vector>

#include "io/unicode_additions.h"

namespace weft {

enum class CharacterProperty {  // in the order of the .def file
  combining_mark,
  control,
  form,  // the character takes part in decompositions, compositions or the order of marks
  nonspacing_mark,
  numeric,
  punctuation,
  word,
};

// Whether the property of a character there is not that of utf8proc.
bool is_different(char32_t character, CharacterProperty property);

// All such characters, sorted.
std::vector<CharacterRange> different_characters(CharacterProperty property);

}  // namespace weft
