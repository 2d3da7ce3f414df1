#include "kernels/cuda/code/kernel_table.h"

#include "base/error.h"

namespace weft::cuda {

const EmulatedKernel* find_emulated_kernel(std::string_view name) {
  for (const std::span<const EmulatedKernel> file : emulated_kernels())
    for (const EmulatedKernel& kernel : file)
      if (name == kernel.name) return &kernel;
  return nullptr;
}

const EmulatedKernel& emulated_kernel(std::string_view name) {
  const EmulatedKernel* kernel = find_emulated_kernel(name);
  CHECK(kernel != nullptr, "[cuda] no kernel {}", name);
  return *kernel;
}

}  // namespace weft::cuda
