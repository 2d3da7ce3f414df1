#include "base/utf8.h"

#include <cstdint>

namespace weft {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// The valid bytes after a lead byte: the number of continuation bytes, and the range of the first of them, which is
// narrower than 80..BF for four leads (Unicode 15, table 3-7).
struct Lead {
  int continuations = 0;
  uint8_t second_low = 0x80;
  uint8_t second_high = 0xBF;
};

Lead lead_of(uint8_t byte) {
  if (byte >= 0xC2 && byte <= 0xDF) return {1};
  if (byte == 0xE0) return {2, 0xA0, 0xBF};
  if (byte == 0xED) return {2, 0x80, 0x9F};
  if (byte >= 0xE1 && byte <= 0xEF) return {2};
  if (byte == 0xF0) return {3, 0x90, 0xBF};
  if (byte == 0xF4) return {3, 0x80, 0x8F};
  if (byte >= 0xF1 && byte <= 0xF3) return {3};
  return {};
}

}  // namespace

Utf8Step utf8_step(std::string_view text, size_t offset) {
  const uint8_t first = static_cast<uint8_t>(text[offset]);
  if (first < 0x80) return {Utf8Status::complete, first, 1};
  const Lead lead = lead_of(first);
  if (lead.continuations == 0) return {Utf8Status::broken, 0, 1};
  char32_t character = first & (0x3F >> lead.continuations);
  for (int i = 1; i <= lead.continuations; ++i) {
    const size_t length = static_cast<size_t>(i);
    if (offset + length >= text.size()) return {Utf8Status::truncated, 0, length};
    const uint8_t byte = static_cast<uint8_t>(text[offset + length]);
    const uint8_t low = i == 1 ? lead.second_low : 0x80;
    const uint8_t high = i == 1 ? lead.second_high : 0xBF;
    if (byte < low || byte > high) return {Utf8Status::broken, 0, length};
    character = (character << 6) | (byte & 0x3F);
  }
  return {Utf8Status::complete, character, static_cast<size_t>(lead.continuations) + 1};
}

std::optional<size_t> first_invalid_utf8(std::string_view text) {
  size_t offset = 0;
  while (offset < text.size()) {
    if (static_cast<uint8_t>(text[offset]) < 0x80) {
      ++offset;
      continue;
    }
    const Utf8Step step = utf8_step(text, offset);
    if (step.status != Utf8Status::complete) return offset;
    offset += step.length;
  }
  return std::nullopt;
}

size_t incomplete_utf8_suffix(std::string_view text) {
  for (size_t length = 1; length <= 3 && length <= text.size(); ++length) {
    if (is_utf8_continuation(text[text.size() - length])) continue;
    const Utf8Step step = utf8_step(text, text.size() - length);
    return step.status == Utf8Status::truncated && step.length == length ? length : 0;
  }
  return 0;
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  size_t copied = 0;
  size_t offset = 0;
  while (offset < text.size()) {
    const Utf8Step step = utf8_step(text, offset);
    if (step.status != Utf8Status::complete) {
      result.append(text, copied, offset - copied);
      result += kReplacement;
      copied = offset + step.length;
    }
    offset += step.length;
  }
  result.append(text, copied);
  return result;
}

void append_utf8(char32_t character, std::string& text) {
  const auto push = [&](char32_t bits) { text.push_back(static_cast<char>(bits)); };
  if (character < 0x80) {
    push(character);
  } else if (character < 0x800) {
    push(0xC0 | (character >> 6));
    push(0x80 | (character & 0x3F));
  } else if (character < 0x10000) {
    push(0xE0 | (character >> 12));
    push(0x80 | ((character >> 6) & 0x3F));
    push(0x80 | (character & 0x3F));
  } else {
    push(0xF0 | (character >> 18));
    push(0x80 | ((character >> 12) & 0x3F));
    push(0x80 | ((character >> 6) & 0x3F));
    push(0x80 | (character & 0x3F));
  }
}

}  // namespace weft
