#pragma once

// Runs kernels of kernels/cuda/device on the host: one fiber per CUDA thread, block after block. What a GPU would
// answer with a wrong number now and then is an error here, every time, named with its place in the source:
//
//   memory       an access outside the regions given, misaligned, or racing with another thread's
//   shared       a read of what nobody wrote, or of what another thread wrote with no barrier between
//   collectives  a shuffle or barrier that some threads of it never reach, or reach at another place of the source;
//                a mask without the caller; a lane read that takes no part
//
// It also counts, per access in the source, the 32-byte sectors that each warp touches beside the bytes it asked for.
// Launches of one Emulator must not overlap; each runs on the thread that asks.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/cuda/emulator/memory_map.h"
#include "kernels/cuda/lib/launch.h"

namespace weft::cuda {

// The order in which threads of a block run that could run: a missing barrier may show in one and not in another.
enum class ThreadOrder : std::uint8_t { forward, backward, random };

struct EmulatorSettings {
  ThreadOrder order = ThreadOrder::forward;
  std::uint64_t seed = 1;  // of the random order
  bool measure = false;    // count sectors
  // Of each row of blocks this one alone runs: launches over more than 2^32 elements have too many.
  std::optional<std::uint32_t> only_block = {};
};

// One access in the source, over all warps that made it.
struct AccessTraffic {
  std::string place;  // file:line
  bool writes = false;
  std::int64_t requests = 0;  // by a warp, of all its lanes together
  std::int64_t bytes = 0;     // asked for, bytes that several lanes asked for counted once
  std::int64_t sectors = 0;   // of 32 bytes, that hold them
};

class Emulator {
 public:
  explicit Emulator(EmulatorSettings settings = {}) : settings_(settings) {}

  // Runs a launch to its end. DeviceError, naming kernel, block, thread and place, where the kernel is at fault; memory
  // then holds what was written so far.
  void run(const EmulatedKernel& kernel, const LaunchShape& shape, const void* arguments, MemoryMap& memory);

  // Of the last launch, in the order of places. Empty unless `measure`.
  const std::vector<AccessTraffic>& traffic() const { return traffic_; }

 private:
  EmulatorSettings settings_;
  std::vector<AccessTraffic> traffic_;
};

}  // namespace weft::cuda
