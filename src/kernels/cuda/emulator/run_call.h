#pragma once

// A kernel's call in the emulator: the memory of its tensors is all that the launch may touch.

#include <string>

#include "kernels/cuda/lib/launch.h"
#include "kernels/kernel.h"

namespace weft::cuda {

// Runs to its end; DeviceError where the kernel is at fault. An operand may be written where a result lies over it.
void run_call(const std::string& kernel, const LaunchShape& shape, const void* arguments, std::size_t argument_bytes,
              const KernelCall& call);

template <class Arguments>
void run_call(const std::string& kernel, const LaunchShape& shape, const Arguments& arguments, const KernelCall& call) {
  run_call(kernel, shape, &arguments, sizeof(Arguments), call);
}

}  // namespace weft::cuda
