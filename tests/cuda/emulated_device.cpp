#include "tests/cuda/emulated_device.h"

#include "kernels/cuda/emulator/emulator.h"
#include "kernels/cuda/emulator/kernel_table.h"

namespace weft {
namespace {

using namespace cuda;

void emulate(const EmulatedKernel& kernel, const FakeLaunch& launch) {
  MemoryMap memory;
  for (const std::span<std::byte> allocation : launch.allocations())
    memory.allow_writing("memory of the device", allocation.data(), allocation.size());
  const LaunchSize& size = launch.size();
  const LaunchShape shape{.blocks = size.blocks[0], .block_rows = size.blocks[1], .threads = size.threads[0]};
  Emulator({.order = ThreadOrder::random}).run(kernel, shape, &launch.arguments<std::byte>(), memory);
}

}  // namespace

std::unique_ptr<Driver> open_emulated_device(std::uint64_t seed) {
  FakeSettings settings{.seed = seed, .memory_bytes = std::size_t{1} << 24};
  for (const std::span<const EmulatedKernel> file : emulated_kernels())
    for (const EmulatedKernel& kernel : file)
      settings.kernels.push_back({.name = kernel.name,
                                  .argument_bytes = kernel.argument_bytes,
                                  .run = [kernel](const FakeLaunch& launch) { emulate(kernel, launch); },
                                  .threads_per_block = kernel.most_threads});
  return open_fake_device(std::move(settings));
}

}  // namespace weft
