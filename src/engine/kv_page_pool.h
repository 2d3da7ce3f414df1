#pragma once

// The KV pages that no sequence holds. take() returns the lowest free page, so that the pages of a sequence depend on
// nothing but the order of requests.

#include <cstdint>
#include <optional>
#include <queue>
#include <vector>

namespace weft {

class KvPagePool {
 public:
  explicit KvPagePool(std::int64_t pages = 0) {
    for (std::int32_t page = 0; page < pages; ++page) free_.push(page);
  }

  std::optional<std::int32_t> take() {
    if (free_.empty()) return std::nullopt;
    const std::int32_t page = free_.top();
    free_.pop();
    return page;
  }
  void give_back(std::vector<std::int32_t>& pages) {
    for (std::int32_t page : pages) free_.push(page);
    pages.clear();
  }
  std::size_t free_count() const { return free_.size(); }

 private:
  std::priority_queue<std::int32_t, std::vector<std::int32_t>, std::greater<>> free_;
};

}  // namespace weft
