#include "base/resident_memory.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <vector>

#include <sys/mman.h>
#include <sys/resource.h>
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

void clear_memory(std::span<std::byte> bytes) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data());
  const std::uintptr_t first = (begin + page - 1) / page * page, last = (begin + bytes.size()) / page * page;
  const bool is_given_back =
      first < last && ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED) == 0;
  if (!is_given_back) return void(std::memset(bytes.data(), 0, bytes.size()));
  std::memset(bytes.data(), 0, first - begin);
  std::memset(reinterpret_cast<void*>(last), 0, begin + bytes.size() - last);
}

std::int64_t peak_resident_bytes(const std::string& processes) {
  constexpr std::int64_t kKibibyte = 1024;
  std::ifstream status(processes + "/self/status");
  std::string word;
  while (status >> word) {
    std::int64_t kibibytes = 0;
    if (word == "VmHWM:" && status >> kibibytes) return kibibytes * kKibibyte;
  }
  rusage usage{};
  return ::getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_maxrss * kKibibyte : 0;
}

}  // namespace weft
