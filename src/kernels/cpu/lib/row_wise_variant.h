#pragma once

// Fills a kernel's `run` with the code for the device's instruction set.

#include "kernels/cpu/lib/row_wise_kernels.h"
#include "kernels/kernel.h"

namespace weft::cpu {

// The table for the device's features. Features above avx512 have no tables of their own.
template <class Table>
const Table* table_for(const DeviceDescription& device, const Table& baseline, const Table& avx2, const Table& avx512) {
  return device.features >= CpuFeatures::avx512 ? &avx512 : device.features >= CpuFeatures::avx2 ? &avx2 : &baseline;
}

template <void (*run)(const RowWiseKernels&, const KernelCall&)>
void prepare_row_wise(Kernel& kernel, const DeviceDescription& device) {
  const RowWiseKernels* kernels =
      table_for(device, row_wise_kernels_baseline, row_wise_kernels_avx2, row_wise_kernels_avx512);
  kernel.run = [kernels](const KernelCall& call) { run(*kernels, call); };
}

inline constexpr const char* kRowWiseNote = "rows in parallel; baseline, AVX2, AVX-512; the same bits on each";

}  // namespace weft::cpu
