#include "io/piece_trie.h"

#include <utility>

namespace weft {
namespace {

// The first 8 bytes as a number that sorts as they do.
uint64_t front_of(std::string_view text) {
  uint64_t front = 0;
  for (size_t i = 0; i < 8; ++i) front = (front << 8) | (i < text.size() ? static_cast<uint8_t>(text[i]) : 0U);
  return front;
}

// Comparing numbers first is several times faster than comparing texts.
std::vector<PieceTrie::Entry> sorted(const std::vector<PieceTrie::Entry>& entries) {
  std::vector<std::pair<uint64_t, uint32_t>> order;
  order.reserve(entries.size());
  for (size_t i = 0; i < entries.size(); ++i) order.emplace_back(front_of(entries[i].text), static_cast<uint32_t>(i));
  std::sort(order.begin(), order.end(), [&](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : entries[a.second].text < entries[b.second].text;
  });
  std::vector<PieceTrie::Entry> result;
  result.reserve(entries.size());
  for (const auto& [front, index] : order) result.push_back(entries[index]);
  return result;
}

}  // namespace

PieceTrie::PieceTrie(std::vector<Entry> entries) : entries_(sorted(entries)) {
  // The entries below a node are a range of the sorted ones.
  struct Range {
    uint32_t begin, end, depth;
  };
  std::vector<Range> ranges = {{0, static_cast<uint32_t>(entries_.size()), 0}};
  nodes_.emplace_back();
  for (size_t at = 0; at < nodes_.size(); ++at) {
    auto [begin, end, depth] = ranges[at];
    if (begin < end && entries_[begin].text.size() == depth) nodes_[at].id = entries_[begin++].id;
    if (end - begin == 1) nodes_[at].only = static_cast<int32_t>(begin);
    if (end - begin < 2) continue;
    nodes_[at].first_child = static_cast<uint32_t>(nodes_.size());
    while (begin < end) {
      const char byte = entries_[begin].text[depth];
      uint32_t next = begin + 1;
      while (next < end && entries_[next].text[depth] == byte) ++next;
      Node& child = nodes_.emplace_back();
      child.byte = static_cast<uint8_t>(byte);
      ranges.push_back({begin, next, depth + 1});
      ++nodes_[at].child_count;
      begin = next;
    }
  }
}

}  // namespace weft
