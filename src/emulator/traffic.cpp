#include "emulator/traffic.h"

#include <algorithm>

#include <fmt/core.h>

#include "emulator/checks.h"

namespace weft::cuda {
namespace {

constexpr std::uintptr_t kSector = 32;

}  // namespace

void TrafficCounter::note(const ThreadPlace& at, const void* address, std::size_t bytes, bool writes,
                          const Site& site) {
  Occurrences& here = open_[{site.file_name(), site.line(), site.column()}];
  here.writes = writes;
  const std::uint32_t occurrence = here.of_thread[at.thread]++;
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  here.requests[{at.warp(), occurrence}].emplace_back(begin, begin + bytes);
}

void TrafficCounter::end_block() {
  for (auto& [place, here] : open_) {
    AccessTraffic& sum = counted_[place];
    sum.place = fmt::format("{}:{}", std::get<0>(place), std::get<1>(place));
    sum.writes = here.writes;
    for (auto& [warp, parts] : here.requests) {
      std::sort(parts.begin(), parts.end());
      const std::int64_t bytes_before = sum.bytes, sectors_before = sum.sectors;
      std::uintptr_t bytes_end = 0, sectors_end = 0;
      for (const auto& [begin, end] : parts) {
        if (end > bytes_end) sum.bytes += static_cast<std::int64_t>(end - std::max(begin, bytes_end));
        bytes_end = std::max(bytes_end, end);
        const std::uintptr_t first = begin / kSector, last = (end + kSector - 1) / kSector;
        if (last > sectors_end) sum.sectors += static_cast<std::int64_t>(last - std::max(first, sectors_end));
        sectors_end = std::max(sectors_end, last);
      }
      if (!is_checked(EmulatorCheck::traffic))
        sum.sectors = sectors_before + (sum.bytes - bytes_before + std::int64_t{kSector} - 1) / std::int64_t{kSector};
      ++sum.requests;
    }
  }
  open_.clear();
}

std::vector<AccessTraffic> TrafficCounter::result() const {
  std::vector<AccessTraffic> all;
  for (const auto& [place, sum] : counted_) all.push_back(sum);
  return all;
}

}  // namespace weft::cuda
