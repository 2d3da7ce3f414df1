// The state of CublasltProducts: a limited number of descriptions of products, made outside captures, and the library's
// object, which is destroyed while its device is current.

#include <gtest/gtest.h>

#include "runtime/cuda/cublaslt_host.h"
#include "runtime/cuda/current_guard.h"
#include "tests/runtime/cuda_product_host.h"
#include "tests/runtime/cuda_test_device.h"

namespace weft::cuda_cublaslt_plans_test {

using namespace weft::cuda;

// Counts the calls of the library, and its live objects.
struct Counts {
  int asked = 0, described = 0, most_described = 0;
};

std::shared_ptr<Counts> count_plans(CublasltFunctions& all) {
  auto counts = std::make_shared<Counts>();
  all.cublasLtMatmulAlgoGetHeuristic = [counts, ask = all.cublasLtMatmulAlgoGetHeuristic](auto... arguments) {
    ++counts->asked;
    return ask(arguments...);
  };
  all.cublasLtMatmulDescCreate = [counts, create = all.cublasLtMatmulDescCreate](auto... arguments) {
    counts->most_described = std::max(counts->most_described, ++counts->described);
    return create(arguments...);
  };
  all.cublasLtMatmulDescDestroy = [counts, destroy = all.cublasLtMatmulDescDestroy](MatmulDescObject* desc) {
    --counts->described;
    return destroy(desc);
  };
  return counts;
}

TEST(CublasltPlans, AreKeptForSoManyProductsTheLatestOnes) {
  constexpr int kMost = 4;
  ProductHost host;
  const auto counts = count_plans(host.library.functions);
  host.ready(kMost);
  LibraryProduct product = host.product(DType::bf16, 20, 32, 48, false);
  const auto multiply = [&](std::int64_t rows) {
    product.rows = rows;
    host.call(product);
    host.queue->synchronize();
    expect_product(product, 4e-3);
  };
  for (int rows = 1; rows <= 20; ++rows) multiply(rows);
  EXPECT_EQ(counts->asked, 20);
  EXPECT_EQ(counts->described, kMost);
  EXPECT_LE(counts->most_described, kMost + 1);
  for (const int rows : {17, 18, 19, 20, 17}) multiply(rows);
  EXPECT_EQ(counts->asked, 20);
  multiply(1);  // replaces 18, the least recently used one
  EXPECT_EQ(counts->asked, 21);
  for (const int rows : {17, 19, 20, 1}) multiply(rows);
  EXPECT_EQ(counts->asked, 21);
  multiply(18);
  EXPECT_EQ(counts->asked, 22);
}

// All that a capture needs is described before it begins, and nothing during it.
TEST(CublasltPlans, OfACaptureAreAllThereHoweverFewAreKept) {
  ProductHost host;
  const auto counts = count_plans(host.library.functions);
  host.ready(2);
  std::vector<LibraryProduct> products;
  for (int rows = 1; rows <= 6; ++rows) products.push_back(host.product(DType::bf16, rows, 32, 48, false));
  for (const int round : {0, 1}) {
    const DriverQueue::Recording recording = host.queue->record([&] {
      for (const LibraryProduct& product : products) host.call(product);
    });
    const CurrentGuard guard(*host.driver, host.stream);
    const Owner<ExecutableObject> executable(*host.driver, host.driver->instantiate(*recording.graph));
    host.driver->launch(host.stream, *executable);
    host.queue->synchronize();
    for (const LibraryProduct& product : products) expect_product(product, 4e-3);
    EXPECT_EQ(counts->described, 6) << round;
  }
  host.call(host.product(DType::bf16, 7, 32, 48, false));
  host.queue->synchronize();
  EXPECT_LE(counts->described, 6);
}

TEST(CublasltPlans, OfACaptureThatFailsWaitForNobody) {
  constexpr int kMost = 4;
  ProductHost host;
  const auto counts = count_plans(host.library.functions);
  host.ready(kMost);
  for (int rows = 1; rows <= 20; ++rows)
    EXPECT_THROW(host.queue->record([&] {
      host.call(host.product(DType::bf16, rows, 32, 48, false));
      throw std::runtime_error("the work that is given fails");
    }),
                 std::runtime_error);
  EXPECT_LE(counts->described, kMost);
}

TEST(CublasltPlans, AreAskedForOutsideCapturesAlone) {
  ProductHost host;
  host.ready();
  const LibraryProduct product = host.product(DType::bf16, 2, 32, 48, false);
  {
    const CurrentGuard guard(*host.driver, host.stream);
    const CaptureScope capture(*host.driver, host.stream);
    const std::string refusal = host.refusal(product);
    EXPECT_NE(refusal.find("cublasLtMatmulAlgoGetHeuristic of the host's stand-in: CUBLAS_STATUS_INTERNAL_ERROR"),
              std::string::npos)
        << refusal;
  }
  host.call(product);
  host.queue->synchronize();
  expect_product(product, 4e-3);
}

TEST(CublasltPlans, AndTheLibrarysObjectGoWithTheirDeviceCurrent) {
  FakeSettings settings = test_device_settings(1, 2);
  settings.kernels.push_back(host_product_kernel());
  const std::unique_ptr<Driver> driver = open_fake_device(std::move(settings));
  const Stream first = driver->create_stream(0), second = driver->create_stream(1);
  std::vector<int> devices;
  const auto make = [&](Stream stream) {
    CublasltLibrary library = cublaslt_on_host(*driver, stream);
    library.functions.cublasLtDestroy = [&, destroy = library.functions.cublasLtDestroy](CublasltObject* object) {
      devices.push_back(driver->current_device());
      return destroy(object);
    };
    return std::make_unique<CublasltProducts>(*driver, stream, std::move(library), 1 << 12);
  };
  const auto prepare = [&](CublasltProducts& products, Stream stream) {
    const LibraryProduct product{
        .x = nullptr, .rows = 2, .columns = 16, .depth = 16, .x_stride = 16, .weight_stride = 16, .result_stride = 16};
    const CurrentGuard guard(*driver, stream);
    products.prepare(stream, std::as_bytes(std::span(&product, 1)));
  };
  std::unique_ptr<CublasltProducts> of_first = make(first), of_second = make(second), unused = make(second);
  prepare(*of_first, first);
  prepare(*of_second, second);
  driver->make_current(first);
  of_second.reset();
  EXPECT_EQ(driver->current_device(), 0);
  driver->make_current(second);
  of_first.reset();
  unused.reset();
  EXPECT_EQ(devices, (std::vector{1, 0}));
}

TEST(CublasltPlans, AreOfOneStream) {
  ProductHost host;
  CublasltProducts products(*host.driver, host.stream, host.library);
  const Stream other = host.driver->create_stream(0);
  const LibraryProduct product = host.product(DType::bf16, 2, 32, 48, false);
  EXPECT_THROW(products.prepare(other, std::as_bytes(std::span(&product, 1))), InternalError);
}

}  // namespace weft::cuda_cublaslt_plans_test
