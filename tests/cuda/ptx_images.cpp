#include "tests/cuda/ptx_images.h"

#include <memory>
#include <string>

#include "tests/cuda/ptx/interpreter.h"

namespace weft {
namespace {

void interpret(ptx::Interpreter& interpreter, const std::string& kernel, const cuda::FakeLaunch& launch) {
  cuda::MemoryMap memory;
  for (const std::span<std::byte> allocation : launch.allocations())
    memory.allow_writing("memory of the device", allocation.data(), allocation.size());
  const cuda::LaunchSize& size = launch.size();
  const LaunchShape shape{.blocks = size.blocks[0], .block_rows = size.blocks[1], .threads = size.threads[0]};
  interpreter.run(kernel, shape, &launch.arguments<std::byte>(), interpreter.program(kernel).argument_bytes, memory);
}

}  // namespace

cuda::FakeImage kernels_of_ptx(std::span<const std::byte> image) {
  std::string text(reinterpret_cast<const char*>(image.data()), image.size());
  text.resize(text.find('\0') == std::string::npos ? text.size() : text.find('\0'));
  const auto interpreter = std::make_shared<ptx::Interpreter>(std::move(text), "the image");
  cuda::FakeImage read{.architecture = interpreter->architecture(),
                       .suffix = interpreter->module().architecture_suffix(),
                       .ptx_version = interpreter->module().version()};
  for (const std::string& name : interpreter->kernels())
    read.kernels.push_back(
        {.name = name,
         .argument_bytes = interpreter->program(name).argument_bytes,
         .run = [interpreter, name](const cuda::FakeLaunch& launch) { interpret(*interpreter, name, launch); },
         .threads_per_block = interpreter->program(name).most_threads});
  return read;
}

}  // namespace weft
