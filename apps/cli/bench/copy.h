#pragma once

// A plain copy as a baseline for a computation. It reads, overwrites and writes as many bytes as the computation, in
// shares of the same proportion, with ordinary stores. It uses the widest vectors that the C library supports on the
// machine: narrow stores fill a core's store buffer, and the copy then takes a fifth longer.

#include <cstdint>
#include <span>

#include "parallel/thread_pool.h"
#include "tensor/storage.h"

namespace weft {

class PlainCopy {
 public:
  // The numbers of bytes to only read, to read and overwrite, and to only write.
  PlainCopy(ThreadPool& threads, std::int64_t read, std::int64_t over, std::int64_t written);

  void run();

 private:
  struct Memory {
    std::shared_ptr<Storage> storage;
    std::int64_t bytes;
    explicit Memory(std::int64_t bytes);
    // Returns share `part` of `parts` equal shares.
    std::span<std::byte> share(std::int64_t part, std::int64_t parts) const;
  };
  void run_part(std::int64_t part);

  ThreadPool* threads_;
  std::int64_t parts_;
  Memory from_, over_, to_;
};

}  // namespace weft
