#include "base/resident_memory.h"

#include <algorithm>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

namespace weft {

std::optional<std::int64_t> resident_bytes(std::span<const std::byte> bytes) {
  if (bytes.empty()) return 0;
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data()) / page * page;
  const std::uintptr_t end = reinterpret_cast<std::uintptr_t>(bytes.data()) + bytes.size();
  std::vector<unsigned char> pages((end - begin + page - 1) / page);
  if (::mincore(reinterpret_cast<void*>(begin), end - begin, pages.data()) != 0) return std::nullopt;
  const auto there = std::count_if(pages.begin(), pages.end(), [](unsigned char state) { return (state & 1) != 0; });
  return there * static_cast<std::int64_t>(page);
}

}  // namespace weft
