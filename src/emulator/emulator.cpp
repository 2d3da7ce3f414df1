#include "emulator/emulator.h"

#include "base/error.h"
#include "emulator/block.h"

namespace weft::cuda {

void Emulator::run(const EmulatedKernel& kernel, const LaunchShape& shape, const void* arguments, MemoryMap& memory) {
  constexpr std::uint32_t kMostBlocks = 0x7fffffff, kMostBlockRows = 65535;  // the limits of every device
  traffic_.clear();
  if (shape.threads == 0 || shape.threads > kernel.most_threads || shape.blocks == 0 || shape.blocks > kMostBlocks ||
      shape.block_rows == 0 || shape.block_rows > kMostBlockRows)
    fail_device("[{}] a launch must have 1 to {} threads in 1 to {} x 1 to {} blocks, but is {} in {} x {}",
                kernel.name, kernel.most_threads, kMostBlocks, kMostBlockRows, shape.threads, shape.blocks,
                shape.block_rows);
  memory.begin_launch();
  TrafficCounter traffic;
  Launch launch{.kernel = kernel,
                .shape = shape,
                .arguments = arguments,
                .settings = settings_,
                .memory = memory,
                .traffic = settings_.measure ? &traffic : nullptr,
                .stacks = {},
                .random_state = settings_.seed * 0x9e3779b97f4a7c15u | 1u};
  launch.stacks.reserve(shape.threads);
  const std::uint32_t first = settings_.only_block.value_or(0);
  const std::uint32_t last = settings_.only_block.value_or(shape.blocks - 1);
  for (std::uint32_t row = 0; row < shape.block_rows; ++row) {
    for (std::uint32_t i = first; i <= last; ++i) {
      Block(launch, i, row).run();
      traffic.end_block();
    }
  }
  traffic_ = traffic.result();
}

}  // namespace weft::cuda
