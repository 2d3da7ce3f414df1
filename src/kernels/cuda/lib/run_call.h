#pragma once

// Runs a kernel's call in the emulator. The launch may access only the memory of its tensors, its scratch memory and
// the batch that it reads.

#include <string>

#include "emulator/memory_map.h"
#include "kernels/kernel.h"
#include "kernels/launch_shape.h"

namespace weft::cuda {

// The memory that a launch of the call may access.
MemoryMap memory_of(const KernelCall& call);

// Adds the launch to the call's queue. Without a queue it runs to its end in the emulator, and throws DeviceError if
// the kernel is at fault. An operand may be written if a result overlaps it.
void run_call(const std::string& kernel, const LaunchShape& shape, const void* arguments, std::size_t argument_bytes,
              const KernelCall& call);

template <class Arguments>
void run_call(const std::string& kernel, const LaunchShape& shape, const Arguments& arguments, const KernelCall& call) {
  run_call(kernel, shape, &arguments, sizeof(Arguments), call);
}

}  // namespace weft::cuda
