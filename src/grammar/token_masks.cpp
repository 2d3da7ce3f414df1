#include "grammar/token_masks.h"

namespace weft::grammar {
namespace {

// Taken as the most rules that one token enters: brackets that it opens, and rules that begin with other rules.
constexpr std::uint32_t kDeepestToken = 200;
// A rule that may end after nearly every character has more: each exit is walked for each caller of the rule.
constexpr std::size_t kMostExits = 1000;

void add(std::span<const int> ids, TokenSet& tokens) {
  for (const int id : ids)
    tokens[static_cast<std::size_t>(id) / 64] |= std::uint64_t{1} << (static_cast<std::size_t>(id) % 64);
}

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
// from `state` on. `exits` gets the inner nodes where may_end() holds, but at most one more than kMostExits. With
// `free` a subtree is not looked at if it consists of characters that are free from its begin on; then none of its
// nodes is an exit. Nor is it looked at if no character below its root may follow.
void TokenMasks::walk(std::uint32_t begin, std::uint32_t end, StateId state, FreeCharacters* free, TokenSet& tokens,
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
    const KindSet kinds = trie_.kinds(i);  // of the node and of what is below it
    if (free != nullptr && (kinds & kNoCharacters) == 0 && add_free(i, path_[depth], *free, tokens)) {
      i = node.end;
      continue;
    }
    add(trie_.tokens(i), tokens);
    path_[depth + 1] = next;
    if (exits != nullptr && node.end > i + 1 && states_.may_end(next)) {
      exits->push_back(i);
      if (exits->size() > kMostExits) return;
    }
    const bool is_over = free != nullptr && node.end > i + 1 && (kinds & free->possible(next)) == 0;
    i = is_over ? node.end : i + 1;
  }
}

// Adds the tokens of a subtree without a look at its bytes, if that is enough: false if it is not.
bool TokenMasks::add_free(std::uint32_t node, StateId state, FreeCharacters& free, TokenSet& tokens) const {
  const KindSet kinds = trie_.kinds(node);
  if ((kinds & ~free.kinds(state, trie_.longest(node))) == 0) {
    add(trie_.tokens_from(node), tokens);
    return true;
  }
  if ((kinds & ~free.limited_kinds(state)) != 0) return false;
  // Here the number of characters decides.
  const std::uint32_t most = trie_.characters(node) - 1 + free.limit(state);
  for (std::uint32_t i = node; i < trie_.node(node).end;) {
    const bool is_allowed = trie_.characters(i) <= most;
    if (is_allowed) add(trie_.tokens(i), tokens);
    i = is_allowed ? i + 1 : trie_.node(i).end;
  }
  return true;
}

// What a state of the automata allows whoever called its rule: the tokens inside the rule, and where they may leave it.
std::shared_ptr<const MaskCache::Entry> TokenMasks::mask_of_automaton_state(int state) {
  state = states_.without_bounds(state, static_cast<std::uint32_t>(trie_.deepest()));
  const MaskCache::Key key{owner_, MaskCache::Kind::of_automaton_state, static_cast<std::uint32_t>(state)};
  if (auto known = cache_.find(key)) return known;
  MaskCache::Entry entry{no_tokens()};
  walk(0, trie_.size(), states_.alone(state), &free_inside_, entry.tokens, &entry.exits);
  if (entry.exits.size() > kMostExits) entry = {.tokens = {}, .has_many_exits = true};
  return cache_.add(key, std::move(entry));
}

std::shared_ptr<const MaskCache::Entry> TokenMasks::mask(StateId state) {
  const MaskCache::Key key{owner_, MaskCache::Kind::of_state, state};
  if (auto known = cache_.find(key)) return known;
  const std::vector<Frame> frames(states_.frames(state).begin(), states_.frames(state).end());
  // Near the greatest depth what is allowed depends on the whole stack.
  const bool is_deep = states_.depth(state) + kDeepestToken > kDeepestStack;
  std::optional<MaskCache::Entry> entry;
  if (!is_deep) entry = mask_of_frames(frames);
  if (!entry) {
    entry.emplace(no_tokens());
    walk(0, trie_.size(), state, &free_, entry->tokens, nullptr);
  }
  return cache_.add(key, std::move(*entry));
}

// nullopt if a walk of the whole state is the faster way.
std::optional<MaskCache::Entry> TokenMasks::mask_of_frames(std::span<const Frame> frames) {
  MaskCache::Entry entry{no_tokens()};
  for (const Frame& frame : frames) {
    const auto inside = mask_of_automaton_state(frame.state);
    if (inside->has_many_exits) return std::nullopt;
    for (std::size_t i = 0; i < entry.tokens.size(); ++i) entry.tokens[i] |= inside->tokens[i];
    const StateId outside = states_.after_return(frame.rest);
    for (const std::uint32_t exit : inside->exits)
      walk(exit + 1, trie_.node(exit).end, outside, &free_, entry.tokens, nullptr);
  }
  return entry;
}

TokenSet TokenMasks::walked_mask(StateId state) {
  TokenSet tokens = no_tokens();
  walk(0, trie_.size(), state, nullptr, tokens, nullptr);
  return tokens;
}

}  // namespace weft::grammar
