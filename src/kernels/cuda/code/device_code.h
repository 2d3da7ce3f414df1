#pragma once

// The kernels of kernels/cuda/device as nvcc made them: a fatbin for each file, inside the program where it was built
// with -DWEFT_CUDA=ON. Each has machine code for every one of the architectures and PTX of the last, which newer
// devices compile for themselves.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "kernels/kernel.h"

namespace weft::cuda {

struct DeviceCode {
  std::string_view file;  // of kernels/cuda/device, without its ending
  std::span<const std::byte> image;
};

// In the order of emulated_kernels(), which has the same files; empty in a program that was built without. Made by
// tools/device_code.sh.
std::span<const DeviceCode> device_code();
// Compute capabilities, 90 for 9.0, in rising order; empty where device_code() is.
std::span<const int> device_code_architectures();

// The image that defines a kernel; UserError in a program without device code, InternalError where no file has it.
std::span<const std::byte> device_code_of(std::string_view kernel);

// Whether devices of this compute capability run the code: there is machine code of the same major and no higher minor
// number, or PTX that is no newer. Else what was wanted and what there is.
Verdict has_device_code(int compute_capability);

// Whether a driver for that CUDA, 12040 for 12.4, reads the code: it is compressed, which older ones do not know. 0 is
// a driver without a number, and a program without code asks for nothing.
inline constexpr int kLeastDriverOfCode = 12040;
Verdict driver_reads_device_code(int driver_version, bool has_code = !device_code().empty());

// "sm_80, sm_90, PTX of compute_90"; or "none: ..." and why.
std::string device_code_text();

}  // namespace weft::cuda
