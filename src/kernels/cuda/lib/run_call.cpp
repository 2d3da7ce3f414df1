#include "kernels/cuda/lib/run_call.h"

#include <fmt/core.h>

#include "base/error.h"
#include "emulator/emulator.h"
#include "kernels/cuda/code/kernel_table.h"
#include "kernels/launch_queue.h"

namespace weft::cuda {
namespace {

// Bytes from the first element to the end of the last one, whatever the strides.
std::size_t reach_of(const TensorView& view) {
  if (view.kind == MetaKind::kv)
    return static_cast<std::size_t>(bytes_of(view.dtype, view.size[0] * kv_page_elements(view.meta->kv)));
  if (view.elements() == 0) return 0;
  std::int64_t last = 0;
  for (int i = 0; i < view.rank; ++i) last += (view.size[i] - 1) * view.stride[i];
  return static_cast<std::size_t>(bytes_of(view.dtype, last + 1));
}

void allow_reading(MemoryMap& memory, const Batch& batch) {
  const auto allow = [&memory](const char* name, const std::int32_t* from, std::int64_t count) {
    memory.allow_reading(name, from, static_cast<std::size_t>(count) * sizeof(std::int32_t));
  };
  allow("the batch's query starts", batch.query_starts, batch.sequences + 1);
  allow("the batch's lengths", batch.lengths, batch.sequences);
  allow("the batch's block table", batch.block_table, std::int64_t{batch.sequences} * batch.max_blocks);
}

}  // namespace

MemoryMap memory_of(const KernelCall& call) {
  MemoryMap memory;
  for (std::size_t i = 0; i < call.results.size(); ++i)
    memory.allow_writing(fmt::format("result {}", i), call.results[i].data, reach_of(call.results[i]));
  for (std::size_t i = 0; i < call.operands.size(); ++i) {
    const TensorView& operand = call.operands[i];
    if (!operand.present()) continue;
    if (operand.kind == MetaKind::batch) {
      allow_reading(memory, *operand.as<Batch>());
      continue;
    }
    bool is_result = false;
    for (const TensorView& result : call.results) is_result |= result.data == operand.data;
    if (!is_result) memory.allow_reading(fmt::format("operand {}", i), operand.data, reach_of(operand));
  }
  memory.allow_writing("scratch", call.scratch.data(), call.scratch.size());
  return memory;
}

void run_call(const std::string& kernel, const LaunchShape& shape, const void* arguments, std::size_t argument_bytes,
              const KernelCall& call) {
  if (call.queue != nullptr)
    return call.queue->launch(kernel, shape, {static_cast<const std::byte*>(arguments), argument_bytes});
  const EmulatedKernel& found = emulated_kernel(kernel);
  CHECK(found.argument_bytes == argument_bytes, "[{}] takes {} bytes of arguments, not {}", kernel,
        found.argument_bytes, argument_bytes);
  MemoryMap memory = memory_of(call);
  Emulator().run(found, shape, arguments, memory);
}

}  // namespace weft::cuda
