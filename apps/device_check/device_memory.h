#pragma once

// Memory of the device that is checked, given back when this ends.

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

  // Contents undefined. DeviceError when there is none.
  void* add(std::size_t bytes);
  // So many numbers of bf16 from -4 to 4; behind a million they repeat.
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
