#pragma once

// Counts the sectors of 32 bytes that warps touch. The accesses of a warp's lanes belong together when they are the
// same occurrence of the same place in the source.

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
  // Counts what the block that just ended did.
  void end_block();
  std::vector<AccessTraffic> result() const;

 private:
  using Place = std::tuple<std::string, std::uint32_t, std::uint32_t>;  // file, line, column
  struct Occurrences {
    bool writes = false;
    std::map<std::uint32_t, std::uint32_t> of_thread;
    // By warp and occurrence: begin and end of what lanes asked for.
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::pair<std::uintptr_t, std::uintptr_t>>> requests;
  };
  std::map<Place, Occurrences> open_;
  std::map<Place, AccessTraffic> counted_;
};

}  // namespace weft::cuda
