#pragma once

// Finds all tokens that a text begins with.

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

namespace weft {

class PieceTrie {
 public:
  struct Entry {
    std::string_view text;  // not empty; must outlive the trie
    int32_t id = 0;
  };

  // The texts of the entries are distinct.
  explicit PieceTrie(std::vector<Entry> entries);

  // Calls `visit(length, id)` for each entry that the text begins with, the shortest first.
  template <class Visit>
  void visit_prefixes(std::string_view text, const Visit& visit) const {
    const Node* node = &nodes_[0];
    for (size_t depth = 0;; ++depth) {
      if (node->id >= 0) visit(depth, node->id);
      if (node->only >= 0) {
        const Entry& entry = entries_[static_cast<size_t>(node->only)];
        if (text.starts_with(entry.text)) visit(entry.text.size(), entry.id);
        return;
      }
      if (depth == text.size() || node->child_count == 0) return;
      node = child(*node, static_cast<uint8_t>(text[depth]));
      if (node == nullptr) return;
    }
  }

 private:
  struct Node {
    uint32_t first_child = 0;  // children are neighbours in `nodes_`, sorted by byte
    uint16_t child_count = 0;
    uint8_t byte = 0;
    int32_t id = -1;    // of the entry that ends here; -1: none
    int32_t only = -1;  // the index of the only entry below this node, which has no children then; -1: none or several
  };

  const Node* child(const Node& node, uint8_t byte) const {
    const auto begin = nodes_.begin() + node.first_child, end = begin + node.child_count;
    const auto found = std::lower_bound(begin, end, byte, [](const Node& one, uint8_t b) { return one.byte < b; });
    return found != end && found->byte == byte ? &*found : nullptr;
  }

  std::vector<Entry> entries_;  // sorted by text
  std::vector<Node> nodes_;     // the first is the root
};

}  // namespace weft
