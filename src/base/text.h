#pragma once

// Helpers for text that users type and read: near spellings, quoting for messages, UTF-8 checks, numbers with suffixes.

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

// The candidate nearest to `word`, and among equals the first; nullopt if none is near. It ignores case, and `_` equals
// `-`.
std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates);

// `, did you mean "max-model-len"?`, or "" if no candidate is near. It ends a message about an unknown name.
std::string suggestion(std::string_view word, std::span<const std::string> candidates);

// The same, but all candidates if none is near, for names that are few.
std::string suggestion_or_all(std::string_view word, std::span<const std::string> candidates);

// Quotes the text in double quotes, on one line and safe for a terminal: quotes, backslashes, control characters (C0,
// DEL, C1, and marks that change the text direction) and bytes that are not UTF-8 are written as escapes. A text of
// more than `longest` bytes is truncated, and its size is appended. An empty text is `"" (empty)`.
std::string quote(std::string_view text, std::size_t longest = 120);

// The text with `to` instead of each `from`, which must not be empty.
std::string replace_all(std::string_view text, std::string_view from, std::string_view to);

// An integer with an optional suffix: k, m, g, t are powers of 1000 and take a decimal fraction (25.6k is 25600); K, M,
// G, T are powers of 1024. UserError that names `[what]` for other text and for a value that is not whole or does not
// fit.
std::int64_t human_integer(std::string_view text, std::string_view what);

// A finite decimal number. UserError that names `[what]` for other text.
double decimal_number(std::string_view text, std::string_view what);

// 0 to 9.
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The text without ASCII white space at both ends.
std::string_view trim(std::string_view text);

// The parts between separators, trimmed; one empty part for an empty text.
std::vector<std::string> split_text(std::string_view text, char separator);

// The text with A-Z as a-z; other bytes are unchanged.
std::string to_lower_ascii(std::string_view text);

}  // namespace weft
