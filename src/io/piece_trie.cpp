#include "io/piece_trie.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

namespace weft {
namespace {

// 8 bytes of a text from `first` on, as a number that sorts as they do. Bytes after the end are zeros.
uint64_t eight_bytes(std::string_view text, size_t first) {
  uint64_t number = 0;
  if (first + 8 <= text.size()) {
    std::memcpy(&number, text.data() + first, 8);
    return __builtin_bswap64(number);
  }
  for (size_t i = first; i < first + 8; ++i)
    number = (number << 8) | (i < text.size() ? static_cast<uint8_t>(text[i]) : 0U);
  return number;
}

// The first 16 bytes of a text, and its index.
struct Ordered {
  uint64_t front, next;
  uint32_t index;
};

// The order of the texts. Their first 8 bytes are sorted as numbers, one byte after another, the lowest first. Texts
// that have the same are then compared, by numbers again where these differ.
std::vector<Ordered> order_of(const std::vector<PieceTrie::Entry>& entries) {
  std::vector<Ordered> order(entries.size()), sorted(entries.size());
  for (size_t i = 0; i < entries.size(); ++i)
    order[i] = {eight_bytes(entries[i].text, 0), eight_bytes(entries[i].text, 8), static_cast<uint32_t>(i)};
  for (int shift = 0; shift < 64; shift += 8) {
    std::array<uint32_t, 257> begin{};
    for (const Ordered& one : order) ++begin[((one.front >> shift) & 0xFF) + 1];
    if (begin[1] == order.size()) continue;
    std::partial_sum(begin.begin(), begin.end(), begin.begin());
    for (const Ordered& one : order) sorted[begin[(one.front >> shift) & 0xFF]++] = one;
    order.swap(sorted);
  }
  for (size_t first = 0; first < order.size();) {
    size_t end = first + 1;
    while (end < order.size() && order[end].front == order[first].front) ++end;
    if (end - first > 1) {
      std::sort(order.begin() + static_cast<std::ptrdiff_t>(first), order.begin() + static_cast<std::ptrdiff_t>(end),
                [&](const Ordered& a, const Ordered& b) {
                  return a.next != b.next ? a.next < b.next : entries[a.index].text < entries[b.index].text;
                });
    }
    first = end;
  }
  return order;
}

}  // namespace

PieceTrie::PieceTrie(std::vector<Entry> entries) {
  const std::vector<Ordered> order = order_of(entries);
  entries_.reserve(entries.size());
  for (const Ordered& one : order) entries_.push_back(entries[one.index]);
  // The first bytes are read from the numbers, which are neighbours in memory.
  const auto byte_at = [&](uint32_t entry, uint32_t depth) {
    if (depth < 8) return static_cast<uint8_t>(order[entry].front >> (56 - 8 * depth));
    if (depth < 16) return static_cast<uint8_t>(order[entry].next >> (120 - 8 * depth));
    return static_cast<uint8_t>(entries_[entry].text[depth]);
  };
  // The entries below a node are a range of the sorted ones.
  struct Range {
    uint32_t begin, end, depth;
  };
  std::vector<Range> ranges = {{0, static_cast<uint32_t>(entries_.size()), 0}};
  ranges.reserve(entries_.size());
  nodes_.reserve(entries_.size());
  nodes_.emplace_back();
  for (size_t at = 0; at < nodes_.size(); ++at) {
    auto [begin, end, depth] = ranges[at];
    if (begin < end && entries_[begin].text.size() == depth) nodes_[at].id = entries_[begin++].id;
    if (end - begin == 1) nodes_[at].only = static_cast<int32_t>(begin);
    if (end - begin < 2) continue;
    nodes_[at].first_child = static_cast<uint32_t>(nodes_.size());
    while (begin < end) {
      const uint8_t byte = byte_at(begin, depth);
      uint32_t next = begin + 1;
      while (next < end && byte_at(next, depth) == byte) ++next;
      Node& child = nodes_.emplace_back();
      child.byte = byte;
      ranges.push_back({begin, next, depth + 1});
      ++nodes_[at].child_count;
      begin = next;
    }
  }
}

}  // namespace weft
