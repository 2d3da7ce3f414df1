#pragma once

// Runs kernels of kernels/cuda/device on the host: one fiber per CUDA thread, block after block. Faults that make a GPU
// give a wrong number now and then are errors here, every time, with their source location:
//
//   memory       an access outside the given regions, misaligned, or racing with another thread's
//   shared       a read of unwritten data, or of another thread's data without a barrier between
//   collectives  a shuffle or barrier that some of its threads never reach, or reach at another source location;
//                a mask without the caller; a read of a lane that does not take part
//
// For each access in the source it also counts the 32-byte sectors that each warp touches, and the requested bytes.
// Launches of one Emulator must not overlap; each runs in the calling thread.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "emulator/emulated_kernel.h"
#include "emulator/memory_map.h"
#include "kernels/launch_shape.h"

namespace weft::cuda {

// The order in which the runnable threads of a block run: a missing barrier may be visible in one order and not in
// another.
enum class ThreadOrder : std::uint8_t { forward, backward, random };

struct EmulatorSettings {
  ThreadOrder order = ThreadOrder::forward;
  std::uint64_t seed = 1;  // for the random order
  bool measure = false;    // count sectors
  // Only this block of each row of blocks runs: launches over more than 2^32 elements have too many blocks.
  std::optional<std::uint32_t> only_block = {};
};

// One access in the source, summed over all warps that made it.
struct AccessTraffic {
  std::string place;  // file:line
  bool writes = false;
  std::int64_t requests = 0;  // one by each warp, for all its lanes
  std::int64_t bytes = 0;     // requested; bytes that several lanes request count once
  std::int64_t sectors = 0;   // sectors of 32 bytes that contain them
};

class Emulator {
 public:
  explicit Emulator(EmulatorSettings settings = {}) : settings_(settings) {}

  // Runs a launch to its end. Throws DeviceError with kernel, block, thread and source location if the kernel is at
  // fault; memory then has what was written so far.
  void run(const EmulatedKernel& kernel, const LaunchShape& shape, const void* arguments, MemoryMap& memory);

  // For the last launch, ordered by source location. Empty unless `measure`.
  const std::vector<AccessTraffic>& traffic() const { return traffic_; }

 private:
  EmulatorSettings settings_;
  std::vector<AccessTraffic> traffic_;
};

}  // namespace weft::cuda
