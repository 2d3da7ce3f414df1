#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <sys/mman.h>

namespace weft {

// Advises the system to use huge pages for the memory that a large container has reserved. To be called before the
// memory is first written: a page fault for each 4 KB takes longer than what large vocabularies need to fill it.
inline void prefer_huge_pages(const void* begin, std::size_t bytes) {
  constexpr std::uintptr_t kPage = 4096, kFrom = std::uintptr_t{4} << 20;
  if (bytes < kFrom) return;
  const std::uintptr_t first = (reinterpret_cast<std::uintptr_t>(begin) + kPage - 1) / kPage * kPage;
  const std::uintptr_t end = (reinterpret_cast<std::uintptr_t>(begin) + bytes) / kPage * kPage;
  madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
}

// As vector.reserve(count), with this advice.
template <class T>
void reserve_in_huge_pages(std::vector<T>& vector, std::size_t count) {
  vector.reserve(count);
  prefer_huge_pages(vector.data(), count * sizeof(T));
}

}  // namespace weft
