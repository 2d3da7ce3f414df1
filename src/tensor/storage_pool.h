#pragma once

// Storages that come back: what runs op by op makes and frees the same few small sizes over and over. Memory that the
// last tensor let go returns to the pool, from whichever thread, and is given out again with its contents as they were
// left. It may outlive the pool.
//
// Under the sanitizers nothing is kept, so that they see every use of freed memory.

#include <memory>

#include "tensor/storage.h"

namespace weft {

class StoragePool {
 public:
  StoragePool();
  // 64-byte aligned, contents undefined. DeviceError when there is no memory.
  std::shared_ptr<Storage> allocate(std::int64_t bytes);

 private:
  class Blocks;
  std::shared_ptr<Blocks> blocks_;
};

}  // namespace weft
