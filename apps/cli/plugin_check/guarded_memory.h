#pragma once

// Memory for one call of a kernel that is not trusted. Each buffer ends at the end of a page, up to its alignment; what
// is left of its pages holds a known byte, and the pages around them may not be touched at all. So a byte that is
// written beside a buffer is seen afterwards, and a touch further out, reads included, is a fault that is recorded.

#include <cstdint>
#include <deque>
#include <string>

#include "tensor/tensor.h"

namespace weft::plugin_check {

// Where the buffers of the current call lie, and the address of a fault, in memory that survives the process.
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

  // Zeroed, and shared with the children of this process; never freed.
  static FaultRecord* shared();
  // "touched the byte 64 behind operand x", or "" when the address lies near no buffer.
  std::string text() const;
};

// From here on a fault of this process goes into the record before it ends the process.
void record_faults(FaultRecord& record);

class GuardedMemory {
 public:
  // All memory of one call; the zones of the record are those of the latest one.
  explicit GuardedMemory(FaultRecord& record);
  ~GuardedMemory();
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  // A tensor in a buffer of its own, every byte of it `fill`.
  Tensor tensor(const std::string& name, const Meta& meta, std::int64_t bytes, std::byte fill);
  std::byte* buffer(const std::string& name, std::int64_t bytes, std::byte fill);

  // "" when nothing beside a buffer was written, else which.
  std::string breach() const;

 private:
  struct Buffer {
    std::string name;
    std::byte* mapping;
    std::int64_t mapped, before, bytes, behind;  // bytes of the mapping; of the readable part: before, the data, behind
  };
  FaultRecord& record_;
  std::deque<Buffer> buffers_;
};

}  // namespace weft::plugin_check
