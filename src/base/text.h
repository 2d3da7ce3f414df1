#pragma once

// Text as people type and read it: near spellings, quoting for messages, UTF-8 checks, numbers with suffixes.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

// The number of single-byte insertions, deletions, substitutions and swaps of neighbours that turn one text into the
// other (optimal string alignment: no part is edited twice). Time is the product of the lengths.
std::size_t edit_distance(std::string_view a, std::string_view b);

// The candidate that someone who typed `word` most likely meant, the first of equals; nothing if none is near.
// Case does not count, and neither does `_` against `-`.
std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates);

// `, did you mean "max-model-len"?`, or nothing if no candidate is near: the end of a message about an unknown name.
std::string suggestion(std::string_view word, std::span<const std::string> candidates);

// In double quotes, on one line and safe for a terminal: quotes, backslashes, control characters (C0, DEL, C1, and the
// marks that turn the direction of text) and bytes that are not UTF-8 are written as escapes. A text of more than
// `longest` bytes is cut there and its size told.
std::string quote(std::string_view text, std::size_t longest = 120);

// An integer with an optional suffix: k, m, g, t are powers of 1000 and take a decimal fraction (25.6k is 25600); K, M,
// G, T are powers of 1024. UserError naming `[what]` for anything else, a value that is not whole or does not fit.
std::int64_t human_integer(std::string_view text, std::string_view what);

// A finite decimal number. UserError naming `[what]` for anything else.
double decimal_number(std::string_view text, std::string_view what);

// 0 to 9.
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Without ASCII white space at both ends.
std::string_view trim(std::string_view text);

// The parts between separators, trimmed; one empty part for an empty text.
std::vector<std::string> split_text(std::string_view text, char separator);

// With A-Z as a-z; other bytes are kept.
std::string to_lower_ascii(std::string_view text);

}  // namespace weft
