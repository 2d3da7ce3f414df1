#include "io/jinja/letter_case.h"

#include <algorithm>
#include <iterator>

#include <utf8proc.h>

#include "io/jinja/text.h"

namespace weft::jinja {

namespace {

struct Expansion {
  char32_t code;
  const char32_t* upper;
};

// Sorted by code. The regular block U+1F80..U+1FAF (Greek with iota subscript) is computed instead.
constexpr Expansion kExpansions[] = {
    {0x00DF, U"\x0053\x0053"},       {0x0149, U"\x02BC\x004E"},       {0x01F0, U"\x004A\x030C"},
    {0x0390, U"\x0399\x0308\x0301"}, {0x03B0, U"\x03A5\x0308\x0301"}, {0x0587, U"\x0535\x0552"},
    {0x1E96, U"\x0048\x0331"},       {0x1E97, U"\x0054\x0308"},       {0x1E98, U"\x0057\x030A"},
    {0x1E99, U"\x0059\x030A"},       {0x1E9A, U"\x0041\x02BE"},       {0x1F50, U"\x03A5\x0313"},
    {0x1F52, U"\x03A5\x0313\x0300"}, {0x1F54, U"\x03A5\x0313\x0301"}, {0x1F56, U"\x03A5\x0313\x0342"},
    {0x1FB2, U"\x1FBA\x0399"},       {0x1FB3, U"\x0391\x0399"},       {0x1FB4, U"\x0386\x0399"},
    {0x1FB6, U"\x0391\x0342"},       {0x1FB7, U"\x0391\x0342\x0399"}, {0x1FBC, U"\x0391\x0399"},
    {0x1FC2, U"\x1FCA\x0399"},       {0x1FC3, U"\x0397\x0399"},       {0x1FC4, U"\x0389\x0399"},
    {0x1FC6, U"\x0397\x0342"},       {0x1FC7, U"\x0397\x0342\x0399"}, {0x1FCC, U"\x0397\x0399"},
    {0x1FD2, U"\x0399\x0308\x0300"}, {0x1FD3, U"\x0399\x0308\x0301"}, {0x1FD6, U"\x0399\x0342"},
    {0x1FD7, U"\x0399\x0308\x0342"}, {0x1FE2, U"\x03A5\x0308\x0300"}, {0x1FE3, U"\x03A5\x0308\x0301"},
    {0x1FE4, U"\x03A1\x0313"},       {0x1FE6, U"\x03A5\x0342"},       {0x1FE7, U"\x03A5\x0308\x0342"},
    {0x1FF2, U"\x1FFA\x0399"},       {0x1FF3, U"\x03A9\x0399"},       {0x1FF4, U"\x038F\x0399"},
    {0x1FF6, U"\x03A9\x0342"},       {0x1FF7, U"\x03A9\x0342\x0399"}, {0x1FFC, U"\x03A9\x0399"},
    {0xFB00, U"\x0046\x0046"},       {0xFB01, U"\x0046\x0049"},       {0xFB02, U"\x0046\x004C"},
    {0xFB03, U"\x0046\x0046\x0049"}, {0xFB04, U"\x0046\x0046\x004C"}, {0xFB05, U"\x0053\x0054"},
    {0xFB06, U"\x0053\x0054"},       {0xFB13, U"\x0544\x0546"},       {0xFB14, U"\x0544\x0535"},
    {0xFB15, U"\x0544\x053B"},       {0xFB16, U"\x054E\x0546"},       {0xFB17, U"\x0544\x053D"},
};

constexpr char32_t kIota = 0x399;
constexpr char32_t kIotaSubscript = 0x345;
constexpr char32_t kSigma = 0x3A3;

int code_of(char32_t code) { return static_cast<int>(code); }

bool is_broken(char32_t code) { return code >= 0xD800 && code < 0xE000; }

char32_t simple_lower(char32_t code) {
  return is_broken(code) ? code : static_cast<char32_t>(utf8proc_tolower(code_of(code)));
}

const char32_t* find_expansion(char32_t code) {
  const auto* found = std::lower_bound(std::begin(kExpansions), std::end(kExpansions), code,
                                       [](const Expansion& entry, char32_t wanted) { return entry.code < wanted; });
  return found != std::end(kExpansions) && found->code == code ? found->upper : nullptr;
}

bool has_regular_iota(char32_t code) { return code >= 0x1F80 && code <= 0x1FAF; }

void append_upper(std::string& out, char32_t code) {
  if (is_broken(code)) {
    append_character(out, code);
  } else if (has_regular_iota(code)) {
    constexpr char32_t kBases[] = {0x1F08, 0x1F28, 0x1F68};
    append_character(out, kBases[(code - 0x1F80) / 16] + (code & 7));
    append_character(out, kIota);
  } else if (const char32_t* expansion = find_expansion(code)) {
    while (*expansion != 0) append_character(out, *expansion++);
  } else {
    append_character(out, static_cast<char32_t>(utf8proc_toupper(code_of(code))));
  }
}

void append_title(std::string& out, char32_t code) {
  const char32_t* expansion = is_broken(code) || has_regular_iota(code) ? nullptr : find_expansion(code);
  const bool has_title_letter = !is_broken(code) && utf8proc_category(code_of(code)) != UTF8PROC_CATEGORY_LT &&
                                utf8proc_category(utf8proc_totitle(code_of(code))) == UTF8PROC_CATEGORY_LT;
  if (is_broken(code)) {
    append_character(out, code);
  } else if (has_regular_iota(code)) {
    append_character(out, code | 8);
  } else if (expansion != nullptr && !has_title_letter) {
    append_character(out, *expansion++);
    for (; *expansion != 0; ++expansion)
      append_character(out, *expansion == kIota ? kIotaSubscript : simple_lower(*expansion));
  } else {
    append_character(out, static_cast<char32_t>(utf8proc_totitle(code_of(code))));
  }
}

bool is_cased(char32_t code) { return is_upper(code) || is_lower(code); }

// The final-sigma rule skips marks, format characters and apostrophes: they do not end a word.
bool is_case_ignorable(char32_t code) {
  if (is_broken(code)) return false;
  switch (utf8proc_category(code_of(code))) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      return code == 0x27 || code == 0x2E || code == 0x3A || code == 0xB7 || code == 0x2019;
  }
}

bool next_is_cased(std::string_view text, std::size_t position) {
  while (position < text.size()) {
    const Character next = character_at(text, position);
    if (!is_case_ignorable(next.code)) return is_cased(next.code);
    position += next.bytes;
  }
  return false;
}

// `after_letter`: the last character before `position` that is not case-ignorable is cased.
void append_lower(std::string& out, char32_t code, std::string_view text, std::size_t position, bool after_letter) {
  if (code == 0x130) {
    append_character(out, 'i');
    append_character(out, 0x307);
  } else if (code == kSigma) {
    const std::size_t next = position + character_at(text, position).bytes;
    append_character(out, after_letter && !next_is_cased(text, next) ? 0x3C2 : 0x3C3);
  } else {
    append_character(out, simple_lower(code));
  }
}

template <class Append>
std::string map_characters(std::string_view text, Append&& append) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t position = 0; position < text.size();) {
    const Character character = character_at(text, position);
    append(out, character.code, position);
    position += character.bytes;
  }
  return out;
}

}  // namespace

bool is_upper(char32_t code) { return !is_broken(code) && utf8proc_category(code_of(code)) == UTF8PROC_CATEGORY_LU; }

bool is_lower(char32_t code) {
  if (is_broken(code)) return false;
  return utf8proc_category(code_of(code)) == UTF8PROC_CATEGORY_LL || code == 0xAA || code == 0xBA;
}

std::string to_upper(std::string_view text) {
  return map_characters(text, [](std::string& out, char32_t code, std::size_t) { append_upper(out, code); });
}

std::string to_lower(std::string_view text) {
  bool after_letter = false;
  return map_characters(text, [&](std::string& out, char32_t code, std::size_t position) {
    append_lower(out, code, text, position, after_letter);
    if (!is_case_ignorable(code)) after_letter = is_cased(code);
  });
}

std::string to_title(std::string_view text) {
  bool inside_word = false;
  bool after_letter = false;
  return map_characters(text, [&](std::string& out, char32_t code, std::size_t position) {
    if (inside_word) {
      append_lower(out, code, text, position, after_letter);
    } else {
      append_title(out, code);
    }
    inside_word = is_cased(code) || has_regular_iota(code);
    if (!is_case_ignorable(code)) after_letter = is_cased(code);
  });
}

std::string capitalize(std::string_view text) {
  bool after_letter = false;
  return map_characters(text, [&](std::string& out, char32_t code, std::size_t position) {
    if (position == 0) {
      append_title(out, code);
    } else {
      append_lower(out, code, text, position, after_letter);
    }
    if (!is_case_ignorable(code)) after_letter = is_cased(code);
  });
}

std::string swap_case(std::string_view text) {
  bool after_letter = false;
  return map_characters(text, [&](std::string& out, char32_t code, std::size_t position) {
    if (is_upper(code)) {
      append_lower(out, code, text, position, after_letter);
    } else if (is_lower(code)) {
      append_upper(out, code);
    } else {
      append_character(out, code);
    }
    if (!is_case_ignorable(code)) after_letter = is_cased(code);
  });
}

std::string upper_first(std::string_view word) {
  if (word.empty()) return {};
  const std::size_t first = character_at(word, 0).bytes;
  return to_upper(word.substr(0, first)) + to_lower(word.substr(first));
}

}  // namespace weft::jinja
