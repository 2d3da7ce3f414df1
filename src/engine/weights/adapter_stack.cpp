#include "engine/weights/adapter_stack.h"

#include <cstring>

#include "base/error.h"
#include "base/resident_memory.h"

namespace weft {

std::span<std::byte> AdapterStack::bytes_of(std::int64_t choice) const {
  Meta plain = tensor.meta;
  plain.packed.clear();
  const std::int64_t all = packing == nullptr ? plain.bytes().number() : packing->bytes(plain);
  CHECK(choice >= 0 && choice < choices && all % choices == 0, "{} has no choice {}", tensor.meta.text(), choice);
  const auto bytes = static_cast<std::size_t>(all / choices);
  return {tensor.data() + bytes * static_cast<std::size_t>(choice), bytes};
}

void AdapterStack::fill(std::int64_t choice, const Tensor& one, ThreadPool& threads) const {
  const std::span<std::byte> bytes = bytes_of(choice);
  if (packing == nullptr) {
    CHECK(one.meta.bytes().number() == std::ssize(bytes), "{} is no choice of {}", one.meta.text(), tensor.meta.text());
    std::memcpy(bytes.data(), one.data(), bytes.size());
    return;
  }
  // The stack of one choice has the layout that a choice of a larger one has.
  Meta plain = one.meta;
  plain.shape.insert(plain.shape.begin(), 1);
  pack_weight(*packing, plain, {&one, 1}, threads, nullptr,
              Storage::view_of(bytes.data(), std::ssize(bytes), tensor.storage));
}

void AdapterStack::clear(std::int64_t choice) const { clear_memory(bytes_of(choice)); }

}  // namespace weft
