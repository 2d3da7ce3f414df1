#pragma once

// A plain copy that a computation is held against: it reads, writes over and writes elsewhere as many bytes, in shares
// of the same proportion, with ordinary stores of the widest vectors that the C library has for the machine (narrow
// ones fill a core's store buffer: the copy then takes a fifth longer).

#include <cstdint>
#include <span>

#include "base/thread_pool.h"
#include "tensor/storage.h"

namespace weft {

class PlainCopy {
 public:
  // Bytes that are only read, that are read and written over, and that are only written.
  PlainCopy(ThreadPool& threads, std::int64_t read, std::int64_t over, std::int64_t written);

  void run();

 private:
  struct Memory {
    std::shared_ptr<Storage> storage;
    std::int64_t bytes;
    explicit Memory(std::int64_t bytes);
    // Share `part` of `parts` equal ones.
    std::span<std::byte> share(std::int64_t part, std::int64_t parts) const;
  };
  void run_part(std::int64_t part);

  ThreadPool* threads_;
  std::int64_t parts_;
  Memory from_, over_, to_;
};

}  // namespace weft
