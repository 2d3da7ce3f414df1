#include "io/pre_tokenizer.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "base/error.h"
#include "base/utf8.h"
#include "io/byte_alphabet.h"
#include "io/unicode.h"
#include "io/unicode_differences.h"

namespace weft {

const std::string_view kGpt2Pattern = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
const std::string_view kWhiteSpacePattern = R"(\s+)";
const std::string_view kPunctuationPattern = R"([!-/:-@\[-`{-~\p{P}])";

namespace {

constexpr size_t kMaxBytes = (size_t{1} << 31) - 1;

void append_unless_empty(Pieces::Range range, std::vector<Pieces::Range>& ranges) {
  if (range.begin < range.end) ranges.push_back(range);
}

// Cuts a run of digits in front of every third one from its end. `starts` are the offsets of its digits.
void append_thousands(const std::vector<uint32_t>& starts, uint32_t end, std::vector<Pieces::Range>& ranges) {
  uint32_t begin = starts.front();
  for (size_t i = 1; i < starts.size(); ++i) {
    if ((starts.size() - i) % 3 != 0) continue;
    ranges.push_back({begin, starts[i]});
    begin = starts[i];
  }
  ranges.push_back({begin, end});
}

void split_digits(std::string_view text, Pieces::Range piece, const DigitSplit& split,
                  std::vector<Pieces::Range>& ranges) {
  uint32_t begin = piece.begin;
  std::vector<uint32_t> digits;  // offsets of those of the current run
  const auto end_part = [&](uint32_t end) {
    if (split.in_thousands && !digits.empty()) {
      append_thousands(digits, end, ranges);
    } else {
      append_unless_empty({begin, end}, ranges);
    }
    begin = end;
    digits.clear();
  };
  for (uint32_t offset = piece.begin; offset < piece.end;) {
    const Utf8Step step = utf8_step(text, offset);
    const bool numeric = is_numeric(step.character);
    if (numeric == digits.empty() || (numeric && split.individual)) end_part(offset);
    if (numeric) digits.push_back(offset);
    offset += static_cast<uint32_t>(step.length);
  }
  end_part(piece.end);
}

Pieces prefix_spaces(const Pieces& pieces) {
  Pieces result;
  result.text.reserve(pieces.text.size() + pieces.ranges.size());
  result.ranges.reserve(pieces.ranges.size());
  for (size_t i = 0; i < pieces.ranges.size(); ++i) {
    const uint32_t begin = static_cast<uint32_t>(result.text.size());
    if (pieces[i].front() != ' ') result.text += ' ';
    result.text += pieces[i];
    result.ranges.push_back({begin, static_cast<uint32_t>(result.text.size())});
  }
  return result;
}

Pieces apply_metaspace(const Pieces& pieces, const Metaspace& step, bool is_first) {
  Pieces result;
  result.text.reserve(pieces.text.size() * 5 / 4);
  std::string marked;
  for (size_t i = 0; i < pieces.ranges.size(); ++i) {
    marked.clear();
    for (const char c : pieces[i]) c == ' ' ? marked += step.mark : marked += c;
    const bool at_front = step.front == Metaspace::Front::always ||
                          (step.front == Metaspace::Front::first && is_first && pieces.ranges[i].begin == 0);
    uint32_t begin = static_cast<uint32_t>(result.text.size());
    if (at_front && !marked.starts_with(step.mark)) result.text += step.mark;
    result.text += marked;
    if (step.split) {
      for (size_t at = result.text.find(step.mark, begin + 1); at != std::string::npos;
           at = result.text.find(step.mark, at + 1)) {
        result.ranges.push_back({begin, static_cast<uint32_t>(at)});
        begin = static_cast<uint32_t>(at);
      }
    }
    append_unless_empty({begin, static_cast<uint32_t>(result.text.size())}, result.ranges);
    // A mark is longer than a space.
    USER_CHECK(result.text.size() <= kMaxBytes, "[tokenizer] a text with marks for spaces may have at most {} bytes",
               kMaxBytes);
  }
  return result;
}

// The pieces with their texts in another form.
template <class Append>
Pieces in_other_form(const Pieces& pieces, const Append& append) {
  Pieces result;
  result.text.reserve(pieces.text.size() * 5 / 4);
  for (size_t i = 0; i < pieces.ranges.size(); ++i) {
    const auto begin = static_cast<uint32_t>(result.text.size());
    append(pieces[i], result.text);
    // A byte is up to two bytes in the alphabet.
    USER_CHECK(result.text.size() <= kMaxBytes,
               "[tokenizer] a text in the byte-level alphabet may have at most {} bytes", kMaxBytes);
    result.ranges.push_back({begin, static_cast<uint32_t>(result.text.size())});
  }
  return result;
}

// A match, or the text between two matches.
struct Part {
  Pieces::Range range;
  bool is_match = false;
};

// Finds the parts of a piece that begins at `offset`. An empty match splits the piece, except directly after the last
// match: there it is ignored and the search continues at the next character.
void find_parts(const Regex& regex, bool invert, std::string_view piece, uint32_t offset, Regex::Scratch& scratch,
                std::vector<Part>& parts) {
  parts.clear();
  const auto add = [&](size_t begin, size_t end, bool is_match) {
    const Pieces::Range range{offset + static_cast<uint32_t>(begin), offset + static_cast<uint32_t>(end)};
    parts.push_back({range, is_match != invert});
  };
  size_t done = 0;  // end of the last match
  size_t from = 0;
  while (from <= piece.size()) {
    const std::optional<RegexMatch> match = regex.find(piece, from, scratch);
    if (!match) break;
    if (match->begin == match->end && match->end == done && !parts.empty()) {
      if (from >= piece.size()) break;
      from += utf8_step(piece, from).length;
      continue;
    }
    if (done < match->begin) add(done, match->begin, false);
    add(match->begin, match->end, true);
    done = from = match->end;
  }
  if (done < piece.size()) add(done, piece.size(), false);
}

// `contiguous` joins neighbours of the same kind. The merging behaviours join a match to a neighbour, unless the
// previous part (in the direction of the loop) is also a match.
void append_joined(std::vector<Part>& parts, SplitBehavior behavior, std::vector<Pieces::Range>& ranges) {
  const size_t first = ranges.size();
  if (behavior == SplitBehavior::merged_with_next) std::reverse(parts.begin(), parts.end());
  bool previous_is_match = false;
  for (const Part& part : parts) {
    const bool can_join = ranges.size() > first;
    const bool lonely_match = part.is_match && !previous_is_match;
    if (behavior == SplitBehavior::contiguous && can_join && part.is_match == previous_is_match) {
      ranges.back().end = part.range.end;
    } else if (behavior == SplitBehavior::merged_with_previous && can_join && lonely_match) {
      ranges.back().end = part.range.end;
    } else if (behavior == SplitBehavior::merged_with_next && can_join && lonely_match) {
      ranges.back().begin = part.range.begin;
    } else if (behavior != SplitBehavior::removed || !part.is_match) {
      ranges.push_back(part.range);
    }
    previous_is_match = part.is_match;
  }
  const auto begin = ranges.begin() + static_cast<ptrdiff_t>(first);
  if (behavior == SplitBehavior::merged_with_next) std::reverse(begin, ranges.end());
  const auto is_empty = [](Pieces::Range range) { return range.begin == range.end; };
  ranges.erase(std::remove_if(begin, ranges.end(), is_empty), ranges.end());
}

}  // namespace

const std::string& bert_punctuation_pattern() {
  static const std::string pattern = [] {
    std::vector<CharacterRange> added, removed = unicode_additions("P");
    for (const CharacterRange range : different_characters(CharacterProperty::punctuation))
      (is_punctuation(range.first) ? removed : added).push_back(range);
    return fmt::format("(?![{}])[!-/:-@\\[-`{{-~\\p{{P}}{}]", class_text(removed), class_text(added));
  }();
  return pattern;
}

PreTokenizer::PreTokenizer(const std::vector<PreTokenizerStep>& steps) {
  steps_.reserve(steps.size());
  for (const PreTokenizerStep& what : steps) {
    Step& step = steps_.emplace_back();
    step.what = what;
    if (const auto* split = std::get_if<PatternSplit>(&what)) {
      step.regex = split->is_literal ? Regex::literal(split->pattern) : Regex::compile(split->pattern);
    }
  }
}

bool PreTokenizer::needs_first_character() const {
  return std::any_of(steps_.begin(), steps_.end(), [](const Step& step) {
    const auto* metaspace = std::get_if<Metaspace>(&step.what);
    return metaspace != nullptr && metaspace->needs_first_character;
  });
}

Pieces PreTokenizer::split(std::string text, bool is_first) const {
  CHECK(text.size() <= kMaxBytes, "[pre_tokenizer] text of {} bytes", text.size());
  Pieces pieces;
  pieces.text = std::move(text);
  append_unless_empty({0, static_cast<uint32_t>(pieces.text.size())}, pieces.ranges);
  Regex::Scratch scratch;
  std::vector<Part> parts;
  std::vector<Pieces::Range> cut;
  bool is_in_alphabet = false;
  for (const Step& step : steps_) {
    cut.clear();
    if (const auto* split = std::get_if<PatternSplit>(&step.what)) {
      for (size_t i = 0; i < pieces.ranges.size(); ++i) {
        find_parts(*step.regex, split->invert, pieces[i], pieces.ranges[i].begin, scratch, parts);
        append_joined(parts, split->behavior, cut);
      }
      pieces.ranges.swap(cut);
    } else if (const auto* digits = std::get_if<DigitSplit>(&step.what)) {
      for (const Pieces::Range piece : pieces.ranges) split_digits(pieces.text, piece, *digits, cut);
      pieces.ranges.swap(cut);
    } else if (const auto* metaspace = std::get_if<Metaspace>(&step.what)) {
      pieces = apply_metaspace(pieces, *metaspace, is_first);
    } else if (std::holds_alternative<InByteAlphabet>(step.what)) {
      pieces = in_other_form(pieces, append_in_byte_alphabet);
      is_in_alphabet = true;
    } else {
      pieces = prefix_spaces(pieces);
    }
  }
  return is_in_alphabet ? in_other_form(pieces, append_from_byte_alphabet) : pieces;
}

}  // namespace weft
