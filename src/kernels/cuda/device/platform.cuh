#pragma once

// One kernel source for two compilers: nvcc compiles it to device code, the host's C++ compiler for the emulator. All
// that differs between the two is in this folder's .cuh files. This file has what every kernel uses: indices of
// threads, barriers, shuffles, shared arrays and the definition of kernels.
//
// A kernel takes one plain struct. WEFT_CUDA_KERNELS(file, Arguments, LIST) defines the kernels of a file, where
// LIST(KERNEL) has KERNEL(name, threads, function...) for each; `function` is a WEFT_DEVICE function of the struct.
//
// Kernels with reference math are listed if WEFT_REFERENCE_KERNELS is defined: always on the host; with nvcc in the
// code of the program, in the code that the contract checks (tools/check_cuda.py), and in the code that the tests
// interpret.

#include <cstdint>

namespace weft::cuda {

constexpr std::uint32_t kWholeWarp = 0xffffffffu;

}  // namespace weft::cuda

#if defined(__CUDACC__)

#define WEFT_DEVICE __device__ __forceinline__
#define WEFT_UNROLL _Pragma("unroll")
// A kernel's threads, and the least number of blocks that a multiprocessor must be able to hold. This limits the
// registers; the compiler uses them up to that limit before it spills.
#define WEFT_THREADS(threads, blocks) threads, blocks
// Unrolls by `count`, if more iterations would need too many registers.
#define WEFT_UNROLL_BY(count) WEFT_PRAGMA(unroll count)
#define WEFT_PRAGMA(words) _Pragma(#words)
#define WEFT_SHARED(Type, name, count) __shared__ Type name[count]
// The source location for the emulator.
#define WEFT_SITE
#define WEFT_SITE_ALONE
#define WEFT_PASS_SITE

namespace weft::cuda {

WEFT_DEVICE unsigned thread_index() { return threadIdx.x; }
WEFT_DEVICE unsigned block_index() { return blockIdx.x; }
WEFT_DEVICE unsigned block_row() { return blockIdx.y; }

WEFT_DEVICE void wait_for_block() { __syncthreads(); }
WEFT_DEVICE void wait_for_warp() { __syncwarp(); }
// The value of the lane whose number differs in the bits of `distance`. All lanes of the warp call it.
WEFT_DEVICE float exchange(float value, unsigned distance) { return __shfl_xor_sync(kWholeWarp, value, distance); }
// Whether it holds in any lane of the warp. All lanes call it.
WEFT_DEVICE bool holds_in_any_lane(bool holds) { return __any_sync(kWholeWarp, holds) != 0; }

}  // namespace weft::cuda

#define WEFT_CUDA_KERNEL(name, threads, ...)                                                                \
  extern "C" __global__ void __launch_bounds__(threads) name(const __grid_constant__ Arguments arguments) { \
    __VA_ARGS__(arguments);                                                                                 \
  }
#define WEFT_CUDA_KERNELS(file, KernelArguments, LIST) \
  namespace weft::cuda {                               \
  using Arguments = KernelArguments;                   \
  LIST(WEFT_CUDA_KERNEL)                               \
  }

#else

#include <bit>
#include <span>

#include "emulator/emulated_kernel.h"
#include "emulator/thread.h"

#define WEFT_REFERENCE_KERNELS
#define WEFT_DEVICE inline
#define WEFT_UNROLL
#define WEFT_UNROLL_BY(count)
#define WEFT_THREADS(threads, blocks) threads
#define WEFT_SHARED(Type, name, count)           \
  ::weft::cuda::SharedArray<Type, count>& name = \
      ::weft::cuda::shared_array_at<Type, count, decltype([] {})>(::weft::cuda::Site::current())
#define WEFT_SITE , const ::weft::cuda::Site& site = ::weft::cuda::Site::current()
#define WEFT_SITE_ALONE const ::weft::cuda::Site& site = ::weft::cuda::Site::current()
#define WEFT_PASS_SITE , site

namespace weft::cuda {

WEFT_DEVICE unsigned thread_index() { return this_thread().thread; }
WEFT_DEVICE unsigned block_index() { return this_thread().block; }
WEFT_DEVICE unsigned block_row() { return this_thread().block_row; }

WEFT_DEVICE void wait_for_block(WEFT_SITE_ALONE) { block_barrier(site); }
WEFT_DEVICE void wait_for_warp(WEFT_SITE_ALONE) { warp_barrier(kWholeWarp, site); }
WEFT_DEVICE float exchange(float value, unsigned distance WEFT_SITE) {
  const std::uint64_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint64_t other = shuffle(kWholeWarp, bits, this_thread().lane() ^ distance, site);
  return std::bit_cast<float>(static_cast<std::uint32_t>(other));
}
WEFT_DEVICE bool holds_in_any_lane(bool holds WEFT_SITE) {
  const LaneWords* lanes = gather_lanes("vote", {holds ? 1u : 0u}, site);
  for (int lane = 0; lane < 32; ++lane)
    if (lanes[lane][0] != 0) return true;
  return false;
}

}  // namespace weft::cuda

#define WEFT_CUDA_KERNEL(name, threads, ...) \
  void name##_body(const void* arguments) { __VA_ARGS__(*static_cast<const Arguments*>(arguments)); }
#define WEFT_CUDA_KERNEL_ROW(name, threads, ...) {#name, &name##_body, threads, sizeof(Arguments)},
#define WEFT_CUDA_KERNELS(file, KernelArguments, LIST)                                \
  namespace weft::cuda {                                                              \
  namespace file##_kernels {                                                          \
    namespace {                                                                       \
    using Arguments = KernelArguments;                                                \
    LIST(WEFT_CUDA_KERNEL)                                                            \
    constexpr EmulatedKernel kRows[] = {LIST(WEFT_CUDA_KERNEL_ROW)};                  \
    }                                                                                 \
  }                                                                                   \
  std::span<const EmulatedKernel> emulated_##file() { return file##_kernels::kRows; } \
  }

#endif
