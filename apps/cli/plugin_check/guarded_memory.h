#pragma once

// Memory for one call of a kernel that is not trusted. Each buffer ends at the end of a page, apart from alignment. The
// rest of its pages holds a known byte, and the neighbouring pages are inaccessible. So a byte written next to a buffer
// is detected after the call, and a read or write further away is a fault that is recorded.

#include <cstdint>
#include <deque>
#include <string>

#include "tensor/tensor.h"

namespace weft::plugin_check {

// The addresses of the current call's buffers and of a fault, in memory that outlives the process.
struct FaultRecord {
  static constexpr int kMostZones = 64;
  struct Zone {
    char name[64];
    std::uintptr_t begin, data, data_end, end;
  };
  int zones = 0;
  Zone zone[kMostZones];
  int signal = 0;
  std::uintptr_t address = 0;

  // Returns a zeroed record that is shared with the children of this process and never freed.
  static FaultRecord* shared();
  // Returns a text such as "touched the byte 64 after operand x", or "" if the address is not near a buffer.
  std::string text() const;
};

// Installs a crash handler that writes a fault of this process to the record before the process ends.
void record_faults(FaultRecord& record);

class GuardedMemory {
 public:
  // Holds all memory of one call. The zones of the record are those of the latest object.
  explicit GuardedMemory(FaultRecord& record);
  ~GuardedMemory();
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  // Returns a tensor in a separate buffer with each byte set to `fill`.
  Tensor tensor(const std::string& name, const Meta& meta, std::int64_t bytes, std::byte fill);
  std::byte* buffer(const std::string& name, std::int64_t bytes, std::byte fill);

  // Returns "" if nothing was written outside the buffers, else the buffer next to which it was written.
  std::string breach() const;

 private:
  struct Buffer {
    std::string name;
    std::byte* mapping;
    // Sizes in bytes: of the mapping; in its readable part before the data, of the data, and after the data.
    std::int64_t mapped, before, bytes, after;
  };
  FaultRecord& record_;
  std::deque<Buffer> buffers_;
};

}  // namespace weft::plugin_check
