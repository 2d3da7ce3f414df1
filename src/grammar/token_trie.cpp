#include "grammar/token_trie.h"

#include <algorithm>
#include <limits>

namespace weft::grammar {
namespace {

std::size_t common_prefix(std::string_view a, std::string_view b) {
  return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

constexpr std::uint32_t kMostCharacters = 0xFFFF;  // of a text; longer ones have this number

// Where a text is within its characters.
class CharacterReader {
 public:
  bool is_inside() const { return left_ > 0; }
  // Returns the kind of a character that the byte begins, kNoCharacters for a byte that is no part of a character, and
  // no kind for the other bytes of one.
  KindSet read(std::uint8_t byte) {
    if (left_ == 0) return begin(byte);
    const ByteRange range = ranges_->bytes[ranges_->length - left_];
    --left_;
    if (byte >= range.first && byte <= range.last) return 0;
    left_ = 0;
    return kNoCharacters;
  }

 private:
  KindSet begin(std::uint8_t byte) {
    for (const CharacterRanges& ranges : character_ranges()) {
      if (byte < ranges.bytes[0].first || byte > ranges.bytes[0].last) continue;
      ranges_ = &ranges;
      left_ = ranges.length - std::size_t{1};
      return KindSet{1} << ranges.kind;
    }
    return kNoCharacters;
  }

  const CharacterRanges* ranges_ = nullptr;
  std::size_t left_ = 0;  // bytes of the character
};

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
  add_subtrees();
}

void TokenTrie::add_subtrees() {
  struct Subtree {
    KindSet kinds = 0;
    std::uint32_t longest = 0;
    bool begins_character = false;
  };
  std::vector<Subtree> all(size());
  std::vector<std::uint32_t> parents(size());
  characters_.reserve(size());
  std::vector<CharacterReader> path(static_cast<std::size_t>(deepest_) + 1);  // before a node of each depth
  std::vector<std::uint32_t> above(path.size());
  for (std::uint32_t i = 0; i < size(); ++i) {
    const Node& node = nodes_[i];
    CharacterReader reader = path[node.depth];
    all[i].begins_character = !reader.is_inside();
    all[i].kinds = reader.read(node.byte);
    all[i].longest = all[i].begins_character ? 1 : 0;
    path[node.depth + std::size_t{1}] = reader;
    above[node.depth] = i;
    parents[i] = node.depth == 0 ? i : above[node.depth - std::size_t{1}];
    const std::uint32_t before = node.depth == 0 ? 0 : characters_[parents[i]];
    characters_.push_back(static_cast<std::uint16_t>(std::min(before + all[i].longest, kMostCharacters)));
  }
  subtrees_.resize(size());
  for (std::uint32_t i = size(); i-- > 0;) {
    const Subtree& subtree = all[i];
    const KindSet unusable = subtree.begins_character ? 0 : kNoCharacters;
    subtrees_[i] = subtree.kinds | unusable | (std::uint64_t{subtree.longest} << kKindSize);
    if (parents[i] == i) continue;
    Subtree& parent = all[parents[i]];
    parent.kinds |= subtree.kinds;
    const std::uint32_t own = parent.begins_character ? 1 : 0;
    parent.longest = std::min(std::max(parent.longest, own + subtree.longest), kMostCharacters);
  }
}

}  // namespace weft::grammar
