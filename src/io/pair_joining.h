#pragma once

// The loop of byte-pair encoding: repeatedly joins the neighbouring pair of lowest rank, and among equal ranks the
// leftmost, until no pair has a rank.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

namespace weft {

struct PairSymbol {
  int32_t id = -1;     // -1: no token has its text
  uint32_t begin = 0;  // first byte in the piece; it ends where the next symbol begins
};

struct PairJoin {
  static constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();
  uint32_t rank = kNone;  // kNone: the pair does not join
  int32_t id = -1;        // of the joined symbol
};

// Working memory of join_pairs. The caller fills `symbols` and finds the result there.
struct PairScratch {
  std::vector<PairSymbol> symbols;
  std::vector<PairJoin> joins;  // element i is for symbol i and the one after it
  std::vector<uint32_t> next, previous;
  std::vector<uint64_t> queue;
};

// `find(left, right, end)` returns the join of two symbols, the second of which ends at byte `end`.
template <class Find>
void join_short(PairScratch& scratch, uint32_t text_end, const Find& find) {
  std::vector<PairSymbol>& symbols = scratch.symbols;
  std::vector<PairJoin>& joins = scratch.joins;
  const auto join_at = [&](size_t i) {
    return find(symbols[i], symbols[i + 1], i + 2 < symbols.size() ? symbols[i + 2].begin : text_end);
  };
  joins.resize(symbols.size() - 1);
  for (size_t i = 0; i + 1 < symbols.size(); ++i) joins[i] = join_at(i);
  while (!joins.empty()) {
    const auto lowest = std::min_element(joins.begin(), joins.end(),
                                         [](const PairJoin& a, const PairJoin& b) { return a.rank < b.rank; });
    if (lowest->rank == PairJoin::kNone) break;
    const size_t i = static_cast<size_t>(lowest - joins.begin());
    symbols[i].id = lowest->id;
    symbols.erase(symbols.begin() + static_cast<ptrdiff_t>(i) + 1);
    joins.erase(lowest);
    if (i > 0) joins[i - 1] = join_at(i - 1);
    if (i + 1 < symbols.size()) joins[i] = join_at(i);
  }
}

// The same in O(n log n), with a linked list of symbols and a queue of (rank, left symbol). An entry is stale if the
// join at its left symbol has another rank; a symbol that is gone has no join.
template <class Find>
void join_long(PairScratch& scratch, uint32_t text_end, const Find& find) {
  constexpr uint32_t kEnd = std::numeric_limits<uint32_t>::max();
  std::vector<PairSymbol>& symbols = scratch.symbols;
  std::vector<PairJoin>& joins = scratch.joins;
  std::vector<uint32_t>& next = scratch.next;
  std::vector<uint32_t>& previous = scratch.previous;
  std::vector<uint64_t>& queue = scratch.queue;
  const auto count = static_cast<uint32_t>(symbols.size());
  next.resize(count);
  previous.resize(count);
  for (uint32_t i = 0; i < count; ++i) {
    next[i] = i + 1 < count ? i + 1 : kEnd;
    previous[i] = i > 0 ? i - 1 : kEnd;
  }
  const auto join_at = [&](uint32_t left) {
    const uint32_t right = next[left];
    if (right == kEnd) return PairJoin();
    return find(symbols[left], symbols[right], next[right] == kEnd ? text_end : symbols[next[right]].begin);
  };
  const auto entry = [](uint32_t rank, uint32_t left) { return (static_cast<uint64_t>(rank) << 32) | left; };
  joins.resize(count);
  queue.clear();
  for (uint32_t i = 0; i < count; ++i) {
    joins[i] = join_at(i);
    if (joins[i].rank != PairJoin::kNone) queue.push_back(entry(joins[i].rank, i));
  }
  std::make_heap(queue.begin(), queue.end(), std::greater<>());
  const auto update = [&](uint32_t left) {
    joins[left] = join_at(left);
    if (joins[left].rank == PairJoin::kNone) return;
    queue.push_back(entry(joins[left].rank, left));
    std::push_heap(queue.begin(), queue.end(), std::greater<>());
  };

  while (!queue.empty()) {
    std::pop_heap(queue.begin(), queue.end(), std::greater<>());
    const auto rank = static_cast<uint32_t>(queue.back() >> 32);
    const auto left = static_cast<uint32_t>(queue.back());
    queue.pop_back();
    if (joins[left].rank != rank) continue;
    const uint32_t right = next[left];
    symbols[left].id = joins[left].id;
    joins[right] = PairJoin();
    next[left] = next[right];
    if (next[left] != kEnd) previous[next[left]] = left;
    if (previous[left] != kEnd) update(previous[left]);
    update(left);
  }
  uint32_t kept = 0;
  for (uint32_t i = 0; count > 0 && i != kEnd; i = next[i]) symbols[kept++] = symbols[i];
  symbols.resize(kept);
}

template <class Find>
void join_pairs(PairScratch& scratch, uint32_t text_end, const Find& find) {
  // Up to this length, a scan of all pairs for the lowest rank is faster than a queue. Words are rarely longer.
  constexpr size_t kShort = 48;
  if (scratch.symbols.size() < 2) return;
  scratch.symbols.size() <= kShort ? join_short(scratch, text_end, find) : join_long(scratch, text_end, find);
}

}  // namespace weft
