#include "tests/cuda/ptx/interpreter.h"

#include "base/error.h"
#include "tests/cuda/ptx/warp.h"

namespace weft::ptx {
namespace {

void run_block(Launch& launch, std::uint32_t block, std::uint32_t block_row) {
  BlockState state{launch, block, block_row, Scratch(launch.program.shared_bytes)};
  std::vector<Warp> warps;
  for (std::uint32_t warp = 0; warp * 32 < launch.shape.threads; ++warp) warps.emplace_back(state, warp);
  // Each round takes all that have not ended to the next barrier.
  for (bool is_running = true; is_running;) {
    is_running = false;
    for (Warp& warp : warps) {
      warp.run();
      is_running |= !warp.has_ended();
    }
    for (Warp& warp : warps) warp.release_barrier();
  }
}

}  // namespace

Interpreter::Interpreter(std::string text, std::string name) : module_(std::move(text), std::move(name)) {}

const Program& Interpreter::program(const std::string& kernel) {
  const auto found = programs_.find(kernel);
  if (found != programs_.end()) return found->second;
  return programs_.emplace(kernel, decode(module_.kernel(kernel), module_.name())).first->second;
}

void Interpreter::run(const std::string& kernel, const LaunchShape& shape, const void* arguments, std::size_t bytes,
                      cuda::MemoryMap& memory, std::uint64_t instructions) {
  const Program& found = program(kernel);
  if (bytes != found.argument_bytes)
    fail_device("[{}] takes {} bytes of arguments, but is given {}", kernel, found.argument_bytes, bytes);
  if (shape.threads == 0 || shape.threads > found.most_threads)
    fail_device("[{}] has 1 to {} threads in a block, but is given {}", kernel, found.most_threads, shape.threads);
  memory.begin_launch();
  Launch launch{found, shape, static_cast<const std::byte*>(arguments), memory, instructions};
  for (std::uint32_t row = 0; row < shape.block_rows; ++row)
    for (std::uint32_t block = 0; block < shape.blocks; ++block) run_block(launch, block, row);
}

}  // namespace weft::ptx
