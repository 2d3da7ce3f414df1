#pragma once

// What device code may ask of the emulator while it runs in it: where the thread stands, barriers, exchange within a
// warp, and leave to touch memory. device/platform.cuh gives these CUDA's meaning on both sides.

#include <array>
#include <cstddef>
#include <cstdint>
#include <source_location>
#include <string>

namespace weft::cuda {

// A place in a kernel's source.
using Site = std::source_location;

struct ThreadPlace {
  std::uint32_t thread = 0;  // in the block
  std::uint32_t threads = 0;
  std::uint32_t block = 0, block_row = 0;
  std::uint32_t blocks = 0, block_rows = 0;
  std::uint32_t lane() const { return thread % 32; }
  std::uint32_t warp() const { return thread / 32; }
};
const ThreadPlace& this_thread();

// Waits for all threads of the block that have not ended.
void block_barrier(const Site& site);
// Waits for the lanes of the mask and orders what they did in shared memory.
void warp_barrier(std::uint32_t mask, const Site& site);
// What lane `source` of this warp gave; all lanes of the mask call it.
std::uint64_t shuffle(std::uint32_t mask, std::uint64_t value, std::uint32_t source, const Site& site);
// What each of the 32 lanes of this warp gave, by lane; all of them call it, for the same `kind`, a literal. It stays
// until the calling lane meets others for the next time but one.
using LaneWords = std::array<std::uint64_t, 3>;
const LaneWords* gather_lanes(const char* kind, const LaneWords& words, const Site& site);

// Before global memory is touched: `bytes` at an address that is a multiple of them.
void note_reading(const void* address, std::size_t bytes, const Site& site);
void note_writing(void* address, std::size_t bytes, const Site& site);

[[noreturn]] void kernel_fault(const std::string& what, const Site& site);

// Who touched an element of shared memory last, and when: barriers of the block and of the warp that were behind it.
struct SharedAccess {
  std::int32_t thread = -1;  // nobody
  std::uint32_t block_barriers = 0, warp_barriers = 0;
};
struct SharedElement {
  SharedAccess writer;
  SharedAccess reader;        // the last one
  SharedAccess other_reader;  // another one since the same barrier
};
void note_shared_reading(SharedElement& element, std::size_t index, const Site& array);
void note_shared_writing(SharedElement& element, std::size_t index, const Site& array);
// The block's own copy of the array known by `key`: `make(site)` of the first thread that asks.
void* shared_array(const void* key, void* (*make)(const Site&), void (*destroy)(void*), const Site& site);

// An array in shared memory. Elements are read and written through what operator[] gives.
template <class T, std::size_t count>
class SharedArray {
 public:
  explicit SharedArray(const Site& site) : site_(site) {}

  class Reference {
   public:
    Reference(SharedArray& array, std::size_t index) : array_(array), index_(index) {}
    operator T() const {
      note_shared_reading(array_.elements_[index_], index_, array_.site_);
      return array_.values_[index_];
    }
    const Reference& operator=(T value) const {
      note_shared_writing(array_.elements_[index_], index_, array_.site_);
      array_.values_[index_] = value;
      return *this;
    }
    const Reference& operator=(const Reference& other) const { return *this = static_cast<T>(other); }

   private:
    SharedArray& array_;
    std::size_t index_;
  };

  Reference operator[](std::size_t index) {
    if (index >= count) kernel_fault("uses element " + std::to_string(index) + " of " + std::to_string(count), site_);
    return Reference(*this, index);
  }

 private:
  Site site_;
  std::array<T, count> values_;
  std::array<SharedElement, count> elements_;
};

// `Tag` is a type of the place of declaration alone.
template <class T, std::size_t count, class Tag>
SharedArray<T, count>& shared_array_at(const Site& site) {
  static char key;
  return *static_cast<SharedArray<T, count>*>(shared_array(
      &key, [](const Site& at) -> void* { return new SharedArray<T, count>(at); },
      [](void* array) { delete static_cast<SharedArray<T, count>*>(array); }, site));
}

}  // namespace weft::cuda
