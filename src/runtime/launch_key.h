#pragma once

// The values that a captured graph took from its run: numbers, such as a token count, and addresses. The graph serves
// another run exactly when these are the same.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/launch_list.h"

namespace weft {

class LaunchKey {
 public:
  // A key that covers no launches yet. The list must outlive it.
  explicit LaunchKey(const LaunchList& list) : list_(&list) {}
  // Adds the launches [first, last) to the key.
  void add(std::size_t first, std::size_t last);

  // The numbers that the launches use now: the values of the list's symbols and, for each batch that a launch takes,
  // its number of sequences and the number of pages that each sequence has room for. The arguments of host functions
  // are not among them, because a host function reads the batch when it runs. Allocates nothing once `into` has the
  // capacity.
  void numbers(std::vector<std::int64_t>& into) const;
  std::size_t number_count() const { return list_->values().size() + 2 * batches_.size(); }
  // The current addresses of all bound tensors that the launches use, in the order of the slots. Allocates nothing once
  // `into` has the capacity.
  struct BoundAddress {
    const std::byte* base = nullptr;
    std::int64_t pages = 0;  // of a KV cache
    bool operator==(const BoundAddress&) const = default;
  };
  void addresses(std::vector<BoundAddress>& into) const;
  // "s0 = 8, 8 sequences of 32 pages"
  std::string text() const;

 private:
  const LaunchList* list_;
  std::vector<std::size_t> bound_, batches_;  // slots; ascending
};

}  // namespace weft
