#include "grammar/token_trie.h"

#include <algorithm>
#include <limits>

namespace weft::grammar {
namespace {

std::size_t common_prefix(std::string_view a, std::string_view b) {
  return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

}  // namespace

TokenTrie::TokenTrie(std::span<const std::string_view> texts) : vocabulary_size_(texts.size()) {
  for (std::size_t id = 0; id < texts.size(); ++id)
    if (!texts[id].empty() && texts[id].size() <= std::numeric_limits<std::uint16_t>::max())
      tokens_.push_back(static_cast<int>(id));
  const auto text = [&](int id) { return texts[static_cast<std::size_t>(id)]; };
  std::sort(tokens_.begin(), tokens_.end(), [&](int a, int b) {
    const int order = text(a).compare(text(b));
    return order != 0 ? order < 0 : a < b;
  });
  std::vector<std::uint32_t> path;  // the nodes of the last text
  std::string_view last;
  const auto close_to = [&](std::size_t depth) {
    while (path.size() > depth) {
      nodes_[path.back()].end = static_cast<std::uint32_t>(nodes_.size());
      path.pop_back();
    }
  };
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    const std::string_view next = text(tokens_[i]);
    if (next == last) continue;
    close_to(common_prefix(last, next));
    while (path.size() < next.size()) {
      const std::size_t depth = path.size();
      const bool is_whole = depth + 1 == next.size();
      path.push_back(static_cast<std::uint32_t>(nodes_.size()));
      // A node on the way has no token: those of the next node are the first after it, too.
      nodes_.push_back({static_cast<std::uint8_t>(next[depth]), static_cast<std::uint16_t>(depth), 0,
                        static_cast<std::uint32_t>(i)});
      if (is_whole) deepest_ = std::max(deepest_, static_cast<int>(next.size()));
    }
    last = next;
  }
  close_to(0);
  nodes_.push_back({0, 0, 0, static_cast<std::uint32_t>(tokens_.size())});
}

}  // namespace weft::grammar
