#pragma once

// Counts the sectors of 32 bytes that warps touch. Accesses of a warp's lanes belong to one request if they are the
// same occurrence of the same source location.

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "kernels/cuda/emulator/emulator.h"
#include "kernels/cuda/emulator/thread.h"

namespace weft::cuda {

class TrafficCounter {
 public:
  void note(const ThreadPlace& at, const void* address, std::size_t bytes, bool writes, const Site& site);
  // Counts the accesses of the block that just ended.
  void end_block();
  std::vector<AccessTraffic> result() const;

 private:
  using SourceLine = std::tuple<std::string, std::uint32_t, std::uint32_t>;  // file, line, column
  struct Occurrences {
    bool writes = false;
    std::map<std::uint32_t, std::uint32_t> of_thread;
    // By warp and occurrence: the begin and end of the bytes that each lane requested.
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::pair<std::uintptr_t, std::uintptr_t>>> requests;
  };
  std::map<SourceLine, Occurrences> open_;
  std::map<SourceLine, AccessTraffic> counted_;
};

}  // namespace weft::cuda
