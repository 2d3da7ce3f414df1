#pragma once

// Which tokens may follow in a state of a grammar.

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "grammar/free_characters.h"
#include "grammar/parser_states.h"
#include "grammar/token_trie.h"

namespace weft::grammar {

// A bit for each token.
using TokenSet = std::vector<std::uint64_t>;

inline bool has_token(const TokenSet& set, int token) {
  const auto id = static_cast<std::size_t>(token);
  return ((set[id / 64] >> (id % 64)) & 1) != 0;
}

// Masks that were computed, of several grammars: the ones that were not used for the longest time go first. Several
// threads may use it.
class MaskCache {
 public:
  struct Entry {
    TokenSet tokens;
    std::vector<std::uint32_t> exits = {};  // nodes of the trie where the rule may end within a token
    bool has_many_exits = false;            // more than are worth a list: tokens and exits are empty then
  };
  enum class Kind : std::uint8_t { of_automaton_state, of_state };
  struct Key {
    std::uint64_t owner;
    Kind kind;
    std::uint32_t state;
    friend bool operator==(const Key&, const Key&) = default;
  };

  explicit MaskCache(std::size_t most_bytes) : most_bytes_(most_bytes) {}

  // Null if there is none.
  std::shared_ptr<const Entry> find(const Key& key);
  std::shared_ptr<const Entry> add(const Key& key, Entry entry);
  // A number that no other owner has.
  std::uint64_t new_owner() { return next_owner_++; }

 private:
  struct Hash {
    std::size_t operator()(const Key& key) const {
      return (key.owner * 2 + static_cast<std::uint64_t>(key.kind)) * 0x9E3779B97F4A7C15 + key.state;
    }
  };
  using Entries = std::list<std::pair<Key, std::shared_ptr<const Entry>>>;

  static std::size_t size_of(const Entry& entry);

  std::mutex mutex_;
  const std::size_t most_bytes_;
  std::size_t bytes_ = 0;
  Entries entries_;  // the last used first
  std::unordered_map<Key, Entries::iterator, Hash> index_;
  std::atomic<std::uint64_t> next_owner_ = 0;
};

// The masks of one grammar. Not for several threads at once.
class TokenMasks {
 public:
  // All must outlive this object.
  TokenMasks(ParserStates& states, const TokenTrie& trie, MaskCache& cache)
      : states_(states), trie_(trie), cache_(cache), owner_(cache.new_owner()) {}

  // The tokens whose whole text may follow. UserError when the grammar has too many derivations.
  std::shared_ptr<const MaskCache::Entry> mask(StateId state);
  // The same without the cache, byte by byte: for tests.
  TokenSet walked_mask(StateId state);
  // After ParserStates::keep(), whose ids mean other states.
  void forget() {
    owner_ = cache_.new_owner();
    free_.clear();
    free_inside_.clear();
  }

 private:
  std::shared_ptr<const MaskCache::Entry> mask_of_automaton_state(int state);
  std::optional<MaskCache::Entry> mask_of_frames(std::span<const Frame> frames);
  bool add_free(std::uint32_t node, StateId state, FreeCharacters& free, TokenSet& tokens) const;
  void walk(std::uint32_t begin, std::uint32_t end, StateId state, FreeCharacters* free, TokenSet& tokens,
            std::vector<std::uint32_t>* exits);
  TokenSet no_tokens() const { return TokenSet((trie_.vocabulary_size() + 63) / 64, 0); }

  ParserStates& states_;
  const TokenTrie& trie_;
  MaskCache& cache_;
  std::uint64_t owner_;
  FreeCharacters free_{states_, false}, free_inside_{states_, true};
  std::vector<StateId> path_;  // of walk()
};

}  // namespace weft::grammar
