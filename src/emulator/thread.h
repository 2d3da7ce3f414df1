#pragma once

// The services of the emulator for device code: the thread's index, barriers, exchange within a warp, and access to
// memory. device/platform.cuh defines functions with CUDA's meaning for both compilers.

#include <array>
#include <cstddef>
#include <cstdint>
#include <source_location>
#include <string>

namespace weft::cuda {

// A location in a kernel's source.
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
// Waits for the lanes of the mask, and orders their accesses to shared memory.
void warp_barrier(std::uint32_t mask, const Site& site);
// Returns the value of lane `source` of this warp. All lanes of the mask must call it.
std::uint64_t shuffle(std::uint32_t mask, std::uint64_t value, std::uint32_t source, const Site& site);
// Returns the words of each of the 32 lanes of this warp, by lane. All of them must call it with the same `kind`, a
// literal. The result is valid until the calling lane's next collective but one.
using LaneWords = std::array<std::uint64_t, 3>;
const LaneWords* gather_lanes(const char* kind, const LaneWords& words, const Site& site);

// Call this before an access to global memory: `bytes` bytes at an address that is a multiple of them.
void note_reading(const void* address, std::size_t bytes, const Site& site);
void note_writing(void* address, std::size_t bytes, const Site& site);

[[noreturn]] void kernel_fault(const std::string& what, const Site& site);

// The last access to an element of shared memory: its thread, and the number of barriers of the block and of the warp
// before it.
struct SharedAccess {
  std::int32_t thread = -1;  // none
  std::uint32_t block_barriers = 0, warp_barriers = 0;
};
struct SharedElement {
  SharedAccess writer;
  SharedAccess reader;        // the last one
  SharedAccess other_reader;  // another one since the same barrier
};
void note_shared_reading(SharedElement& element, std::size_t index, const Site& array);
void note_shared_writing(SharedElement& element, std::size_t index, const Site& array);
// Returns the block's own array for `key`; the first thread that needs it calls `make(site)`.
void* shared_array(const void* key, void* (*make)(const Site&), void (*destroy)(void*), const Site& site);

// An array in shared memory. Elements are read and written through the result of operator[].
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

// `Tag` is a type that is unique to the declaration.
template <class T, std::size_t count, class Tag>
SharedArray<T, count>& shared_array_at(const Site& site) {
  static char key;
  return *static_cast<SharedArray<T, count>*>(shared_array(
      &key, [](const Site& at) -> void* { return new SharedArray<T, count>(at); },
      [](void* array) { delete static_cast<SharedArray<T, count>*>(array); }, site));
}

}  // namespace weft::cuda
