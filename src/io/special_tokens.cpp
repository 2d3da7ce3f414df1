#include "io/special_tokens.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>

#include <utf8proc.h>

#include "base/error.h"
#include "base/text.h"
#include "base/utf8.h"

namespace weft {
namespace {

// Unicode's White_Space (PropList.txt, Unicode 15).
bool is_white_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

// \w of UTS 18, annex C, but with letter-like numbers and marks instead of the property Alphabetic.
bool is_word_character(char32_t c) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
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
    default:
      return c == 0x200C || c == 0x200D;
  }
}

// Returns the first byte of the character that ends at `end`, which must not be 0.
size_t previous_character(std::string_view text, size_t end) {
  do {
    --end;
  } while (end > 0 && (static_cast<uint8_t>(text[end]) & 0xC0) == 0x80);
  return end;
}

bool stands_alone(std::string_view text, size_t begin, size_t end) {
  if (begin > 0 && is_word_character(utf8_step(text, previous_character(text, begin)).character)) return false;
  return end == text.size() || !is_word_character(utf8_step(text, end).character);
}

size_t strip_left(std::string_view text, size_t begin, size_t limit) {
  while (begin > limit) {
    const size_t before = previous_character(text, begin);
    if (!is_white_space(utf8_step(text, before).character)) break;
    begin = before;
  }
  return begin;
}

size_t strip_right(std::string_view text, size_t end) {
  while (end < text.size()) {
    const Utf8Step step = utf8_step(text, end);
    if (!is_white_space(step.character)) break;
    end += step.length;
  }
  return end;
}

struct FreeMemory {
  void operator()(utf8proc_uint8_t* memory) const { std::free(memory); }
};

}  // namespace

std::string normalize(std::string_view text, Normalizer normalizer) {
  const bool is_ascii = std::all_of(text.begin(), text.end(), [](char c) { return static_cast<uint8_t>(c) < 0x80; });
  if (normalizer == Normalizer::none || is_ascii) return std::string(text);
  utf8proc_uint8_t* mapped = nullptr;
  const utf8proc_ssize_t size =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
                   &mapped, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  const std::unique_ptr<utf8proc_uint8_t, FreeMemory> owner(mapped);
  if (size == UTF8PROC_ERROR_NOMEM) throw std::bad_alloc();
  CHECK(size >= 0, "[tokenizer] NFC of {} bytes: {}", text.size(), utf8proc_errmsg(size));
  return std::string(reinterpret_cast<const char*>(mapped), static_cast<size_t>(size));
}

SpecialTokenFinder::SpecialTokenFinder(const Vocabulary& vocabulary, bool normalized) {
  for (const AddedToken& token : vocabulary.added_tokens) {
    if (token.normalized != normalized) continue;
    const std::string& text = vocabulary.tokens[token.id];
    USER_CHECK(!text.empty() && !first_invalid_utf8(text),
               "[tokenizer] added token {} must be UTF-8 text of at least one character, but is {}", token.id,
               quote(text));
    const TokenKind kind = vocabulary.kinds[token.id];
    entries_.push_back({normalized ? normalize(text, vocabulary.normalizer) : text, token,
                        kind == TokenKind::control || kind == TokenKind::unknown});
  }
  // Two texts may have the same normal form; then the lower id wins.
  std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
    return a.text != b.text ? a.text < b.text : a.token.id < b.token.id;
  });
  const auto same_text = [](const Entry& a, const Entry& b) { return a.text == b.text; };
  entries_.erase(std::unique(entries_.begin(), entries_.end(), same_text), entries_.end());
  for (const Entry& entry : entries_) ++first_with_[static_cast<uint8_t>(entry.text.front()) + 1];
  for (size_t byte = 0; byte < 256; ++byte) first_with_[byte + 1] += first_with_[byte];
}

// Narrows the range of sorted entries byte by byte. An entry that ends at the current depth sorts before longer ones.
const SpecialTokenFinder::Entry* SpecialTokenFinder::longest_at(std::string_view text, size_t offset) const {
  const uint8_t first = static_cast<uint8_t>(text[offset]);
  auto low = entries_.begin() + first_with_[first];
  auto high = entries_.begin() + first_with_[first + 1];
  const Entry* longest = nullptr;
  for (size_t depth = 1; low != high; ++depth) {
    if (low->text.size() == depth) longest = &*low++;
    if (offset + depth >= text.size()) break;
    const uint8_t wanted = static_cast<uint8_t>(text[offset + depth]);
    const auto byte_of = [depth](const Entry& entry) { return static_cast<uint8_t>(entry.text[depth]); };
    low = std::partition_point(low, high, [&](const Entry& entry) { return byte_of(entry) < wanted; });
    high = std::partition_point(low, high, [&](const Entry& entry) { return byte_of(entry) <= wanted; });
  }
  return longest;
}

std::vector<SpecialTokenFinder::Stretch> SpecialTokenFinder::split(std::string_view text, bool parse_special) const {
  std::vector<Stretch> stretches;
  size_t done = 0;
  size_t offset = entries_.empty() ? text.size() : 0;
  while (offset < text.size()) {
    const Entry* entry = longest_at(text, offset);
    if (!entry) {
      ++offset;
      continue;
    }
    size_t begin = offset;
    size_t end = offset + entry->text.size();
    offset = end;
    if (entry->is_special && !parse_special) continue;
    if (entry->token.single_word && !stands_alone(text, begin, end)) continue;
    if (entry->token.strip_left) begin = strip_left(text, begin, done);
    if (entry->token.strip_right) offset = end = strip_right(text, end);
    if (done < begin) stretches.push_back({-1, done, begin});
    stretches.push_back({entry->token.id, begin, end});
    done = end;
  }
  if (done < text.size()) stretches.push_back({-1, done, text.size()});
  return stretches;
}

}  // namespace weft
