// Products by cuBLASLt on a fake device, where the host stands in for the library: results, order, captures, refusals.

#include <cstring>

#include <gtest/gtest.h>

#include "runtime/cuda/current_guard.h"
#include "tensor/convert.h"
#include "tests/runtime/cuda_product_host.h"
#include "tests/runtime/cuda_test_device.h"

namespace weft::cuda_cublaslt_products_test {

using namespace weft::cuda;

TEST(CublasltProducts, AreThoseOfTheMatricesHoweverLargeTheWorkspaceIs) {
  for (const std::size_t workspace_bytes : {256, 1 << 16})
    for (const auto& [dtype, tolerance] : {std::pair{DType::bf16, 4e-3}, {DType::f16, 5e-4}, {DType::f32, 1e-6}})
      for (const bool has_bias : {false, true}) {
        ProductHost host(1, workspace_bytes);
        const LibraryProduct product = host.product(dtype, 5, 33, 40, has_bias);
        host.ready();
        host.call(product);
        host.queue->synchronize();
        expect_product(product, tolerance);
        EXPECT_EQ(host.queue->library_calls(), 1);
      }
}

// The description of their sizes contains no address.
TEST(CublasltProducts, OfEqualSizesAreOfTheirOwnMatrices) {
  ProductHost host;
  std::vector<LibraryProduct> products(2, host.product(DType::bf16, 3, 32, 48, true));
  products[1].x = host.matrix(DType::bf16, 3 * products[1].x_stride, 7);
  products[1].weight = host.matrix(DType::bf16, 32 * 48, 8);
  products[1].bias = host.matrix(DType::bf16, 32, 9);
  products[1].result = host.matrix(DType::bf16, 3 * 32, 10);
  host.ready();
  for (const LibraryProduct& product : products) host.call(product);
  host.queue->synchronize();
  for (const LibraryProduct& product : products) expect_product(product, 4e-3);
}

TEST(CublasltProducts, RunInTheOrderOfTheStream) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    ProductHost host(seed);
    const LibraryProduct first = host.product(DType::bf16, 3, 32, 48, false);
    LibraryProduct second = host.product(DType::bf16, 3, 16, 32, false);
    second.x = first.result;
    second.x_stride = 32;
    host.ready();
    std::vector<std::byte> changed(48 * 32 * 2);
    for (std::int64_t i = 0; i < 48 * 32; ++i) store_float(DType::bf16, changed.data(), i, product_element(i, 9));
    auto* const weight = const_cast<std::byte*>(first.weight);
    host.queue->run_on_host("new weight", [&] { std::memcpy(weight, changed.data(), changed.size()); });
    host.call(first);
    host.call(second);
    host.queue->synchronize();
    expect_product(first, 4e-3);
    expect_product(second, 4e-3);
  }
}

TEST(CublasltProducts, AreCapturedAndReadWhatIsThereAtEachLaunch) {
  ProductHost host;
  const LibraryProduct product = host.product(DType::bf16, 4, 48, 64, true);
  host.ready();
  const DriverQueue::Recording recording = host.queue->record([&] { host.call(product); });
  EXPECT_EQ(recording.work.form, "cublasLtMatmul ");
  EXPECT_EQ(recording.work.nodes, 1);
  const CurrentGuard guard(*host.driver, host.stream);
  const Owner<ExecutableObject> executable(*host.driver, host.driver->instantiate(*recording.graph));
  for (const int seed : {5, 6}) {
    for (std::int64_t i = 0; i < 4 * product.x_stride; ++i)
      store_float(DType::bf16, const_cast<std::byte*>(product.x), i, product_element(i, seed));
    host.driver->launch(host.stream, *executable);
    host.queue->synchronize();
    expect_product(product, 4e-3);
  }
}

TEST(CublasltProducts, MultiplyCodesOfEightBitsWithTheirScales) {
  ProductHost host;
  LibraryProduct product = host.product(DType::f8e4m3, 5, 48, 32, false);
  product.result_dtype = DType::bf16;
  product.result = host.matrix(DType::bf16, 5 * 48, 4);
  product.bias = host.matrix(DType::bf16, 48, 3);
  product.x_scale = reinterpret_cast<const float*>(host.matrix(DType::f32, 1, 7));
  product.weight_scale = reinterpret_cast<const float*>(host.matrix(DType::f32, 1, 8));
  product.scales = ProductScales::whole;
  host.ready();
  host.call(product);
  host.queue->synchronize();
  expect_product(product, 4e-3);

  LibraryProduct thin = product;
  thin.columns = 24;  // of 48
  EXPECT_NE(host.refusal(thin).find("NOT_SUPPORTED"), std::string::npos);
  LibraryProduct narrow = product;
  narrow.depth = 24;  // of 32
  const std::string refusal = host.refusal(narrow);
  for (const char* words : {"[fake-cuda:0] cublasLtMatmulAlgoGetHeuristic of the host's stand-in",
                            "CUBLAS_STATUS_NOT_SUPPORTED", "f8e4m3[5, 24] (rows 48 apart)", "f8e4m3[48, 24]",
                            "bf16[5, 48], with a bias, scaled", "a workspace of 65536 bytes"})
    EXPECT_NE(refusal.find(words), std::string::npos) << refusal;
  ProductHost old(1, 1 << 16, 1 << 22, 80);
  LibraryProduct plain = old.product(DType::f8e4m3, 5, 48, 32, false);
  plain.result_dtype = DType::bf16;
  plain.result = old.matrix(DType::bf16, 5 * 48, 4);
  old.ready();
  EXPECT_NE(old.refusal(plain).find("NOT_SUPPORTED"), std::string::npos);
}

TEST(CublasltProducts, NameWhatIsMisaligned) {
  ProductHost host;
  host.ready();
  const LibraryProduct product = host.product(DType::bf16, 2, 16, 16, true);
  const auto refusal_of = [&](auto LibraryProduct::*address) {
    LibraryProduct moved = product;
    moved.*address += 8;
    return host.refusal(moved);
  };
  const std::string x = refusal_of(&LibraryProduct::x);
  for (const char* words : {"[fake-cuda:0] cublasLtMatmul: x must be at a multiple of 16 bytes, but is at 0x",
                            "asked bf16[2, 16] (rows 32 apart) times the transpose of bf16[16, 16] to bf16[2, 16]"})
    EXPECT_NE(x.find(words), std::string::npos) << x;
  EXPECT_NE(refusal_of(&LibraryProduct::weight).find("the weight must be at"), std::string::npos);
  EXPECT_NE(refusal_of(&LibraryProduct::bias).find("the bias must be at"), std::string::npos);
  EXPECT_NE(refusal_of(&LibraryProduct::result).find("the result must be at"), std::string::npos);
  host.call(product);  // continues
  host.queue->synchronize();
  expect_product(product, 4e-3);
}

TEST(CublasltProducts, AreRefusedWhereRowsOverlap) {
  ProductHost host;
  host.ready();
  LibraryProduct product = host.product(DType::bf16, 2, 16, 32, false);
  product.x_stride = 16;
  const std::string refusal = host.refusal(product);
  EXPECT_NE(refusal.find("CUBLAS_STATUS_INVALID_VALUE"), std::string::npos) << refusal;
  EXPECT_NE(refusal.find("bf16[2, 32] (rows 16 apart)"), std::string::npos) << refusal;
}

TEST(CublasltProducts, NameTheWorkspaceThatIsTooSmallOrNotToBeHad) {
  ProductHost small(1, 64);
  small.ready();
  const std::string refusal = small.refusal(small.product(DType::bf16, 2, 16, 32, false));
  EXPECT_NE(refusal.find("NOT_SUPPORTED"), std::string::npos) << refusal;
  EXPECT_NE(refusal.find("a workspace of 64 bytes"), std::string::npos) << refusal;

  ProductHost full(1, 1 << 21, 1 << 20);
  full.ready();
  const std::string none = full.refusal(full.product(DType::bf16, 2, 16, 32, false));
  for (const char* words : {"[fake-cuda:0] cuMemAllocAsync", "OUT_OF_MEMORY", "asked 2097152 bytes, ",
                            "free of 1048576", "(workspace of cublasLtMatmul)"})
    EXPECT_NE(none.find(words), std::string::npos) << none;
}

TEST(CublasltProducts, NameTheCallThatFails) {
  const std::pair<const char*, std::function<void(CublasltFunctions&)>> faults[] = {
      {"cublasLtCreate",
       [](CublasltFunctions& all) { all.cublasLtCreate = [](auto...) { return CublasStatus::not_initialized; }; }},
      {"cublasLtMatmulDescCreate",
       [](CublasltFunctions& all) {
         all.cublasLtMatmulDescCreate = [](auto...) { return CublasStatus::alloc_failed; };
       }},
      {"cublasLtMatrixLayoutCreate",
       [](CublasltFunctions& all) {
         all.cublasLtMatrixLayoutCreate = [](auto...) { return CublasStatus::alloc_failed; };
       }},
      {"cublasLtMatmul",
       [](CublasltFunctions& all) { all.cublasLtMatmul = [](auto...) { return CublasStatus::execution_failed; }; }}};
  for (const auto& [call, make_faulty] : faults) {
    ProductHost host;
    make_faulty(host.library.functions);
    host.ready();
    const std::string refusal = host.refusal(host.product(DType::bf16, 2, 16, 32, false));
    EXPECT_NE(refusal.find(fmt::format("[fake-cuda:0] {} of the host's stand-in: CUBLAS_STATUS_", call)),
              std::string::npos)
        << refusal;
    EXPECT_NE(refusal.find("bf16[16, 32] to bf16[2, 16]"), std::string::npos) << refusal;
  }
}

TEST(CublasltProducts, EndACaptureInWhichTheLibraryFails) {
  ProductHost host;
  const auto multiply = host.library.functions.cublasLtMatmul;
  const auto fails = std::make_shared<bool>(true);
  host.library.functions.cublasLtMatmul = [=](auto... arguments) {
    return *fails ? CublasStatus::execution_failed : multiply(arguments...);
  };
  host.ready();
  const LibraryProduct product = host.product(DType::bf16, 2, 16, 32, false);
  expect_device_error([&] { host.queue->record([&] { host.call(product); }); }, {"CUBLAS_STATUS_EXECUTION_FAILED"});
  EXPECT_FALSE(host.driver->is_capturing(host.stream));
  *fails = false;
  host.call(product);
  host.queue->synchronize();
  expect_product(product, 4e-3);
}

TEST(CublasltProducts, OfMemoryThatWasReleasedBreakTheDevice) {
  ProductHost host;
  host.ready();
  LibraryProduct product = host.product(DType::bf16, 2, 16, 32, false);
  {
    const CurrentGuard guard(*host.driver, host.stream);
    void* const weight = host.driver->allocate(host.stream, 16 * 32 * 2);
    product.weight = static_cast<const std::byte*>(weight);
    host.driver->release(host.stream, weight);
  }
  host.call(product);
  expect_device_error([&] { host.queue->synchronize(); }, {"CUDA_ERROR_ILLEGAL_ADDRESS", "cublaslt_host_product"});
}

TEST(CublasltProducts, AreRefusedByAQueueWithoutTheLibrary) {
  ProductHost host;
  EXPECT_EQ(host.refusal(host.product(DType::bf16, 2, 16, 32, false)),
            "[fake-cuda:0] no library that has cublasLtMatmul was opened");
}

}  // namespace weft::cuda_cublaslt_products_test
