#pragma once

// Every operator new of a program of tests, counted; under sanitizers, which have their own, none is. To be included in
// one file of the program.

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace weft {

inline std::atomic<std::int64_t> counted_allocations{0};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kCountsAllocations = false;

}  // namespace weft
#else
inline constexpr bool kCountsAllocations = true;

inline void* allocate_counted(std::size_t bytes, std::size_t alignment) {
  ++counted_allocations;
  const std::size_t whole = (bytes + alignment - 1) / alignment * alignment;
  void* memory = alignment <= alignof(std::max_align_t) ? std::malloc(bytes == 0 ? 1 : bytes)
                                                        : std::aligned_alloc(alignment, whole);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace weft

// The array and sized forms of the library call these.
void* operator new(std::size_t bytes) { return weft::allocate_counted(bytes, alignof(std::max_align_t)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return weft::allocate_counted(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
#endif
