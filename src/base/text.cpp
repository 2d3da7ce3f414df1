#include "base/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include <fmt/ranges.h>

#include "base/error.h"
#include "base/utf8.h"

namespace weft {
namespace {

// Longer than any known name. A longer word is not a misspelling, and the comparison would take long.
constexpr std::size_t kLongestWord = 256;

std::string folded(std::string_view word) {
  std::string text = to_lower_ascii(word);
  std::replace(text.begin(), text.end(), '_', '-');
  return text;
}

bool disturbs_a_terminal(std::uint32_t point) {
  const bool control = point < 0x20 || (point >= 0x7F && point <= 0x9F);
  const bool direction_mark = point == 0x061C || point == 0x200E || point == 0x200F ||
                              (point >= 0x202A && point <= 0x202E) || (point >= 0x2066 && point <= 0x2069);
  const bool line_break = point == 0x2028 || point == 0x2029;
  return control || direction_mark || line_break;
}

void append_escaped(std::string& out, std::uint32_t point, std::string_view sequence) {
  switch (point) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      break;
  }
  if (disturbs_a_terminal(point)) {
    out += fmt::format("\\u{{{:x}}}", point);
  } else {
    out += sequence;
  }
}

struct Suffix {
  std::int64_t factor;
  int fraction_digits;  // how many decimals give an integer; 0: no fraction
};

std::optional<Suffix> suffix_of(char c) {
  constexpr std::int64_t k = 1000;
  constexpr std::int64_t K = 1024;
  switch (c) {
    case 'k':
      return Suffix{k, 3};
    case 'm':
      return Suffix{k * k, 6};
    case 'g':
      return Suffix{k * k * k, 9};
    case 't':
      return Suffix{k * k * k * k, 12};
    case 'K':
      return Suffix{K, 0};
    case 'M':
      return Suffix{K * K, 0};
    case 'G':
      return Suffix{K * K * K, 0};
    case 'T':
      return Suffix{K * K * K * K, 0};
    default:
      return std::nullopt;
  }
}

// Returns the number with its sign, or nullopt if the text is not a run of digits or is out of range.
std::optional<std::int64_t> signed_digits(std::string_view digits, bool negative) {
  if (digits.empty() || !std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; })) {
    return std::nullopt;
  }
  std::int64_t value = 0;
  for (const char c : digits) {
    const std::int64_t digit = negative ? -(c - '0') : c - '0';
    if (__builtin_mul_overflow(value, std::int64_t{10}, &value)) return std::nullopt;
    if (__builtin_add_overflow(value, digit, &value)) return std::nullopt;
  }
  return value;
}

std::optional<std::int64_t> parse_human_integer(std::string_view text) {
  const bool negative = !text.empty() && text.front() == '-';
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) text.remove_prefix(1);
  if (text.empty()) return std::nullopt;
  const std::optional<Suffix> suffix = suffix_of(text.back());
  if (suffix) text.remove_suffix(1);

  const std::size_t point = text.find('.');
  if (point == std::string_view::npos) {
    std::optional<std::int64_t> value = signed_digits(text, negative);
    if (value && suffix && __builtin_mul_overflow(*value, suffix->factor, &*value)) return std::nullopt;
    return value;
  }
  if (!suffix || suffix->fraction_digits == 0) return std::nullopt;
  std::string digits(text.substr(0, point));
  std::string_view fraction = text.substr(point + 1);
  if (digits.empty() || fraction.empty()) return std::nullopt;
  const auto whole_digits = static_cast<std::size_t>(suffix->fraction_digits);
  while (fraction.size() > whole_digits && fraction.back() == '0') fraction.remove_suffix(1);
  if (fraction.size() > whole_digits) return std::nullopt;
  digits += fraction;
  digits.append(whole_digits - fraction.size(), '0');
  return signed_digits(digits, negative);
}

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // Three rows of the table are kept: swaps need the row before the last.
  std::vector<std::size_t> before_last(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substitution = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, substitution});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
    before_last.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

namespace {

// Whether a beginning of the text is the word but for a fifth of its letters.
bool begins_almost(std::string_view text, std::string_view word) {
  const std::size_t allowed = word.size() / 5;
  for (std::size_t length = word.size() - allowed; length <= word.size() + allowed; ++length)
    if (length <= text.size() && edit_distance(word, text.substr(0, length)) <= allowed) return true;
  return false;
}

}  // namespace

std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates) {
  if (word.empty() || word.size() > kLongestWord) return std::nullopt;
  const std::string wanted = folded(word);
  const std::string* best = nullptr;
  std::size_t best_distance = std::numeric_limits<std::size_t>::max();
  for (const std::string& candidate : candidates) {
    const std::string known = folded(candidate);
    const std::size_t distance = edit_distance(wanted, known);
    // At most a third of the letters may differ. With a fixed limit, all short words would be near each other.
    const std::size_t allowed = std::max(wanted.size(), known.size()) / 3;
    if (distance <= allowed && distance < best_distance) {
      best = &candidate;
      best_distance = distance;
    }
  }
  if (best == nullptr && wanted.size() >= 3) {
    const auto begins = [&](const std::string& candidate) { return begins_almost(folded(candidate), wanted); };
    const auto found = std::find_if(candidates.begin(), candidates.end(), begins);
    if (found != candidates.end()) best = &*found;
  }
  if (best == nullptr) return std::nullopt;
  return *best;
}

std::string suggestion_or_all(std::string_view word, std::span<const std::string> candidates) {
  const std::string near = suggestion(word, candidates);
  return near.empty() && !candidates.empty() ? fmt::format("; there are {}", fmt::join(candidates, ", ")) : near;
}

std::string suggestion(std::string_view word, std::span<const std::string> candidates) {
  const std::optional<std::string> near = nearest(word, candidates);
  return near ? fmt::format(", did you mean {}?", quote(*near)) : "";
}

std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  std::string result;
  std::size_t done = 0;
  for (std::size_t at = text.find(from); at != text.npos; at = text.find(from, done)) {
    result += text.substr(done, at - done);
    result += to;
    done = at + from.size();
  }
  result += text.substr(done);
  return result;
}

std::string quote(std::string_view text, std::size_t longest) {
  if (text.empty()) return "\"\" (empty)";
  std::string out = "\"";
  std::size_t offset = 0;
  while (offset < text.size()) {
    const Utf8Step step = utf8_step(text, offset);
    const bool whole = step.status == Utf8Status::complete;
    const std::size_t taken = whole ? step.length : 1;
    if (offset + taken > longest) break;
    if (whole) {
      append_escaped(out, step.character, text.substr(offset, taken));
    } else {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[offset]));
    }
    offset += taken;
  }
  out += '"';
  if (offset < text.size()) out += fmt::format("... ({} bytes)", text.size());
  return out;
}

std::int64_t human_integer(std::string_view text, std::string_view what) {
  const std::optional<std::int64_t> value = parse_human_integer(text);
  USER_CHECK(value.has_value(),
             "[{}] wanted a whole number from -2^63 to 2^63 - 1 (1k = 1000, 1K = 1024, 2.5k = 2500), but is {}", what,
             quote(text));
  return *value;
}

double decimal_number(std::string_view text, std::string_view what) {
  double value = 0;
  const char* end = text.data() + text.size();
  const std::from_chars_result result = std::from_chars(text.data(), end, value);
  USER_CHECK(result.ec == std::errc() && result.ptr == end && std::isfinite(value),
             "[{}] wanted a finite number, but is {}", what, quote(text));
  return value;
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kWhiteSpace = " \t\n\r\f\v";
  const std::size_t first = text.find_first_not_of(kWhiteSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kWhiteSpace) - first + 1);
}

std::vector<std::string> split_text(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.emplace_back(trim(text.substr(0, end)));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::string to_lower_ascii(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

}  // namespace weft
