#include "apps/device_check/device_memory.h"

#include <algorithm>

#include "base/error.h"
#include "tensor/bfloat16.h"

namespace weft::device_check {

DeviceMemory::~DeviceMemory() {
  try {
    for (void* address : addresses_) target_.driver().release(stream_, address);
    target_.driver().synchronize(stream_);
  } catch (const DeviceError&) {  // the device failed: it is gone already
  }
}

void* DeviceMemory::add(std::size_t bytes) {
  addresses_.push_back(target_.driver().allocate(stream_, bytes));
  return addresses_.back();
}

void* DeviceMemory::add_numbers(std::size_t count) {
  std::vector<std::uint16_t> numbers(std::min<std::size_t>(count, 1000003));
  std::uint32_t state = 1;
  for (std::uint16_t& number : numbers) {
    state = state * 1664525u + 1013904223u;
    number = f32_to_bf16(static_cast<float>(state >> 8) * 0x1p-21f - 4.0f);
  }
  auto* to = static_cast<std::uint16_t*>(add(count * sizeof(std::uint16_t)));
  for (std::size_t i = 0; i < count; i += numbers.size())
    target_.driver().copy(stream_, to + i, i == 0 ? numbers.data() : to,
                          std::min(numbers.size(), count - i) * sizeof(std::uint16_t));
  target_.driver().synchronize(stream_);
  return to;
}

void* DeviceMemory::add_number(float number) { return add_copy(&number, sizeof number); }

void* DeviceMemory::add_copy(const void* from, std::size_t bytes) {
  void* to = add(bytes);
  target_.driver().copy(stream_, to, from, bytes);
  target_.driver().synchronize(stream_);
  return to;
}

}  // namespace weft::device_check
