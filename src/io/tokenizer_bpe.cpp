#include "io/tokenizer_bpe.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>

#include "base/error.h"
#include "base/text.h"
#include "base/utf8.h"
#include "io/byte_alphabet.h"

namespace weft {
namespace {

constexpr uint32_t kNoRank = std::numeric_limits<uint32_t>::max();
constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

// Up to this length, a scan of all pairs for the lowest rank is faster than a queue. Words of a text are rarely longer.
constexpr size_t kShortPiece = 48;

int token_of(std::string_view text, const char* what, size_t rank, const Vocabulary& vocabulary,
             const TokenIndex& index) {
  const std::optional<int> id = index.find(text, vocabulary.tokens);
  USER_CHECK(id.has_value(), "[tokenizer] the {} of merge {} must be a token, but {} is not in the vocabulary", what,
             rank, quote(text));
  return *id;
}

}  // namespace

BytePairMerger::BytePairMerger(const Vocabulary& vocabulary, const TokenIndex& index)
    : unknown_(vocabulary.unknown), fuse_unknown_(vocabulary.fuse_unknown) {
  for (int byte = 0; byte < 256; ++byte) {
    token_of_byte_[byte] = index.find(text_of_byte(static_cast<uint8_t>(byte)), vocabulary.tokens).value_or(-1);
  }
  USER_CHECK(vocabulary.merges.size() < kNoRank, "[tokenizer] there may be at most 2^32 - 2 merges, but there are {}",
             vocabulary.merges.size());
  slots_.resize(std::bit_ceil(vocabulary.merges.size() * 3 / 2 + 2));
  slot_bits_ = std::countr_zero(slots_.size());
  // Training assigns ids in the order of the merges, so a result is usually the token after the last result. Trying
  // that token first saves a third of the look-ups.
  size_t next_merged = 0;
  for (size_t rank = 0; rank < vocabulary.merges.size(); ++rank) {
    const Merge& merge = vocabulary.merges[rank];
    const std::string_view text = merge.text;
    CHECK(merge.left_bytes <= text.size(), "[tokenizer] merge {} is cut at {} of {} bytes", rank, merge.left_bytes,
          text.size());
    Slot slot;
    slot.left = token_of(text.substr(0, merge.left_bytes), "left side", rank, vocabulary, index);
    slot.right = token_of(text.substr(merge.left_bytes), "right side", rank, vocabulary, index);
    slot.rank = static_cast<uint32_t>(rank);
    const bool follows = next_merged < vocabulary.tokens.size() && vocabulary.tokens[next_merged] == text;
    slot.merged = follows ? static_cast<int>(next_merged) : token_of(text, "result", rank, vocabulary, index);
    next_merged = static_cast<size_t>(slot.merged) + 1;
    insert(slot, merge);
  }
}

// Multiplicative hashing by 2^64 / golden ratio. The top bits are the best mixed ones.
size_t BytePairMerger::home_of(int32_t left, int32_t right) const {
  const uint64_t key = (static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32) | static_cast<uint32_t>(right);
  return (key * 0x9E3779B97F4A7C15u) >> (64 - slot_bits_);
}

void BytePairMerger::insert(const Slot& merge, const Merge& source) {
  const size_t mask = slots_.size() - 1;
  size_t place = home_of(merge.left, merge.right);
  for (; slots_[place].left >= 0; place = (place + 1) & mask) {
    const Slot& slot = slots_[place];
    USER_CHECK(slot.left != merge.left || slot.right != merge.right,
               "[tokenizer] merges must be distinct, but {} and {} are both {} + {}", slot.rank, merge.rank,
               quote(std::string_view(source.text).substr(0, source.left_bytes)),
               quote(std::string_view(source.text).substr(source.left_bytes)));
  }
  slots_[place] = merge;
}

const BytePairMerger::Slot* BytePairMerger::find(int32_t left, int32_t right) const {
  const size_t mask = slots_.size() - 1;
  for (size_t place = home_of(left, right);; place = (place + 1) & mask) {
    const Slot& slot = slots_[place];
    if (slot.left == left && slot.right == right) return &slot;
    if (slot.left < 0) return nullptr;
  }
}

uint32_t BytePairMerger::rank_of(int32_t left, int32_t right) const {
  const Slot* slot = find(left, right);
  return slot ? slot->rank : kNoRank;
}

void BytePairMerger::append(std::string_view piece, Scratch& scratch, std::vector<int>& ids) const {
  begin(piece, scratch.ids);
  if (scratch.ids.size() <= kShortPiece) {
    merge_short(scratch);
  } else {
    merge_long(scratch);
  }
  ids.insert(ids.end(), scratch.ids.begin(), scratch.ids.end());
}

// Sets `ids` to the tokens of the single bytes of the piece.
void BytePairMerger::begin(std::string_view piece, std::vector<int32_t>& ids) const {
  ids.clear();
  bool after_unknown = false;
  // Hugging Face emits one unknown token per character of the byte-level alphabet, which is one per byte.
  for (const char byte : piece) {
    const int32_t id = token_of_byte_[static_cast<uint8_t>(byte)];
    if (id >= 0) {
      ids.push_back(id);
    } else if (unknown_ && !(fuse_unknown_ && after_unknown)) {
      ids.push_back(*unknown_);
    }
    after_unknown = id < 0;
  }
}

void BytePairMerger::merge_short(Scratch& scratch) const {
  std::vector<int32_t>& ids = scratch.ids;
  std::vector<uint32_t>& ranks = scratch.ranks;  // element i is for the pair (i, i + 1)
  if (ids.size() < 2) return;
  ranks.resize(ids.size() - 1);
  for (size_t i = 0; i + 1 < ids.size(); ++i) ranks[i] = rank_of(ids[i], ids[i + 1]);
  while (!ranks.empty()) {
    const auto lowest = std::min_element(ranks.begin(), ranks.end());
    if (*lowest == kNoRank) break;
    const size_t i = static_cast<size_t>(lowest - ranks.begin());
    ids[i] = find(ids[i], ids[i + 1])->merged;
    ids.erase(ids.begin() + static_cast<ptrdiff_t>(i) + 1);
    ranks.erase(lowest);
    if (i > 0) ranks[i - 1] = rank_of(ids[i - 1], ids[i]);
    if (i + 1 < ids.size()) ranks[i] = rank_of(ids[i], ids[i + 1]);
  }
}

// Uses a linked list of symbols and a queue of (rank, position of the left symbol). An entry is stale if its left
// symbol no longer exists or the pair at that position has another rank. Ranks and pairs correspond one to one.
void BytePairMerger::merge_long(Scratch& scratch) const {
  std::vector<int32_t>& ids = scratch.ids;
  std::vector<uint32_t>& next = scratch.next;
  std::vector<uint32_t>& previous = scratch.previous;
  std::vector<uint64_t>& queue = scratch.queue;
  const uint32_t count = static_cast<uint32_t>(ids.size());
  next.resize(count);
  previous.resize(count);
  for (uint32_t i = 0; i < count; ++i) {
    next[i] = i + 1 < count ? i + 1 : kNone;
    previous[i] = i > 0 ? i - 1 : kNone;
  }

  const auto entry = [](uint32_t rank, uint32_t position) { return (static_cast<uint64_t>(rank) << 32) | position; };
  queue.clear();
  for (uint32_t i = 0; i + 1 < count; ++i) {
    const uint32_t rank = rank_of(ids[i], ids[i + 1]);
    if (rank != kNoRank) queue.push_back(entry(rank, i));
  }
  std::make_heap(queue.begin(), queue.end(), std::greater<>());
  const auto add = [&](uint32_t left) {
    const uint32_t rank = rank_of(ids[left], ids[next[left]]);
    if (rank == kNoRank) return;
    queue.push_back(entry(rank, left));
    std::push_heap(queue.begin(), queue.end(), std::greater<>());
  };

  while (!queue.empty()) {
    std::pop_heap(queue.begin(), queue.end(), std::greater<>());
    const uint32_t rank = static_cast<uint32_t>(queue.back() >> 32);
    const uint32_t left = static_cast<uint32_t>(queue.back());
    queue.pop_back();
    const uint32_t right = ids[left] >= 0 ? next[left] : kNone;
    if (right == kNone) continue;
    const Slot* merge = find(ids[left], ids[right]);
    if (!merge || merge->rank != rank) continue;
    ids[left] = merge->merged;
    ids[right] = -1;
    next[left] = next[right];
    if (next[left] != kNone) previous[next[left]] = left;
    if (previous[left] != kNone) add(previous[left]);
    if (next[left] != kNone) add(left);
  }
  ids.erase(std::remove(ids.begin(), ids.end(), -1), ids.end());
}

}  // namespace weft
