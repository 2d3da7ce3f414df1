#include "grammar/token_masks.h"

namespace weft::grammar {
namespace {

// Taken as the most rules that one token enters: brackets that it opens, and rules that begin with other rules.
constexpr std::uint32_t kDeepestToken = 200;

}  // namespace

std::size_t MaskCache::size_of(const Entry& entry) {
  return entry.tokens.size() * sizeof(entry.tokens[0]) + entry.exits.size() * sizeof(std::uint32_t) + 128;
}

std::shared_ptr<const MaskCache::Entry> MaskCache::find(const Key& key) {
  const std::lock_guard lock(mutex_);
  const auto found = index_.find(key);
  if (found == index_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->second;
}

std::shared_ptr<const MaskCache::Entry> MaskCache::add(const Key& key, Entry entry) {
  const std::lock_guard lock(mutex_);
  bytes_ += size_of(entry);
  entries_.emplace_front(key, std::make_shared<const Entry>(std::move(entry)));
  index_[key] = entries_.begin();
  const std::shared_ptr<const Entry> added = entries_.front().second;
  while (bytes_ > most_bytes_ && entries_.size() > 1) {
    bytes_ -= size_of(*entries_.back().second);
    index_.erase(entries_.back().first);
    entries_.pop_back();
  }
  return added;
}

// Adds the tokens below the nodes [begin, end) of the trie, siblings and what is below them, whose bytes are allowed
// from `state` on. `exits` gets the inner nodes where may_end() holds.
void TokenMasks::walk(std::uint32_t begin, std::uint32_t end, StateId state, TokenSet& tokens,
                      std::vector<std::uint32_t>* exits) {
  if (begin == end || state == kDead) return;
  const std::uint32_t top = trie_.node(begin).depth;
  path_.resize(static_cast<std::size_t>(trie_.deepest()) + 1);
  path_[0] = state;
  for (std::uint32_t i = begin; i < end;) {
    const TokenTrie::Node& node = trie_.node(i);
    const std::uint32_t depth = node.depth - top;
    const StateId next = states_.step(path_[depth], node.byte);
    if (next == kDead) {
      i = node.end;
      continue;
    }
    for (const int token : trie_.tokens(i))
      tokens[static_cast<std::size_t>(token) / 64] |= std::uint64_t{1} << (static_cast<std::size_t>(token) % 64);
    path_[depth + 1] = next;
    if (exits != nullptr && node.end > i + 1 && states_.may_end(next)) exits->push_back(i);
    ++i;
  }
}

// What a state of the automata allows whoever called its rule: the tokens inside the rule, and where they may leave it.
std::shared_ptr<const MaskCache::Entry> TokenMasks::mask_of_automaton_state(int state) {
  const MaskCache::Key key{owner_, MaskCache::Kind::of_automaton_state, static_cast<std::uint32_t>(state)};
  if (auto known = cache_.find(key)) return known;
  MaskCache::Entry entry{no_tokens()};
  walk(0, trie_.size(), states_.alone(state), entry.tokens, &entry.exits);
  return cache_.add(key, std::move(entry));
}

std::shared_ptr<const MaskCache::Entry> TokenMasks::mask(StateId state) {
  const MaskCache::Key key{owner_, MaskCache::Kind::of_state, state};
  if (auto known = cache_.find(key)) return known;
  // Near the greatest depth what is allowed depends on the whole stack.
  if (states_.depth(state) + kDeepestToken > kDeepestStack) return cache_.add(key, {walked_mask(state)});
  MaskCache::Entry entry{no_tokens()};
  const std::vector<Frame> frames(states_.frames(state).begin(), states_.frames(state).end());
  for (const Frame& frame : frames) {
    const auto inside = mask_of_automaton_state(frame.state);
    for (std::size_t i = 0; i < entry.tokens.size(); ++i) entry.tokens[i] |= inside->tokens[i];
    const StateId outside = states_.after_return(frame.rest);
    for (const std::uint32_t exit : inside->exits) walk(exit + 1, trie_.node(exit).end, outside, entry.tokens, nullptr);
  }
  return cache_.add(key, std::move(entry));
}

TokenSet TokenMasks::walked_mask(StateId state) {
  TokenSet tokens = no_tokens();
  walk(0, trie_.size(), state, tokens, nullptr);
  return tokens;
}

}  // namespace weft::grammar
