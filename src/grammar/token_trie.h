#pragma once

// The texts of a vocabulary as a trie of bytes, in preorder: the nodes below a node follow it.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "grammar/character_kinds.h"

namespace weft::grammar {

class TokenTrie {
 public:
  struct Node {
    std::uint8_t byte;
    std::uint16_t depth;        // of the nodes below the root: 0
    std::uint32_t end;          // the first node that is not below this one
    std::uint32_t first_token;  // in tokens()
  };

  // Of texts by id; an empty text is a token that no grammar allows, and so is one of more than 65,535 bytes.
  explicit TokenTrie(std::span<const std::string_view> texts);

  std::uint32_t size() const { return static_cast<std::uint32_t>(nodes_.size()) - 1; }
  const Node& node(std::uint32_t index) const { return nodes_[index]; }
  // The tokens whose text ends at a node.
  std::span<const int> tokens(std::uint32_t index) const {
    return std::span(tokens_).subspan(nodes_[index].first_token,
                                      nodes_[index + 1].first_token - nodes_[index].first_token);
  }
  // The tokens whose text ends at a node or below it.
  std::span<const int> tokens_from(std::uint32_t index) const {
    return std::span(tokens_).subspan(nodes_[index].first_token,
                                      nodes_[nodes_[index].end].first_token - nodes_[index].first_token);
  }
  // Of the texts from a node on, that is of its byte and of those below it: the kinds of their characters, and the
  // number of characters of the longest. A node within a character has kNoCharacters, too.
  KindSet kinds(std::uint32_t index) const { return subtrees_[index] & kKindBits; }
  std::uint32_t longest(std::uint32_t index) const { return static_cast<std::uint32_t>(subtrees_[index] >> kKindSize); }
  // The characters of a node's text, of which the last may not be complete. Bytes that are no character do not count.
  std::uint32_t characters(std::uint32_t index) const { return characters_[index]; }
  std::size_t vocabulary_size() const { return vocabulary_size_; }
  int deepest() const { return deepest_; }

 private:
  static constexpr int kKindSize = 48;
  static constexpr KindSet kKindBits = (KindSet{1} << kKindSize) - 1;
  static_assert(kKinds <= kKindSize);

  void add_subtrees();

  std::vector<std::uint64_t> subtrees_;  // of each node: the kinds, and above them the number of characters
  std::vector<std::uint16_t> characters_;
  std::vector<Node> nodes_;  // and one after the last
  std::vector<int> tokens_;
  std::size_t vocabulary_size_;
  int deepest_ = 0;
};

}  // namespace weft::grammar
