#pragma once

// What a graph of some launches of a list holds of the run that it was captured in: numbers, such as a token count, and
// addresses. It serves another run exactly when these are the same.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/launch_list.h"

namespace weft {

class LaunchKey {
 public:
  // Of no launches of a list, which must outlive it.
  explicit LaunchKey(const LaunchList& list) : list_(&list) {}
  // Of the launches [first, last), too.
  void add(std::size_t first, std::size_t last);

  // The numbers that they are made with now: the values of the list's symbols and, of each batch that one of them
  // takes, how many sequences it has and how many pages there is room for in each. What a host function is made of is
  // not among them: it reads the batch when it runs. Takes no memory once `into` had room for as many.
  void numbers(std::vector<std::int64_t>& into) const;
  std::size_t number_count() const { return list_->values().size() + 2 * batches_.size(); }
  // Where all that is bound and that they look into lies now, in the order of the slots; as above.
  struct Place {
    const std::byte* base = nullptr;
    std::int64_t pages = 0;  // of KV
    bool operator==(const Place&) const = default;
  };
  void places(std::vector<Place>& into) const;
  // "s0 = 8, 8 sequences of 32 pages"
  std::string text() const;

 private:
  const LaunchList* list_;
  std::vector<std::size_t> bound_, batches_;  // slots; ascending
};

}  // namespace weft
