#pragma once

// Memory for one tensor with marked bytes on both sides, which reveal a kernel's writes outside its tensors.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include "tensor/tensor.h"

namespace weft {

class GuardedMemory {
 public:
  // Aligned as tensors are, without spare bytes after it: kernels may rely on the first, but not on the second.
  explicit GuardedMemory(std::int64_t bytes) : bytes_(bytes), storage_(Storage::allocate(bytes + 2 * kGuard)) {
    std::memset(storage_->data(), std::to_integer<int>(kMark), static_cast<std::size_t>(storage_->bytes()));
  }
  std::byte* data() const { return storage_->data() + kGuard; }
  std::int64_t bytes() const { return bytes_; }
  bool intact() const {
    const auto marked = [](std::byte byte) { return byte == kMark; };
    return std::all_of(storage_->data(), data(), marked) &&
           std::all_of(data() + bytes_, storage_->data() + storage_->bytes(), marked);
  }
  Tensor tensor(Meta meta) const {
    Tensor tensor;
    tensor.meta = std::move(meta);
    tensor.storage = Storage::view_of(data(), bytes_, storage_);
    return tensor;
  }

 private:
  static constexpr std::int64_t kGuard = 256;
  static constexpr std::byte kMark{0xa5};

  std::int64_t bytes_;
  std::shared_ptr<Storage> storage_;
};

}  // namespace weft
