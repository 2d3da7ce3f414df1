// Products of codes with scales of rows and of blocks on a fake device: results for all sizes, padded rows, captures,
// and features that only some GPUs and versions of the library have.

#include <cstring>

#include <gtest/gtest.h>

#include "runtime/cuda/cublaslt_host.h"
#include "runtime/cuda/current_guard.h"
#include "tensor/convert.h"
#include "tests/runtime/cuda_product_host.h"
#include "tests/runtime/cuda_test_device.h"

namespace weft::cuda_cublaslt_scales_test {

using namespace weft::cuda;

constexpr double kOfBf16 = 4e-3;

TEST(CublasltScales, AreThoseOfEachElementWhateverTheSizes) {
  for (const ProductScales scales : {ProductScales::rows, ProductScales::blocks})
    for (const std::int64_t rows : {1, 3, 4, 6})
      for (const std::int64_t columns : {16, 272})
        for (const std::int64_t depth : {64, 144, 640}) {
          ProductHost host;
          const LibraryProduct product = host.scaled(scales, rows, columns, depth);
          host.ready();
          host.call(product);
          host.queue->synchronize();
          expect_product(product, kOfBf16);
        }
}

TEST(CublasltScales, OfRowsThatAreMadeUpWriteNoOtherRow) {
  ProductHost host;
  LibraryProduct product = host.scaled(ProductScales::blocks, 5, 32, 128);
  product.result = host.matrix(DType::bf16, 8 * 32, 4);
  host.ready();
  host.call(product);
  host.queue->synchronize();
  expect_product(product, kOfBf16);
  const std::byte* const untouched = host.matrix(DType::bf16, 8 * 32, 4);
  EXPECT_EQ(std::memcmp(product.result + 5 * 32 * 2, untouched + 5 * 32 * 2, 3 * 32 * 2), 0)
      << "the memory after the result was overwritten";
}

TEST(CublasltScales, OfRowsThatAreMadeUpAreCaptured) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    ProductHost host(seed);
    const LibraryProduct product = host.scaled(ProductScales::blocks, 3, 48, 256);
    host.ready();
    const DriverQueue::Recording recording = host.queue->record([&] { host.call(product); });
    EXPECT_EQ(recording.work.nodes, 3);  // to scratch, the product, from scratch
    const CurrentGuard guard(*host.driver, host.stream);
    const Owner<ExecutableObject> executable(*host.driver, host.driver->instantiate(*recording.graph));
    for (const int number : {5, 6}) {
      for (std::int64_t i = 0; i < 3 * 256; ++i)
        store_float(DType::f8e4m3, const_cast<std::byte*>(product.x), i, product_element(i, number));
      host.driver->launch(host.stream, *executable);
      host.queue->synchronize();
      expect_product(product, kOfBf16);
    }
  }
}

std::string refusal_on(int capability, ProductScales scales, std::size_t version = kStandInVersion) {
  ProductHost host(1, 1 << 16, 1 << 22, capability);
  host.library = cublaslt_on_host(*host.driver, host.stream, version);
  const LibraryProduct product = host.scaled(scales, 4, 32, 128);
  host.ready();
  return host.refusal(product);
}

TEST(CublasltScales, AreTheLibrarysOnSomeGpusAndSinceSomeVersion) {
  const auto expect_refused = [](int capability, ProductScales scales, const char* words,
                                 std::size_t version = kStandInVersion) {
    const std::string refusal = refusal_on(capability, scales, version);
    EXPECT_NE(refusal.find(words), std::string::npos) << capability << ", " << version << ": " << refusal;
  };
  for (const ProductScales scales : {ProductScales::whole, ProductScales::rows, ProductScales::blocks}) {
    EXPECT_EQ(refusal_on(90, scales), "");
    EXPECT_EQ(refusal_on(90, scales, 120900), "");
    expect_refused(80, scales, "CUBLAS_STATUS_NOT_SUPPORTED");
    if (scales == ProductScales::whole) continue;
    for (const int other : {89, 100, 120}) expect_refused(other, scales, "CUBLAS_STATUS_NOT_SUPPORTED");
    expect_refused(90, scales, "cublasLtMatmulAlgoGetHeuristic", 120800);
    expect_refused(90, scales, "cublasLtMatmulDescSetAttribute of the host's stand-in: CUBLAS_STATUS_INVALID", 120601);
  }
  for (const int other : {89, 100, 120}) EXPECT_EQ(refusal_on(other, ProductScales::whole, 120000), "");
  expect_refused(100, ProductScales::blocks, "f8e4m3[32, 128] to bf16[4, 32], scaled by blocks");
}

// The kernels' earlier answer, so that no product is refused.
TEST(CublasltScales, AreRefusedByNameBeforeThereIsAProduct) {
  EXPECT_EQ(refusal_of_scales(ProductScales::blocks, 90, 130000), "");
  EXPECT_EQ(refusal_of_scales(ProductScales::whole, 80, 130000),
            "products of fp8 codes want a GPU of compute capability 8.9 or newer, and it has 8.0");
  EXPECT_EQ(refusal_of_scales(ProductScales::blocks, 100, 130000),
            "scales of blocks want a GPU of compute capability 9.0, and it has 10.0");
  EXPECT_EQ(refusal_of_scales(ProductScales::rows, 90, 120405),
            "scales of rows want cuBLASLt 12.9 or newer, and it is 12.4.5");
}

TEST(CublasltScales, OfBlocksBeginWhereTheLibraryReadsThem) {
  ProductHost host;
  host.ready();
  const LibraryProduct product = host.scaled(ProductScales::blocks, 4, 32, 128);
  LibraryProduct moved = product;
  ++moved.x_scale;
  EXPECT_NE(host.refusal(moved).find("the scale of x must be at a multiple of 16 bytes"), std::string::npos);
  moved = product;
  ++moved.weight_scale;
  EXPECT_NE(host.refusal(moved).find("the scale of the weight must be at"), std::string::npos);
  LibraryProduct of_rows = host.scaled(ProductScales::rows, 4, 32, 128);
  of_rows.x_scale = reinterpret_cast<const float*>(host.matrix(DType::f32, 8, 1)) + 1;
  EXPECT_EQ(host.refusal(of_rows), "");
}

// Block scales on both sides, or of one mode on one side, without addresses: as in the library's manual.
TEST(CublasltScales, StandInRefusesWhatTheLibraryHasNotGot) {
  ProductHost host;
  const LibraryProduct product = host.scaled(ProductScales::blocks, 4, 32, 128);
  const CublasltFunctions all = host.library.functions;
  const auto status_of = [&](std::int32_t mode_a, std::int32_t mode_b, bool has_scales, std::int64_t rows) {
    MatmulDescObject* desc = nullptr;
    MatrixLayoutObject *a = nullptr, *b = nullptr, *d = nullptr;
    MatmulPreferenceObject* preference = nullptr;
    all.cublasLtMatmulDescCreate(&desc, kCompute32, kReal32);
    all.cublasLtMatmulDescSetAttribute(desc, kDescTransposeA, &kTransposed, sizeof kTransposed);
    all.cublasLtMatmulDescSetAttribute(desc, kDescScaleModeA, &mode_a, sizeof mode_a);
    all.cublasLtMatmulDescSetAttribute(desc, kDescScaleModeB, &mode_b, sizeof mode_b);
    const void* const scale = product.x_scale;
    for (const int attribute : {kDescScaleA, kDescScaleB})
      if (has_scales) all.cublasLtMatmulDescSetAttribute(desc, attribute, &scale, sizeof scale);
    all.cublasLtMatrixLayoutCreate(&a, kRealE4m3, 128, 32, 128);
    all.cublasLtMatrixLayoutCreate(&b, kRealE4m3, 128, static_cast<std::uint64_t>(rows), 128);
    all.cublasLtMatrixLayoutCreate(&d, kRealBfloat16, 32, static_cast<std::uint64_t>(rows), 32);
    all.cublasLtMatmulPreferenceCreate(&preference);
    const std::uint64_t workspace_bytes = 1 << 16;
    all.cublasLtMatmulPreferenceSetAttribute(preference, kPreferenceWorkspaceBytes, &workspace_bytes,
                                             sizeof workspace_bytes);
    MatmulHeuristic found;
    int count = 0;
    const CublasStatus status =
        all.cublasLtMatmulAlgoGetHeuristic(nullptr, desc, a, b, d, d, preference, 1, &found, &count);
    all.cublasLtMatmulPreferenceDestroy(preference);
    for (MatrixLayoutObject* layout : {a, b, d}) all.cublasLtMatrixLayoutDestroy(layout);
    all.cublasLtMatmulDescDestroy(desc);
    return status;
  };
  EXPECT_EQ(status_of(kScaleBlocks128, kScaleGroups128, true, 4), CublasStatus::success);
  EXPECT_EQ(status_of(kScaleBlocks128, kScaleGroups128, true, 6), CublasStatus::not_supported);
  EXPECT_EQ(status_of(kScaleBlocks128, kScaleGroups128, false, 4), CublasStatus::not_supported);
  EXPECT_EQ(status_of(kScaleBlocks128, kScaleBlocks128, true, 4), CublasStatus::not_supported);
  EXPECT_EQ(status_of(kScaleWhole, kScaleGroups128, true, 4), CublasStatus::not_supported);
  EXPECT_EQ(status_of(kScaleOuter, kScaleWhole, true, 4), CublasStatus::not_supported);
  EXPECT_EQ(status_of(kScaleOuter, kScaleOuter, true, 6), CublasStatus::success);
}

}  // namespace weft::cuda_cublaslt_scales_test
