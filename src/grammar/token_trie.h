#pragma once

// The texts of a vocabulary as a trie of bytes, in preorder: the nodes below a node follow it.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

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
  std::size_t vocabulary_size() const { return vocabulary_size_; }
  int deepest() const { return deepest_; }

 private:
  std::vector<Node> nodes_;  // and one after the last
  std::vector<int> tokens_;
  std::size_t vocabulary_size_;
  int deepest_ = 0;
};

}  // namespace weft::grammar
