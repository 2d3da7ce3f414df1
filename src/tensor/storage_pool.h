#pragma once

// A pool of storages, because op-by-op execution allocates and frees the same few small sizes again and again. When the
// last tensor releases a storage, in any thread, its memory returns to the pool. A later allocation gets it with its
// old contents. A storage may outlive the pool.
//
// With sanitizers nothing is kept, so that they see every use of freed memory.

#include <memory>

#include "tensor/storage.h"

namespace weft {

class StoragePool {
 public:
  StoragePool();
  // Returns 64-byte aligned memory with undefined contents. Throws DeviceError if there is no memory.
  std::shared_ptr<Storage> allocate(std::int64_t bytes);

 private:
  class Blocks;
  std::shared_ptr<Blocks> blocks_;
};

}  // namespace weft
