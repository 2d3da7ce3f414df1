#include "tests/runtime/cuda_product_host.h"

#include <cmath>

#include "runtime/cuda/cublaslt_host.h"
#include "tensor/convert.h"
#include "tests/runtime/cuda_test_device.h"

namespace weft {

using namespace cuda;

float product_element(std::int64_t i, int seed) { return static_cast<float>((i * 37 + seed * 11) % 61 - 30) / 32.0f; }

ProductHost::ProductHost(std::uint64_t seed, std::size_t workspace_bytes, std::size_t memory_bytes, int capability)
    : workspace_bytes(workspace_bytes) {
  FakeSettings settings = test_device_settings(seed);
  settings.memory_bytes = memory_bytes;
  settings.compute_capability = capability;
  settings.kernels.push_back(host_product_kernel());
  driver = open_fake_device(std::move(settings));
  stream = driver->create_stream(0);
  queue = std::make_unique<DriverQueue>(*driver, stream, std::vector{driver->load_module(0, fake_image({capability}))});
  library = cublaslt_on_host(*driver, stream);
}

void ProductHost::ready(std::size_t most_plans) {
  queue->add_library(kLibraryProduct,
                     std::make_unique<CublasltProducts>(*driver, stream, library, workspace_bytes, most_plans));
}

std::byte* ProductHost::matrix(DType dtype, std::int64_t count, int seed) {
  auto* memory = static_cast<std::byte*>(driver->allocate_host(0, static_cast<std::size_t>(bytes_of(dtype, count))));
  for (std::int64_t i = 0; i < count; ++i) store_float(dtype, memory, i, product_element(i, seed));
  return memory;
}

LibraryProduct ProductHost::product(DType dtype, std::int64_t rows, std::int64_t columns, std::int64_t depth,
                                    bool has_bias) {
  const std::int64_t apart = depth + 16;
  return {.x = matrix(dtype, rows * apart, 1),
          .weight = matrix(dtype, columns * depth, 2),
          .bias = has_bias ? matrix(dtype, columns, 3) : nullptr,
          .result = matrix(dtype, rows * columns, 4),
          .rows = rows,
          .columns = columns,
          .depth = depth,
          .x_stride = apart,
          .weight_stride = depth,
          .result_stride = columns,
          .dtype = dtype,
          .result_dtype = dtype};
}

LibraryProduct ProductHost::scaled(ProductScales scales, std::int64_t rows, std::int64_t columns, std::int64_t depth) {
  LibraryProduct product = this->product(DType::f8e4m3, rows, columns, depth, false);
  product.x_stride = depth;
  product.result_dtype = DType::bf16;
  product.result = matrix(DType::bf16, rows * columns, 4);
  product.scales = scales;
  const auto blocks_of = [](std::int64_t count) { return (count + kScaleBlock - 1) / kScaleBlock; };
  std::int64_t x_scales = 1, weight_scales = 1;
  if (scales == ProductScales::rows) {
    x_scales = rows;
    weight_scales = columns;
  } else if (scales == ProductScales::blocks) {
    x_scales = blocks_of(depth) * whole_scale_steps(rows);
    weight_scales = blocks_of(columns) * whole_scale_steps(blocks_of(depth));
  }
  product.x_scale = reinterpret_cast<const float*>(matrix(DType::f32, x_scales, 7));
  product.weight_scale = reinterpret_cast<const float*>(matrix(DType::f32, weight_scales, 8));
  product.scratch = matrix(DType::i8, padded_product_bytes(product), 0);
  return product;
}

void ProductHost::call(const LibraryProduct& product) {
  queue->call_library(kLibraryProduct, std::as_bytes(std::span(&product, 1)));
}

std::string ProductHost::refusal(const LibraryProduct& product) {
  return message_of<DeviceError>([&] { call(product); });
}

// The factor of both sides together, for element k of their rows.
static double scale_of(const LibraryProduct& product, std::int64_t row, std::int64_t column, std::int64_t k) {
  const auto pair = [&](std::int64_t of_x, std::int64_t of_weight) {
    return static_cast<double>(product.x_scale[of_x]) * static_cast<double>(product.weight_scale[of_weight]);
  };
  switch (product.scales) {
    case ProductScales::none:
      break;
    case ProductScales::whole:
      return pair(0, 0);
    case ProductScales::rows:
      return pair(row, column);
    case ProductScales::blocks: {
      const std::int64_t groups = (product.depth + 127) / 128;
      return pair(k / 128 * ((product.rows + 3) / 4 * 4) + row, column / 128 * ((groups + 3) / 4 * 4) + k / 128);
    }
  }
  return 1;
}

void expect_product(const LibraryProduct& product, double tolerance) {
  const auto at = [](DType dtype, const std::byte* data, std::int64_t i) {
    return static_cast<double>(load_float(dtype, data, i));
  };
  for (std::int64_t row = 0; row < product.rows; ++row)
    for (std::int64_t column = 0; column < product.columns; ++column) {
      double sum = 0;
      for (std::int64_t k = 0; k < product.depth; ++k)
        sum += at(product.dtype, product.x, row * product.x_stride + k) *
               at(product.dtype, product.weight, column * product.weight_stride + k) *
               scale_of(product, row, column, k);
      if (product.bias != nullptr) sum += at(product.result_dtype, product.bias, column);
      ASSERT_NEAR(at(product.result_dtype, product.result, row * product.result_stride + column), sum,
                  tolerance * (1 + std::abs(sum)))
          << product_text(product) << " at " << row << ", " << column;
    }
}

}  // namespace weft
