#pragma once

// A kernel's call in the emulator: the memory of its tensors, its scratch and the batch it reads are all that the
// launch may touch.

#include <string>

#include "kernels/cuda/emulator/memory_map.h"
#include "kernels/cuda/lib/launch.h"
#include "kernels/kernel.h"

namespace weft::cuda {

// What a launch of the call may touch.
MemoryMap memory_of(const KernelCall& call);

// Goes to the call's queue. Where there is none it runs to its end, in the emulator; DeviceError where the kernel is at
// fault. An operand may be written where a result lies over it.
void run_call(const std::string& kernel, const LaunchShape& shape, const void* arguments, std::size_t argument_bytes,
              const KernelCall& call);

template <class Arguments>
void run_call(const std::string& kernel, const LaunchShape& shape, const Arguments& arguments, const KernelCall& call) {
  run_call(kernel, shape, &arguments, sizeof(Arguments), call);
}

}  // namespace weft::cuda
