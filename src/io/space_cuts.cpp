#include "io/space_cuts.h"

#include <algorithm>

namespace weft {
namespace {

// The first mark after `begin` that follows another character; npos if there is none.
size_t inner_mark(std::string_view text, size_t begin) {
  for (size_t at = text.find(kSpaceMark, begin + 1); at != text.npos;
       at = text.find(kSpaceMark, at + kSpaceMark.size()))
    if (!text.substr(0, at).ends_with(kSpaceMark)) return at;
  return text.npos;
}

}  // namespace

SpaceCuts::SpaceCuts(const Vocabulary& vocabulary) {
  if (vocabulary.byte_alphabet) return;
  bool has_mark = false;
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    if (vocabulary.kinds[id] != TokenKind::normal) continue;
    const std::string& token = vocabulary.tokens[id];
    has_mark = has_mark || token == kSpaceMark;
    if (inner_mark(token, 0) != token.npos) return;
  }
  // A mark without token would be part of a run of unknown characters, which must not be cut.
  can_cut_ = has_mark;
}

size_t SpaceCuts::next(std::string_view text, size_t begin) const {
  return can_cut_ ? std::min(inner_mark(text, begin), text.size()) : text.size();
}

}  // namespace weft
