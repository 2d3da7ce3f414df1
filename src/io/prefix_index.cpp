#include "io/prefix_index.h"

#include <algorithm>
#include <cstring>
#include <future>
#include <numeric>

namespace weft {
namespace {

constexpr size_t kTwoBytes = 0x10000;
constexpr size_t kAhead = 16;  // entries that are fetched before they are read
constexpr size_t kManyEntries = 1 << 14;
constexpr size_t kSamples = 1 << 10;  // of which the middle one divides many entries

template <class Number>
uint64_t number_at(const char* bytes) {
  Number number;
  std::memcpy(&number, bytes, sizeof(number));
  return number;
}

// The first 8 bytes, the first of them in the highest bits; bytes after the end are zeros.
uint64_t eight_bytes(std::string_view text) {
  const char* const first = text.data();
  const size_t size = text.size();
  if (size >= 8) return __builtin_bswap64(number_at<uint64_t>(first));
  uint64_t number = 0;  // the first byte in the lowest bits; two overlapping parts are read without a loop
  if (size >= 4) {
    number = number_at<uint32_t>(first) | number_at<uint32_t>(first + size - 4) << (8 * (size - 4));
  } else if (size >= 2) {
    number = number_at<uint16_t>(first) | number_at<uint16_t>(first + size - 2) << (8 * (size - 2));
  } else if (size == 1) {
    number = static_cast<uint8_t>(*first);
  }
  return __builtin_bswap64(number);
}

size_t first_two_bytes(uint64_t front) { return front >> 48; }

bool same_beginning(uint64_t a, uint64_t b, uint32_t bytes) { return (a ^ b) >> (64 - 8 * bytes) == 0; }

// The first 16 bytes of an entry's text, by which nearly all are sorted and linked.
struct Ordered {
  Ordered() = default;
  Ordered(std::string_view text, uint32_t index)
      : front(eight_bytes(text)),
        next(text.size() > 8 ? eight_bytes(text.substr(8)) : 0),
        index(index),
        length(static_cast<uint32_t>(text.size())) {}

  uint64_t front, next;
  uint32_t index, length;
};

bool starts_with(const Ordered& text, const Ordered& with, const std::vector<PrefixIndex::Entry>& entries) {
  if (with.length > text.length) return false;
  if (with.length <= 8) return same_beginning(text.front, with.front, with.length);
  if (text.front != with.front) return false;
  if (with.length <= 16) return same_beginning(text.next, with.next, with.length - 8);
  return entries[text.index].text.starts_with(entries[with.index].text);
}

// Sorts by two bytes of the front, and keeps the order of those that have the same.
void sort_by_two_bytes(std::vector<Ordered>& order, int shift, std::vector<Ordered>& scratch) {
  std::vector<uint32_t> places(kTwoBytes + 1);
  for (const Ordered& one : order) ++places[(one.front >> shift & 0xFFFF) + 1];
  std::partial_sum(places.begin(), places.end(), places.begin());
  scratch.resize(order.size());
  for (const Ordered& one : order) scratch[places[one.front >> shift & 0xFFFF]++] = one;
  order.swap(scratch);
}

// The first six bytes by counting, the last ones first; the few that share these by comparing.
void sort(std::vector<Ordered>& order, const std::vector<PrefixIndex::Entry>& entries) {
  std::vector<Ordered> scratch;
  for (const int shift : {16, 32, 48}) sort_by_two_bytes(order, shift, scratch);
  const auto is_before = [&](const Ordered& a, const Ordered& b) {
    if (a.front != b.front) return a.front < b.front;
    return a.next != b.next ? a.next < b.next : entries[a.index].text < entries[b.index].text;
  };
  for (auto first = order.begin(); first != order.end();) {
    const auto end =
        std::find_if(first + 1, order.end(), [&](const Ordered& one) { return one.front >> 16 != first->front >> 16; });
    if (end - first > 1) std::sort(first, end, is_before);
    first = end;
  }
}

// About half of many entries have a front up to this one; all of a few have.
uint64_t middle_front(const std::vector<PrefixIndex::Entry>& entries) {
  if (entries.size() < kManyEntries) return ~uint64_t{0};
  std::vector<uint64_t> fronts;
  for (size_t i = 0; i < kSamples; ++i) fronts.push_back(eight_bytes(entries[i * entries.size() / kSamples].text));
  std::nth_element(fronts.begin(), fronts.begin() + kSamples / 2, fronts.end());
  return fronts[kSamples / 2];
}

}  // namespace

PrefixIndex::Text::Text(std::string_view text, uint64_t front)
    : front(front), data(text.data()), length(static_cast<uint32_t>(text.size())) {}

bool PrefixIndex::Text::starts_with(const Text& other) const {
  if (other.length > length) return false;
  if (other.length <= 8) return same_beginning(front, other.front, other.length);
  return front == other.front && std::memcmp(data + 8, other.data + 8, other.length - 8) == 0;
}

bool PrefixIndex::Text::operator<(const Text& other) const {
  return front != other.front ? front < other.front : view() < other.view();
}

// The nodes of the entries whose fronts are at least `first` and at most `last`, linked among themselves.
std::vector<PrefixIndex::Node> PrefixIndex::nodes_of(const std::vector<Entry>& entries, uint64_t first, uint64_t last) {
  std::vector<Ordered> order;
  for (size_t i = 0; i < entries.size(); ++i) {
    const Ordered one(entries[i].text, static_cast<uint32_t>(i));
    if (one.front >= first && one.front <= last) order.push_back(one);
  }
  sort(order, entries);
  std::vector<Node> nodes;
  nodes.reserve(entries.size());
  for (size_t i = 0; i < order.size(); ++i) {
    const Ordered& one = order[i];
    // The entries are in another order, and reading them one by one took a quarter of the time.
    __builtin_prefetch(&entries[order[std::min(i + kAhead, order.size() - 1)].index]);
    auto link = static_cast<int32_t>(i) - 1;
    while (link >= 0 && !starts_with(one, order[static_cast<size_t>(link)], entries))
      link = nodes[static_cast<size_t>(link)].link;
    nodes.push_back({Text(entries[one.index].text, one.front), entries[one.index].id, link});
  }
  return nodes;
}

// Of many entries, two threads make a half each, if the system gives another one. What links a node of the second half
// to one of the first is found as always, from the last node of the first half on.
PrefixIndex::PrefixIndex(const std::vector<Entry>& entries) {
  constexpr uint64_t kLast = ~uint64_t{0};
  const uint64_t middle = middle_front(entries);
  const auto others_of = [&] { return nodes_of(entries, middle + 1, kLast); };
  std::future<std::vector<Node>> others;
  if (middle != kLast) others = std::async(others_of);
  nodes_ = nodes_of(entries, 0, middle);
  const auto first_half = static_cast<int32_t>(nodes_.size());
  for (Node node : others.valid() ? others.get() : std::vector<Node>()) {
    node.link = node.link >= 0 ? node.link + first_half : linked_from(node.text, first_half - 1);
    nodes_.push_back(node);
  }
  fronts_.reserve(nodes_.size());
  begins_.resize(kTwoBytes + 1);
  for (const Node& node : nodes_) {
    fronts_.push_back(node.text.front);
    ++begins_[first_two_bytes(node.text.front) + 1];
  }
  std::partial_sum(begins_.begin(), begins_.end(), begins_.begin());
}

// The first node from `at` on along the links that the text begins with; -1: none.
int32_t PrefixIndex::linked_from(const Text& text, int32_t at) const {
  while (at >= 0 && !text.starts_with(nodes_[static_cast<size_t>(at)].text)) at = nodes_[static_cast<size_t>(at)].link;
  return at;
}

int32_t PrefixIndex::longest_prefix(std::string_view view) const {
  const Text text(view, eight_bytes(view));
  const size_t range = first_two_bytes(text.front);
  const auto [first, last] =
      std::equal_range(fronts_.begin() + begins_[range], fronts_.begin() + begins_[range + 1], text.front);
  const auto after =
      std::upper_bound(nodes_.begin() + (first - fronts_.begin()), nodes_.begin() + (last - fronts_.begin()), text,
                       [](const Text& one, const Node& node) { return one < node.text; });
  return linked_from(text, static_cast<int32_t>(after - nodes_.begin()) - 1);
}

}  // namespace weft
