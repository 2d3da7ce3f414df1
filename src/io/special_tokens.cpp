#include "io/special_tokens.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "base/utf8.h"
#include "io/unicode.h"

namespace weft {
namespace {

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

}  // namespace

SpecialTokenFinder::SpecialTokenFinder(const Vocabulary& vocabulary, const Normalizer* normalizer) {
  for (const AddedToken& token : vocabulary.added_tokens) {
    if (token.normalized != (normalizer != nullptr)) continue;
    const std::string& text = vocabulary.tokens[token.id];
    USER_CHECK(!text.empty() && !first_invalid_utf8(text),
               "[tokenizer] added token {} must be UTF-8 text of at least one character, but is {}", token.id,
               quote(text));
    std::string form = normalizer != nullptr ? normalizer->apply(text) : text;
    // A text that normalization removes is in no normalized text.
    if (!form.empty()) entries_.push_back({std::move(form), token, is_special_kind(vocabulary.kinds[token.id])});
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
    if (entry->token.strip_left) begin = std::max(done, strip_left(text, begin, done));
    // The search goes on after the token's own text: Hugging Face also finds tokens in white space that one strips,
    // except one that strips its left side and of which nothing is left.
    if (entry->token.strip_right) end = strip_right(text, end);
    if (begin >= end) continue;
    if (done < begin) stretches.push_back({-1, done, begin});
    stretches.push_back({entry->token.id, begin, end});
    done = end;
  }
  if (done < text.size()) stretches.push_back({-1, done, text.size()});
  return stretches;
}

}  // namespace weft
