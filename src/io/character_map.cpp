#include "io/character_map.h"

#include <bit>
#include <cstring>

#include <utf8proc.h>

#include "base/error.h"
#include "base/utf8.h"

namespace weft {
namespace {

// A unit of a darts-clone double array. Source: include/darts.h of s-yata/darts-clone.
bool has_leaf(uint32_t unit) { return ((unit >> 8) & 1) != 0; }
uint32_t value_of(uint32_t unit) { return unit & 0x7FFFFFFF; }
uint32_t label_of(uint32_t unit) { return unit & 0x800000FF; }
uint32_t offset_of(uint32_t unit) { return (unit >> 10) << ((unit & 0x200) >> 6); }

constexpr size_t kLongestGrapheme = 6;  // in bytes, exclusive

}  // namespace

CharacterMap::CharacterMap(std::string_view bytes) {
  static_assert(std::endian::native == std::endian::little);
  constexpr const char* kWhat = "[tokenizer] the precompiled character map";
  uint32_t trie_bytes = 0;
  USER_CHECK(bytes.size() >= sizeof trie_bytes, "{} must begin with the size of its trie, but has {} bytes", kWhat,
             bytes.size());
  std::memcpy(&trie_bytes, bytes.data(), sizeof trie_bytes);
  bytes.remove_prefix(sizeof trie_bytes);
  USER_CHECK(trie_bytes % sizeof(uint32_t) == 0 && trie_bytes >= sizeof(uint32_t) && trie_bytes <= bytes.size(),
             "{} must have a trie of at most {} bytes in units of 4, but the trie has {}", kWhat, bytes.size(),
             trie_bytes);
  units_.resize(trie_bytes / sizeof(uint32_t));
  std::memcpy(units_.data(), bytes.data(), trie_bytes);
  replacements_ = bytes.substr(trie_bytes);
  USER_CHECK(!replacements_.empty() && replacements_.back() == '\0', "{} must end with a zero byte, but {}", kWhat,
             replacements_.empty() ? "has no replacements" : "does not");
  if (const auto bad = first_invalid_utf8(replacements_))
    fail_user("{} must have replacements in UTF-8, but byte {} of them is not part of a character", kWhat, *bad);
}

// Each step consumes a byte of the text, so a broken trie cannot make this loop.
CharacterMap::Match CharacterMap::match(std::string_view text, bool longest) const {
  Match found;
  size_t at = offset_of(units_[0]);
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    at ^= byte;
    if (at >= units_.size() || label_of(units_[at]) != byte) break;
    const uint32_t unit = units_[at];
    at ^= offset_of(unit);
    if (at >= units_.size()) break;
    if (!has_leaf(unit)) continue;
    const size_t begin = value_of(units_[at]);
    // A broken trie may point between the bytes of a character.
    if (begin >= replacements_.size() || is_utf8_continuation(replacements_[begin])) break;
    found = {i + 1, std::string_view(replacements_.c_str() + begin)};
    if (!longest) break;
  }
  return found;
}

std::string CharacterMap::apply(std::string_view text) const {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const Match found = match(text, true);
    const size_t one = utf8_step(text, 0).length;
    // A key in a broken trie may end inside a character.
    const bool is_whole =
        found.length == text.size() || (found.length > 0 && !is_utf8_continuation(text[found.length]));
    result += is_whole ? found.replacement : text.substr(0, one);
    text.remove_prefix(is_whole ? found.length : one);
  }
  return result;
}

void CharacterMap::append_mapped(std::string_view part, std::string& result) const {
  for (size_t i = 0; i < part.size();) {
    const size_t length = utf8_step(part, i).length;
    const Match found = match(part.substr(i, length), false);
    result += found.length > 0 ? found.replacement : part.substr(i, length);
    i += length;
  }
}

std::string CharacterMap::apply_by_grapheme(std::string_view text) const {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    size_t end = 0;
    utf8proc_int32_t state = 0;
    for (char32_t previous = 0; end < text.size();) {
      const Utf8Step step = utf8_step(text, end);
      if (end > 0 && utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(previous),
                                                      static_cast<utf8proc_int32_t>(step.character), &state))
        break;
      previous = step.character;
      end += step.length;
    }
    const std::string_view grapheme = text.substr(0, end);
    const Match whole = grapheme.size() < kLongestGrapheme ? match(grapheme, false) : Match();
    if (whole.length > 0) {
      result += whole.replacement;
    } else {
      append_mapped(grapheme, result);
    }
    text.remove_prefix(end);
  }
  return result;
}

}  // namespace weft
