#pragma once

// 32 threads in lockstep. Lanes that diverge at a branch run separately, the ones furthest back first, and converge
// again at the same instruction.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "emulator/memory_map.h"
#include "kernels/launch_shape.h"
#include "tests/cuda/ptx/program.h"

namespace weft::ptx {

// Addresses of one space as generic ones.
constexpr std::uint64_t kSharedWindow = 0x7ffe000000000000u, kLocalWindow = 0x7ffd000000000000u,
                        kParameterWindow = 0x7ffc000000000000u, kWindowBytes = 0x0001000000000000u;

// Memory of a block or thread, that begins with nothing in it.
struct Scratch {
  explicit Scratch(std::uint64_t bytes) : bytes(bytes), is_written(bytes) {}
  std::vector<std::byte> bytes;
  std::vector<bool> is_written;
};

struct Launch {
  const Program& program;
  const LaunchShape& shape;
  const std::byte* arguments;
  cuda::MemoryMap& memory;
  std::uint64_t instructions_left;
};

struct BlockState {
  Launch& launch;
  std::uint32_t block, block_row;
  Scratch shared;
};

class Warp {
 public:
  Warp(BlockState& block, std::uint32_t number);

  // Until each lane has ended or waits for the block.
  void run();
  bool has_ended() const { return (at_barrier_ | running_) == 0; }
  void release_barrier();

  // The following functions are for instructions while they run.

  std::uint64_t* values(std::uint32_t slot) { return values_.data() + std::size_t{slot} * 32; }
  // The lanes go on at `target`.
  void jump(std::uint32_t lanes, std::uint32_t target);
  void end(std::uint32_t lanes);
  void wait_for_block(std::uint32_t lanes);
  // All existing lanes of `wanted`, once they are at this instruction; the caller then executes it for all of them.
  // Until then the result is 0 and the caller waits.
  std::uint32_t gather(std::uint32_t lanes, std::uint32_t wanted);
  // Memory of an access that is within bounds, aligned and, if it reads, written before.
  std::byte* access(std::uint32_t lane, Space space, std::uint64_t address, std::uint64_t bytes, bool writes);
  std::uint32_t existing() const { return existing_; }
  std::uint32_t running() const { return running_; }
  std::uint32_t active() const { return active_; }
  // DeviceError that names kernel, block, thread and instruction.
  [[noreturn]] void fault(std::uint32_t lane, const std::string& what) const;

 private:
  bool choose_lanes();
  // Chooses the lanes that run next.
  void part();
  std::byte* scratch_access(std::uint32_t lane, Scratch& scratch, const char* name, std::uint64_t address,
                            std::uint64_t bytes, bool writes);

  BlockState& block_;
  const Program& program_;
  std::uint32_t number_;
  std::uint32_t existing_ = 0;
  // Each lane that has not ended is in one of these. Those that gather are at their instruction.
  std::uint32_t running_ = 0, at_barrier_ = 0, gathering_ = 0;
  std::array<std::uint32_t, 32> next_ = {};  // instruction of a lane that is not among the active
  std::uint32_t active_ = 0;                 // the lanes that run now, all at `place_`
  std::uint32_t place_ = 0, current_ = 0, limit_ = 0;
  bool has_parted_ = false;
  std::vector<std::uint64_t> values_;  // by slot, 32 each
  std::vector<Scratch> local_;
};

}  // namespace weft::ptx
