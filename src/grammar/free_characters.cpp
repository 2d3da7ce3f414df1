#include "grammar/free_characters.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/utf8.h"

namespace weft::grammar {
namespace {

// More states within one character than this are not followed.
constexpr std::size_t kMostStatesOfByte = 8;
// Longer texts are walked, unless one character leads back to the same state.
constexpr std::uint32_t kMostCharacters = 64;
// What is known of a state costs as much as a walk over some hundred nodes.
constexpr std::uint32_t kFirstQuestions = 32;

}  // namespace

// The state after each of the characters; kDead if there is not one for all, or if one of them is not allowed.
StateId FreeCharacters::after_ranges(StateId state, const CharacterRanges& ranges) {
  std::vector<StateId> before = {state}, after;
  for (std::size_t i = 0; i < ranges.length; ++i) {
    after.clear();
    for (const StateId one : before) {
      int last_class = -1;
      for (int byte = ranges.bytes[i].first; byte <= ranges.bytes[i].last; ++byte) {
        // Bytes of a class lead to the same state.
        const int byte_class = states_.grammar().class_of(static_cast<std::uint8_t>(byte));
        if (byte_class == last_class) continue;
        last_class = byte_class;
        const StateId next = states_.step(one, static_cast<std::uint8_t>(byte));
        if (!is_free(next)) return kDead;
        if (std::find(after.begin(), after.end(), next) == after.end()) after.push_back(next);
      }
    }
    if (after.size() > kMostStatesOfByte) return kDead;
    std::swap(before, after);
  }
  return before.size() == 1 ? before[0] : kDead;
}

// The kinds of one character that lead to the same state, which most kinds lead to.
void FreeCharacters::add_one_character(StateId state, Known& known) {
  std::array<StateId, kKinds> next;
  next.fill(kDead);
  const auto all = character_ranges();
  for (std::size_t i = 0; i < all.size();) {
    const int kind = all[i].kind;
    StateId common = after_ranges(state, all[i]);
    for (++i; i < all.size() && all[i].kind == kind; ++i)
      if (common != kDead && after_ranges(state, all[i]) != common) common = kDead;
    next[static_cast<std::size_t>(kind)] = common;
  }
  std::ptrdiff_t most = 0;
  for (const StateId one : next) {
    const auto count = std::count(next.begin(), next.end(), one);
    if (one == kDead || count <= most) continue;
    most = count;
    known.next = one;
  }
  KindSet kinds = 0;
  for (std::size_t kind = 0; kind < next.size(); ++kind)
    if (next[kind] != kDead && next[kind] == known.next) kinds |= KindSet{1} << kind;
  known.counts = {kinds};
}

KindSet FreeCharacters::first_bytes(StateId state) {
  std::array<KindSet, 256> kind_of;
  kind_of.fill(kNoCharacters);
  for (const CharacterRanges& ranges : character_ranges())
    for (int byte = ranges.bytes[0].first; byte <= ranges.bytes[0].last; ++byte)
      kind_of[static_cast<std::size_t>(byte)] = KindSet{1} << ranges.kind;
  KindSet kinds = 0;
  for (std::size_t byte = 0; byte < 256; ++byte) {
    if (states_.step(state, static_cast<std::uint8_t>(byte)) == kDead) continue;
    kinds |= kind_of[byte];
    // Within a character: what is below a node says nothing of its other bytes.
    if (is_utf8_continuation(static_cast<char>(byte))) return ~KindSet{0};
  }
  return kinds;
}

FreeCharacters::Known& FreeCharacters::of(StateId state) {
  if (state >= by_state_.size()) by_state_.resize(state + std::size_t{1}, nullptr);
  if (by_state_[state] == nullptr) by_state_[state] = &all_.emplace_back();
  return *by_state_[state];
}

FreeCharacters::Known& FreeCharacters::made(StateId state) {
  Known& known = of(state);
  if (known.is_made) return known;
  known.is_made = true;
  try {
    known.possible = first_bytes(state);
    add_one_character(state, known);
  } catch (const UserError&) {
    known.counts = {0};  // too many derivations: a walk reports it if a token leads there
  }
  return known;
}

bool FreeCharacters::is_worth(StateId state) {
  Known& known = of(state);
  if (known.is_made) return true;
  if (++known.questions <= kFirstQuestions) return false;
  made(state);
  return true;
}

KindSet FreeCharacters::kinds(StateId state, std::uint32_t count) {
  return is_worth(state) ? kinds_of(made(state), state, count) : 0;
}

KindSet FreeCharacters::limited_kinds(StateId state) {
  if (!is_worth(state)) return 0;
  Known& first = made(state);
  const KindSet kinds = first.counts[0];
  if (first.limit == kUnknownLimit) {
    first.limit = 0;
    StateId at = state;
    for (std::uint32_t count = 1; count <= kMostCharacters && made(at).counts[0] == kinds && kinds != 0; ++count) {
      at = made(at).next;
      if ((made(at).possible & kinds) != 0) continue;
      first.limit = count;
      break;
    }
  }
  return first.limit == 0 ? 0 : kinds;
}

KindSet FreeCharacters::possible(StateId state) { return is_worth(state) ? of(state).possible : ~KindSet{0}; }

KindSet FreeCharacters::kinds_of(Known& known, StateId state, std::uint32_t count) {
  // After characters that lead back to the same state nothing changes.
  if (known.next == state || known.counts[0] == 0) return known.counts[0];
  if (count > kMostCharacters) return 0;
  while (known.counts.size() < count) {
    if (known.counts.back() == 0) return 0;
    const auto before = static_cast<std::uint32_t>(known.counts.size());
    known.counts.push_back(known.counts[0] & kinds_of(made(known.next), known.next, before));
  }
  return known.counts[count - 1];
}

void FreeCharacters::clear() {
  all_.clear();
  by_state_.clear();
}

}  // namespace weft::grammar
