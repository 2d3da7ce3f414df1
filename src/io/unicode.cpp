#include "io/unicode.h"

#include <utf8proc.h>

#include "base/utf8.h"
#include "io/unicode_differences.h"

namespace weft {
namespace {

utf8proc_category_t category_of(char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }

bool has_word_category(char32_t c) {
  switch (category_of(c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
      return true;
    case UTF8PROC_CATEGORY_SO:
      // The signs that are Alphabetic: circled, squared and negative letters.
      return (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) || (c >= 0x1F150 && c <= 0x1F169) ||
             (c >= 0x1F170 && c <= 0x1F189);
    default:
      return c == 0x200C || c == 0x200D;
  }
}

// The letters in upper case that Unicode 15 to 17 added, with a letter in lower case for each.
struct LetterCase {
  char32_t first, last, lower;
};
constexpr LetterCase kNewCases[] = {
    {0x1C89, 0x1C89, 0x1C8A},    {0xA7CB, 0xA7CB, 0x0264},    {0xA7CC, 0xA7CC, 0xA7CD}, {0xA7CE, 0xA7CE, 0xA7CF},
    {0xA7D2, 0xA7D2, 0xA7D3},    {0xA7D4, 0xA7D4, 0xA7D5},    {0xA7DA, 0xA7DA, 0xA7DB}, {0xA7DC, 0xA7DC, 0x019B},
    {0x10D50, 0x10D65, 0x10D70}, {0x16EA0, 0x16EB8, 0x16EBB},
};

}  // namespace

bool is_white_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_numeric(char32_t c) {
  if (c < 0x80) return c >= '0' && c <= '9';
  const utf8proc_category_t category = category_of(c);
  const bool is_of_category =
      category == UTF8PROC_CATEGORY_ND || category == UTF8PROC_CATEGORY_NL || category == UTF8PROC_CATEGORY_NO;
  return is_of_category != is_different(c, CharacterProperty::numeric);
}

bool is_word_character(char32_t c) { return has_word_category(c) != is_different(c, CharacterProperty::word); }

bool is_nonspacing_mark(char32_t c) {
  return (category_of(c) == UTF8PROC_CATEGORY_MN) != is_different(c, CharacterProperty::nonspacing_mark);
}

bool is_combining_mark(char32_t c) {
  const utf8proc_category_t category = category_of(c);
  const bool is_of_category =
      category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_MC || category == UTF8PROC_CATEGORY_ME;
  return is_of_category != is_different(c, CharacterProperty::combining_mark);
}

bool is_control(char32_t c) {
  const utf8proc_category_t category = category_of(c);
  const bool is_of_category = category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF ||
                              category == UTF8PROC_CATEGORY_CS || category == UTF8PROC_CATEGORY_CO;
  return is_of_category != is_different(c, CharacterProperty::control);
}

bool is_punctuation(char32_t c) {
  const utf8proc_category_t category = category_of(c);
  return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
}

void append_lowercase(char32_t c, std::string& text) {
  // The only character whose lower case is two characters.
  if (c == 0x130) {
    text += "i\u0307";
    return;
  }
  for (const LetterCase& one : kNewCases)
    if (c >= one.first && c <= one.last) return append_utf8(one.lower + (c - one.first), text);
  append_utf8(static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))), text);
}

size_t previous_character(std::string_view text, size_t end) {
  do {
    --end;
  } while (end > 0 && is_utf8_continuation(text[end]));
  return end;
}

}  // namespace weft
