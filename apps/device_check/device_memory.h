#pragma once

// Memory of the checked device. The destructor frees it.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "apps/device_check/target.h"

namespace weft::device_check {

class DeviceMemory {
 public:
  explicit DeviceMemory(Target& target) : target_(target), stream_(target.stream()) {}
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  // Returns memory with undefined contents. Throws DeviceError if there is not enough.
  void* add(std::size_t bytes);
  // Returns `count` bf16 numbers from -4 to 4; they repeat after a million.
  void* add_numbers(std::size_t count);
  void* add_number(float number);
  template <class Word>
  Word* add_words(std::span<const Word> words) {
    return static_cast<Word*>(add_copy(words.data(), words.size_bytes()));
  }

 private:
  void* add_copy(const void* from, std::size_t bytes);

  Target& target_;
  cuda::Stream stream_;
  std::vector<void*> addresses_;
};

}  // namespace weft::device_check
