#include "io/normalizer.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>
#include <optional>

#include <utf8proc.h>

#include "base/error.h"
#include "base/text.h"
#include "base/utf8.h"
#include "io/character_map.h"
#include "io/regex.h"
#include "io/unicode.h"
#include "io/unicode_differences.h"
#include "io/vocabulary.h"

namespace weft {
namespace {

struct FreeMemory {
  void operator()(utf8proc_uint8_t* memory) const { std::free(memory); }
};

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<uint8_t>(c) < 0x80; });
}

int options_of(UnicodeForm form) {
  switch (form) {
    case UnicodeForm::nfc:
      return UTF8PROC_STABLE | UTF8PROC_COMPOSE;
    case UnicodeForm::nfd:
      return UTF8PROC_STABLE | UTF8PROC_DECOMPOSE;
    case UnicodeForm::nfkc:
      return UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT;
    case UnicodeForm::nfkd:
      return UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT;
  }
  return 0;
}

std::string known_in_form(std::string_view text, UnicodeForm form) {
  utf8proc_uint8_t* mapped = nullptr;
  const utf8proc_ssize_t size =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
                   &mapped, static_cast<utf8proc_option_t>(options_of(form)));
  const std::unique_ptr<utf8proc_uint8_t, FreeMemory> owner(mapped);
  if (size == UTF8PROC_ERROR_NOMEM) throw std::bad_alloc();
  CHECK(size >= 0, "[tokenizer] a Unicode form of {} bytes: {}", text.size(), utf8proc_errmsg(size));
  return std::string(reinterpret_cast<const char*>(mapped), static_cast<size_t>(size));
}

// A character without form stays, and no other one combines with it.
std::string in_form(std::string_view text, UnicodeForm form) {
  if (is_ascii(text)) return std::string(text);
  std::string result;
  size_t known = 0;  // where the text since the last such character begins
  for (size_t at = 0; at < text.size();) {
    const Utf8Step step = utf8_step(text, at);
    const size_t end = at + step.length;
    if (step.character >= 0x80 && is_different(step.character, CharacterProperty::form)) {
      result += known_in_form(text.substr(known, at - known), form);
      result += text.substr(at, step.length);
      known = end;
    }
    at = end;
  }
  return result + known_in_form(text.substr(known), form);
}

// Calls `append(character, result)` for each character.
template <class Append>
std::string for_each_character(std::string_view text, const Append& append) {
  std::string result;
  result.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const Utf8Step step = utf8_step(text, at);
    append(step.character, result);
    at += step.length;
  }
  return result;
}

std::string replace(std::string_view text, const Regex& pattern, std::string_view replacement) {
  Regex::Scratch scratch;
  std::string result;
  size_t done = 0;
  bool has_matched = false;
  for (size_t from = 0; from <= text.size();) {
    const std::optional<RegexMatch> match = pattern.find(text, from, scratch);
    if (!match) break;
    const bool is_empty = match->begin == match->end;
    // An empty match directly after another one does not count.
    if (!is_empty || !has_matched || match->begin != done) {
      result += text.substr(done, match->begin - done);
      result += replacement;
      done = match->end;
      has_matched = true;
    }
    from = match->end;
    if (!is_empty) continue;
    if (from >= text.size()) break;
    from += utf8_step(text, from).length;
  }
  result += text.substr(done);
  return result;
}

std::string strip(std::string_view text, StripSpaces ends) {
  size_t begin = 0, end = text.size();
  while (ends.left && begin < end) {
    const Utf8Step step = utf8_step(text, begin);
    if (!is_white_space(step.character)) break;
    begin += step.length;
  }
  while (ends.right && end > begin) {
    const size_t last = previous_character(text, end);
    if (!is_white_space(utf8_step(text, last).character)) break;
    end = last;
  }
  return std::string(text.substr(begin, end - begin));
}

std::string squeeze(std::string_view text) {
  std::string result;
  for (const char c : text)
    if (c != ' ' || (!result.empty() && result.back() != ' ')) result += c;
  while (true) {
    if (result.ends_with(' ')) {
      result.pop_back();
    } else if (result.ends_with(kSpaceMark)) {  // SentencePiece strips the end after it has written the marks
      result.resize(result.size() - kSpaceMark.size());
    } else {
      return result;
    }
  }
}

// The blocks that BERT's own tokenizer names.
bool is_chinese(char32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
         (c >= 0x2A700 && c <= 0x2B73F) || (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

std::string normalize_for_bert(std::string_view text, const BertText& what) {
  std::string result = for_each_character(text, [&](char32_t c, std::string& out) {
    if (what.clean) {
      const bool is_kept = c == '\t' || c == '\n' || c == '\r';
      if (!is_kept && (c == 0 || c == 0xFFFD || is_control(c))) return;
      if (is_white_space(c)) c = ' ';
    }
    const bool is_apart = what.separate_chinese && is_chinese(c);
    if (is_apart) out += ' ';
    append_utf8(c, out);
    if (is_apart) out += ' ';
  });
  if (what.strip_accents) {
    result = for_each_character(in_form(result, UnicodeForm::nfd), [](char32_t c, std::string& out) {
      if (!is_nonspacing_mark(c)) append_utf8(c, out);
    });
  }
  return what.lowercase ? for_each_character(result, append_lowercase) : result;
}

}  // namespace

struct Normalizer::Step {
  NormalizerStep what;
  std::optional<Regex> regex;       // for a ReplaceText that is not literal
  std::optional<CharacterMap> map;  // for a MapCharacters

  std::string operator()(std::string_view text, UnicodeForm form) const { return in_form(text, form); }
  std::string operator()(std::string_view text, const PrependText& prepend) const {
    return text.empty() && !prepend.also_if_removed ? std::string() : prepend.text + std::string(text);
  }
  std::string operator()(std::string_view text, const ReplaceText& one) const {
    if (regex) return replace(text, *regex, one.replacement);
    return one.pattern.empty() ? std::string(text) : replace_all(text, one.pattern, one.replacement);
  }
  std::string operator()(std::string_view text, StripSpaces ends) const { return strip(text, ends); }
  std::string operator()(std::string_view text, SqueezeSpaces) const { return squeeze(text); }
  std::string operator()(std::string_view text, Lowercase) const { return for_each_character(text, append_lowercase); }
  std::string operator()(std::string_view text, StripAccents) const {
    return for_each_character(text, [](char32_t c, std::string& out) {
      if (!is_combining_mark(c)) append_utf8(c, out);
    });
  }
  std::string operator()(std::string_view text, const BertText& bert) const { return normalize_for_bert(text, bert); }
  std::string operator()(std::string_view text, const MapCharacters& one) const {
    return one.by_grapheme ? map->apply_by_grapheme(text) : map->apply(text);
  }
};

Normalizer::Normalizer(const std::vector<NormalizerStep>& steps) {
  steps_.reserve(steps.size());
  for (const NormalizerStep& what : steps) {
    Step& step = steps_.emplace_back();
    step.what = what;
    if (const auto* one = std::get_if<ReplaceText>(&what); one && !one->is_literal)
      step.regex = Regex::compile(one->pattern);
    if (auto* map = std::get_if<MapCharacters>(&step.what)) {
      step.map.emplace(map->bytes);
      map->bytes = {};
    }
  }
}

Normalizer::~Normalizer() = default;
Normalizer::Normalizer(Normalizer&&) noexcept = default;
Normalizer& Normalizer::operator=(Normalizer&&) noexcept = default;

bool Normalizer::removes_first(std::string_view text, std::string_view normal) const {
  if (text.empty()) return false;
  const size_t first = utf8_step(text, 0).length;
  std::string result(text.substr(0, first));
  for (const Step& step : steps_) {
    result = std::visit([&](const auto& what) { return step(result, what); }, step.what);
    const auto* const map = std::get_if<MapCharacters>(&step.what);
    if (result.empty() && map != nullptr && map->by_grapheme) return false;
  }
  return result.empty() && apply(text.substr(first)) == normal;
}

std::string Normalizer::apply(std::string_view text) const {
  std::string result(text);
  for (const Step& step : steps_) result = std::visit([&](const auto& what) { return step(result, what); }, step.what);
  return result;
}

}  // namespace weft
