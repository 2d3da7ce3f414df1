#pragma once

// The kernels of kernels/cuda/device as nvcc compiled them: one fatbin for each file, inside a program that was built
// with -DWEFT_CUDA=ON. Each fatbin has machine code for every architecture and PTX for the last one, which the driver
// compiles for newer devices.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "kernels/kernel.h"

namespace weft::cuda {

struct DeviceCode {
  std::string_view file;  // in kernels/cuda/device, without its suffix
  std::span<const std::byte> image;
};

// In the order of emulated_kernels(), which has the same files; empty in a program that was built without them.
// tools/device_code.sh writes the table.
std::span<const DeviceCode> device_code();
// Compute capabilities, 90 for 9.0, in rising order; empty if device_code() is.
std::span<const int> device_code_architectures();

// Returns the image that defines a kernel. Throws UserError in a program without device code, InternalError if no file
// has the kernel.
std::span<const std::byte> device_code_of(std::string_view kernel);

// Whether devices of this compute capability can run the code: there is machine code with the same major and no higher
// minor number, or PTX that is not newer. A refusal says what was wanted and what exists.
Verdict has_device_code(int compute_capability);

// Whether a driver for this CUDA version (12040 for 12.4) can read the code, which is compressed; older drivers cannot.
// 0 is a driver without a version. A program without code has no requirement.
inline constexpr int kLeastDriverOfCode = 12040;
Verdict driver_reads_device_code(int driver_version, bool has_code = !device_code().empty());

// "sm_80, sm_90, PTX of compute_90", or "none: ..." with the reason.
std::string device_code_text();

}  // namespace weft::cuda
