#include "io/tokenizer_bpe.h"

#include <algorithm>
#include <array>
#include <bit>
#include <future>
#include <span>

#include "base/error.h"
#include "base/huge_pages.h"
#include "base/text.h"
#include "base/utf8.h"
#include "io/byte_alphabet.h"

namespace weft {
namespace {

constexpr size_t kMergesTogether = 64;

void check_token(int32_t id, const char* what, size_t rank, std::string_view text) {
  USER_CHECK(id >= 0, "[tokenizer] the {} of merge {} must be a token, but {} is not in the vocabulary", what, rank,
             quote(text));
}

}  // namespace

void BytePairMerger::CharacterTokens::add(char32_t character, int32_t id) {
  uint16_t& page = page_of_[character >> 8];
  if (page == 0) {
    pages_.emplace_back().fill(-1);
    page = static_cast<uint16_t>(pages_.size());
  }
  pages_[page - 1U][character & 0xFF] = id;
}

int32_t BytePairMerger::CharacterTokens::find(char32_t character) const {
  const uint16_t page = page_of_[character >> 8];
  return page == 0 ? -1 : pages_[page - 1U][character & 0xFF];
}

BytePairMerger::BytePairMerger(const Vocabulary& vocabulary, const TokenIndex& index)
    : byte_alphabet_(vocabulary.byte_alphabet), fallback_(vocabulary, index), cuts_(vocabulary) {
  if (byte_alphabet_) {
    for (int byte = 0; byte < 256; ++byte) {
      token_of_byte_[byte] = index.find(text_of_byte(static_cast<uint8_t>(byte)), vocabulary.tokens).value_or(-1);
    }
  } else {
    for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
      const std::string& text = vocabulary.tokens[id];
      if (text.empty() || text.size() > 4 || !is_in_model(vocabulary, id)) continue;
      const Utf8Step step = utf8_step(text, 0);
      if (step.status == Utf8Status::complete && step.length == text.size())
        token_of_character_.add(step.character, static_cast<int32_t>(id));
    }
  }
  add_merges(vocabulary, index);
}

// Half of the merges are found on another thread, if the system gives one: looking tokens up takes most of the time.
void BytePairMerger::add_merges(const Vocabulary& vocabulary, const TokenIndex& index) {
  const size_t count = vocabulary.merges.size(), half = count / 2;
  USER_CHECK(count < PairJoin::kNone, "[tokenizer] there may be at most 2^32 - 2 merges, but are {}", count);
  std::future<std::vector<Slot>> others = std::async([&] { return found_merges(vocabulary, index, half, count); });
  const size_t slots = std::bit_ceil(count * 3 / 2 + 2);
  reserve_in_huge_pages(slots_, slots);
  slots_.resize(slots);
  slot_bits_ = std::countr_zero(slots_.size());
  insert(found_merges(vocabulary, index, 0, half), vocabulary.merges);
  insert(others.get(), vocabulary.merges);
}

// The merges of the ranks [first, end).
std::vector<BytePairMerger::Slot> BytePairMerger::found_merges(const Vocabulary& vocabulary, const TokenIndex& index,
                                                               size_t first, size_t end) {
  std::vector<Slot> found;
  found.reserve(end - first);
  // Training assigns ids in the order of the merges, so a result is usually the token after the last result. Trying
  // that token first saves a third of the look-ups.
  size_t next_merged = 0;
  std::array<std::string_view, 2 * kMergesTogether> sides;
  std::array<int32_t, 2 * kMergesTogether> ids;
  for (size_t begin = first; begin < end; begin += kMergesTogether) {
    const size_t count = std::min(kMergesTogether, end - begin);
    for (size_t i = 0; i < count; ++i) {
      const Merge& merge = vocabulary.merges[begin + i];
      const std::string_view text = merge.text;
      CHECK(merge.left_bytes <= text.size(), "[tokenizer] merge {} is cut at {} of {} bytes", begin + i,
            merge.left_bytes, text.size());
      sides[2 * i] = text.substr(0, merge.left_bytes);
      sides[2 * i + 1] = text.substr(merge.left_bytes);
    }
    index.find_all(std::span(sides.data(), 2 * count), vocabulary.tokens, ids);
    for (size_t i = 0; i < count; ++i) {
      const size_t rank = begin + i;
      const Merge& merge = vocabulary.merges[rank];
      check_token(ids[2 * i], "left side", rank, sides[2 * i]);
      check_token(ids[2 * i + 1], "right side", rank, sides[2 * i + 1]);
      const bool follows = next_merged < vocabulary.tokens.size() && vocabulary.tokens[next_merged] == merge.text;
      const int32_t merged =
          follows ? static_cast<int32_t>(next_merged) : index.find(merge.text, vocabulary.tokens).value_or(-1);
      check_token(merged, "result", rank, merge.text);
      next_merged = static_cast<size_t>(merged) + 1;
      found.push_back({ids[2 * i], ids[2 * i + 1], static_cast<uint32_t>(rank), merged});
    }
  }
  return found;
}

// Multiplicative hashing by 2^64 / golden ratio. The top bits are the best mixed ones.
size_t BytePairMerger::home_of(int32_t left, int32_t right) const {
  const uint64_t key = (static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32) | static_cast<uint32_t>(right);
  return (key * 0x9E3779B97F4A7C15u) >> (64 - slot_bits_);
}

void BytePairMerger::insert(const std::vector<Slot>& found, const std::vector<Merge>& merges) {
  constexpr size_t kAhead = 32;
  const size_t mask = slots_.size() - 1;
  for (size_t i = 0; i < found.size(); ++i) {
    if (i + kAhead < found.size())
      __builtin_prefetch(&slots_[home_of(found[i + kAhead].left, found[i + kAhead].right)], 1);
    const Slot& merge = found[i];
    size_t place = home_of(merge.left, merge.right);
    for (; slots_[place].left >= 0; place = (place + 1) & mask) {
      const Slot& slot = slots_[place];
      if (slot.left != merge.left || slot.right != merge.right) continue;
      const std::string_view text = merges[merge.rank].text;
      const size_t left_bytes = merges[merge.rank].left_bytes;
      fail_user("[tokenizer] merges must be distinct, but {} and {} are both {} + {}", slot.rank, merge.rank,
                quote(text.substr(0, left_bytes)), quote(text.substr(left_bytes)));
    }
    slots_[place] = merge;
  }
}

PairJoin BytePairMerger::find(int32_t left, int32_t right) const {
  const size_t mask = slots_.size() - 1;
  for (size_t place = home_of(left, right);; place = (place + 1) & mask) {
    const Slot& slot = slots_[place];
    if (slot.left == left && slot.right == right) return {slot.rank, slot.merged};
    if (slot.left < 0) return {};
  }
}

void BytePairMerger::append(std::string_view piece, PieceScratch& scratch, std::vector<int>& ids) const {
  for (size_t begin = 0; begin < piece.size();) {
    const size_t end = cuts_.next(piece, begin);
    append_part(piece.substr(begin, end - begin), scratch, ids);
    begin = end;
  }
}

void BytePairMerger::append_part(std::string_view part, PieceScratch& scratch, std::vector<int>& ids) const {
  std::vector<PairSymbol>& symbols = scratch.pairs.symbols;
  symbols.clear();
  byte_alphabet_ ? begin_with_bytes(part, symbols) : begin_with_characters(part, symbols);
  join_pairs(scratch.pairs, static_cast<uint32_t>(part.size()),
             [this](const PairSymbol& left, const PairSymbol& right, uint32_t) { return find(left.id, right.id); });
  for (const PairSymbol& symbol : symbols) ids.push_back(symbol.id);
}

// Hugging Face emits one unknown token per character of the byte-level alphabet, which is one per byte.
void BytePairMerger::begin_with_bytes(std::string_view piece, std::vector<PairSymbol>& symbols) const {
  bool after_unknown = false;
  for (size_t i = 0; i < piece.size(); ++i) {
    const auto begin = static_cast<uint32_t>(i);
    const int32_t id = token_of_byte_[static_cast<uint8_t>(piece[i])];
    if (id >= 0) {
      symbols.push_back({id, begin});
      after_unknown = false;
    } else {
      fallback_.append(piece.substr(i, 1), after_unknown, [&](int token, size_t) {
        symbols.push_back({token, begin});
      });
    }
  }
}

void BytePairMerger::begin_with_characters(std::string_view piece, std::vector<PairSymbol>& symbols) const {
  bool after_unknown = false;
  for (size_t i = 0; i < piece.size();) {
    const Utf8Step step = utf8_step(piece, i);
    const int32_t id = token_of_character_.find(step.character);
    if (id >= 0) {
      symbols.push_back({id, static_cast<uint32_t>(i)});
      after_unknown = false;
    } else {
      fallback_.append(piece.substr(i, step.length), after_unknown, [&](int token, size_t offset) {
        symbols.push_back({token, static_cast<uint32_t>(i + offset)});
      });
    }
    i += step.length;
  }
}

}  // namespace weft
