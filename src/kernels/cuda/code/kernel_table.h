#pragma once

// The kernels of kernels/cuda/device as compiled for the host. The build writes the table from the files in that
// folder.

#include <span>
#include <string_view>

#include "emulator/emulated_kernel.h"

namespace weft::cuda {

// The files, each with its kernels.
std::span<const std::span<const EmulatedKernel>> emulated_kernels();

// The first returns null if no file has the name, the second throws InternalError.
const EmulatedKernel* find_emulated_kernel(std::string_view name);
const EmulatedKernel& emulated_kernel(std::string_view name);

}  // namespace weft::cuda
