#pragma once

// cuBLASLt on a fake device. The functions read descriptions as the library does, refuse what it refuses, and queue the
// product on the stream. When the stream reaches it, the host computes it in the device's memory.

#include "runtime/cuda/cublaslt.h"
#include "runtime/cuda/fake_device.h"

namespace weft::cuda {

// The kernel that computes products. The fake device must have it among FakeSettings::kernels.
FakeKernel host_product_kernel();

inline constexpr std::size_t kStandInVersion = 130000;

// Replaces the library of that version on this stream of a fake device, which must have the kernel. Driver and stream
// must outlive the result. It supports the products that CublasltProducts describes, as far as that version has them
// for the device's compute capability, and refuses everything else as not supported.
CublasltLibrary cublaslt_on_host(Driver& driver, Stream stream, std::size_t version = kStandInVersion);

}  // namespace weft::cuda
