#pragma once

// A stream of a fake device with cuBLASLt, and products in its memory.

#include <memory>
#include <string>

#include "kernels/library_product.h"
#include "runtime/cuda/cublaslt.h"
#include "runtime/cuda/driver_queue.h"

namespace weft {

struct ProductHost {
  explicit ProductHost(std::uint64_t seed = 1, std::size_t workspace_bytes = 1 << 16,
                       std::size_t memory_bytes = 1 << 22, int capability = 90);
  // With the test's version of the library.
  void ready(std::size_t most_plans = cuda::kCublasltPlans);
  // Memory of the host and the device, with other numbers for each seed.
  std::byte* matrix(DType dtype, std::int64_t count, int seed);
  // Rows of x are 16 elements further apart than long.
  LibraryProduct product(DType dtype, std::int64_t rows, std::int64_t columns, std::int64_t depth, bool has_bias);
  // A product of codes to bf16, with scales and scratch memory; rows of x are contiguous.
  LibraryProduct scaled(ProductScales scales, std::int64_t rows, std::int64_t columns, std::int64_t depth);
  void call(const LibraryProduct& product);
  // The error of the call.
  std::string refusal(const LibraryProduct& product);

  std::unique_ptr<cuda::Driver> driver;
  cuda::Stream stream;
  std::unique_ptr<cuda::DriverQueue> queue;
  cuda::CublasltLibrary library;  // the stand-in on the host, until a test changes it
  std::size_t workspace_bytes;
};

// Element `i` of such a matrix.
float product_element(std::int64_t i, int seed);

// Fails the running test unless the result is that of sums in double.
void expect_product(const LibraryProduct& product, double tolerance);

}  // namespace weft
