#pragma once

// cuBLASLt on a fake device: functions that read descriptions as the library does, refuse what it refuses, and queue
// the product on the stream, where the host computes it once its turn comes, from the device's memory.

#include "runtime/cuda/cublaslt.h"
#include "runtime/cuda/fake_device.h"

namespace weft::cuda {

// The kernel that computes products; among those of the fake device (FakeSettings::kernels).
FakeKernel host_product_kernel();

inline constexpr std::size_t kStandInVersion = 130000;

// Stands in for the library of that version on this stream of a fake device, which has the kernel. Driver and stream
// must outlive it. Of what the library takes it knows the products that CublasltProducts states, as far as that version
// has them for the device's compute capability, and refuses all else as not supported.
CublasltLibrary cublaslt_on_host(Driver& driver, Stream stream, std::size_t version = kStandInVersion);

}  // namespace weft::cuda
