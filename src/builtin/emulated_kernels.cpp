#include "builtin/emulated_kernels.h"

#include "kernels/cuda/code/kernel_table.h"

namespace weft {
namespace {

void emulate(const cuda::EmulatedKernel& kernel, const cuda::EmulatorSettings& settings,
             const cuda::FakeLaunch& launch) {
  cuda::MemoryMap memory;
  for (const std::span<std::byte> allocation : launch.allocations())
    memory.allow_writing("memory of the device", allocation.data(), allocation.size());
  const cuda::LaunchSize& size = launch.size();
  const LaunchShape shape{.blocks = size.blocks[0], .block_rows = size.blocks[1], .threads = size.threads[0]};
  cuda::Emulator(settings).run(kernel, shape, &launch.arguments<std::byte>(), memory);
}

}  // namespace

std::vector<cuda::FakeKernel> emulated_kernels_of_device(cuda::EmulatorSettings settings) {
  std::vector<cuda::FakeKernel> kernels;
  for (const std::span<const cuda::EmulatedKernel> file : cuda::emulated_kernels())
    for (const cuda::EmulatedKernel& kernel : file)
      kernels.push_back(
          {.name = kernel.name,
           .argument_bytes = kernel.argument_bytes,
           .run = [kernel, settings](const cuda::FakeLaunch& launch) { emulate(kernel, settings, launch); },
           .threads_per_block = kernel.most_threads});
  return kernels;
}

}  // namespace weft
