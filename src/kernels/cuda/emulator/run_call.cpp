#include "kernels/cuda/emulator/run_call.h"

#include <fmt/core.h>

#include "base/error.h"
#include "kernels/cuda/emulator/emulator.h"
#include "kernels/cuda/emulator/kernel_table.h"

namespace weft::cuda {
namespace {

// From the first element to behind the last, whatever the strides.
std::size_t reach_of(const TensorView& view) {
  if (view.elements() == 0) return 0;
  std::int64_t last = 0;
  for (int i = 0; i < view.rank; ++i) last += (view.size[i] - 1) * view.stride[i];
  return static_cast<std::size_t>(bytes_of(view.dtype, last + 1));
}

}  // namespace

void run_call(const std::string& kernel, const LaunchShape& shape, const void* arguments, std::size_t argument_bytes,
              const KernelCall& call) {
  const EmulatedKernel& found = emulated_kernel(kernel);
  CHECK(found.argument_bytes == argument_bytes, "[{}] takes {} bytes of arguments, not {}", kernel,
        found.argument_bytes, argument_bytes);
  MemoryMap memory;
  for (std::size_t i = 0; i < call.results.size(); ++i)
    memory.allow_writing(fmt::format("result {}", i), call.results[i].data, reach_of(call.results[i]));
  for (std::size_t i = 0; i < call.operands.size(); ++i) {
    const TensorView& operand = call.operands[i];
    if (!operand.present() || operand.kind == MetaKind::batch) continue;
    bool is_result = false;
    for (const TensorView& result : call.results) is_result |= result.data == operand.data;
    if (!is_result) memory.allow_reading(fmt::format("operand {}", i), operand.data, reach_of(operand));
  }
  Emulator().run(found, shape, arguments, memory);
}

}  // namespace weft::cuda
