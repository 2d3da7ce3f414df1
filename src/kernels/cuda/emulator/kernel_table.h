#pragma once

// The kernels of kernels/cuda/device as the host's compiler made them. The build writes the table from the files there.

#include <span>
#include <string_view>

#include "kernels/cuda/lib/launch.h"

namespace weft::cuda {

// By file, each with its kernels.
std::span<const std::span<const EmulatedKernel>> emulated_kernels();

// Null for a name that no file has; of the other, InternalError.
const EmulatedKernel* find_emulated_kernel(std::string_view name);
const EmulatedKernel& emulated_kernel(std::string_view name);

}  // namespace weft::cuda
