#pragma once

// Finds all tokens that a text begins with.

#include <cstdint>
#include <string_view>
#include <vector>

namespace weft {

// The texts are sorted, and each one links to the longest other one that it begins with. To find all that a text T
// begins with, follow the links from the last text that is not sorted after T. They reach every such text Q, because
// whatever is sorted between Q and T begins with Q.
class PrefixIndex {
 public:
  struct Entry {
    std::string_view text;  // not empty; must outlive the index
    int32_t id = 0;
  };

  // The texts of the entries are distinct, and fewer than 2^31.
  explicit PrefixIndex(const std::vector<Entry>& entries);

  // Calls `visit(length, id)` for each entry that the text begins with, the longest first.
  template <class Visit>
  void visit_prefixes(std::string_view text, const Visit& visit) const {
    for (int32_t at = longest_prefix(text); at >= 0; at = nodes_[static_cast<size_t>(at)].link)
      visit(nodes_[static_cast<size_t>(at)].text.length, nodes_[static_cast<size_t>(at)].id);
  }

 private:
  // A text with its first 8 bytes as a number, which decides most comparisons without reading the text.
  struct Text {
    Text(std::string_view text, uint64_t front);
    std::string_view view() const { return {data, length}; }
    bool starts_with(const Text& other) const;
    bool operator<(const Text& other) const;

    uint64_t front;  // the first byte in the highest bits; bytes after the end are zeros
    const char* data;
    uint32_t length;
  };
  struct Node {
    Text text;
    int32_t id;
    int32_t link;  // -1: the text begins with no other
  };

  static std::vector<Node> nodes_of(const std::vector<Entry>& entries, uint64_t first, uint64_t last);
  int32_t linked_from(const Text& text, int32_t at) const;
  int32_t longest_prefix(std::string_view text) const;

  std::vector<Node> nodes_;       // sorted by text
  std::vector<uint64_t> fronts_;  // of the nodes
  std::vector<uint32_t> begins_;  // of the nodes whose first two bytes are these, and one more for the end
};

}  // namespace weft
