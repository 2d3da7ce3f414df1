#pragma once

// Matrix products by cuBLASLt. The library is opened at run time: building needs no header and no library of a toolkit,
// and on a machine without the library the open functions return the reason. On a fake device the host implements the
// same functions (runtime/cuda/cublaslt_host.h), so that descriptions, plans and error texts use the same code there.

#include <compare>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/environment.h"
#include "kernels/library_product.h"
#include "runtime/cuda/cublaslt_functions.h"
#include "runtime/cuda/device_library.h"
#include "runtime/cuda/driver_library.h"

namespace weft::cuda {

// 10000 * major + 100 * minor + patch. The range covers CUDA 12 and 13.
inline constexpr std::size_t kLeastCublasltVersion = 120000, kCublasltVersionsEnd = 140000;

struct CublasltLibrary {
  CublasltFunctions functions;
  std::string place;  // for messages
  std::size_t version = 0;
};

// Opens the library at the first of `places` that has a supported version. Places are paths, or names that the loader
// looks up. Where none has one, returns nullopt and sets `problem` to what was wanted, what was found and where it was
// looked for. The driver's version (DeviceFacts::driver_version; 0 without a driver) bounds the library's: a driver
// runs libraries of its own major version and of older ones.
std::optional<CublasltLibrary> open_cublaslt(const std::vector<std::string>& places, int driver_version,
                                             std::string& problem);
// The same for a library that is already open; `place` is for messages.
std::optional<CublasltLibrary> open_cublaslt(const FindSymbol& find, const std::string& place, int driver_version,
                                             std::string& problem);

// Where the library may be, best first: the toolkit of CUDA_HOME, what the loader knows, /usr/local/cuda, and the
// package nvidia-cublas in the Python of VIRTUAL_ENV.
std::vector<std::string> cublaslt_places(const EnvironmentLookup& environment);

// "12.9.3 of PATH"; or "none: " and the reason. The driver's version is as above.
std::string cublaslt_text(int driver_version);

// The workspace of a stream for partial sums: NVIDIA's recommendation for the largest GPUs.
inline constexpr std::size_t kCublasltWorkspaceBytes = std::size_t{32} << 20;

// The number of products whose plans are kept. Steps that are not captured may have any number of rows, so the number
// of different products has no bound.
inline constexpr std::size_t kCublasltPlans = 1024;

// Implements kLibraryProduct for the queue of one stream. The library is asked for an algorithm once for each size; at
// most `most_plans` sizes are kept, and the least recently used one is replaced. Every address must be a multiple of
// 16. Throws DeviceError with the device, the call, the product and the library's reason. Only one thread may use it at
// a time. The driver must outlive it, and no queued work may be left when it is destroyed.
class CublasltProducts : public DeviceLibrary {
 public:
  CublasltProducts(Driver& driver, Stream stream, CublasltLibrary library,
                   std::size_t workspace_bytes = kCublasltWorkspaceBytes, std::size_t most_plans = kCublasltPlans);
  ~CublasltProducts() override;

  void prepare(Stream stream, std::span<const std::byte> arguments) override;
  void expect_no_more() noexcept override;
  void call(Stream stream, std::span<const std::byte> arguments) override;

 private:
  // A product without its addresses.
  struct Form {
    std::int64_t rows, columns, depth, x_stride, weight_stride, result_stride;
    DType dtype, result_dtype;
    bool has_bias;
    ProductScales scales;
    auto operator<=>(const Form&) const = default;
  };
  class Plan;

  static Form form_of(const LibraryProduct& product);
  LibraryProduct product_from(Stream stream, std::span<const std::byte> arguments) const;
  void check(CublasStatus status, const char* call, const LibraryProduct& product) const;
  void check_addresses(const LibraryProduct& product) const;
  void allocate_workspace();
  std::unique_ptr<Plan> make_plan(const LibraryProduct& product);
  void set_modes(const Plan& plan, const LibraryProduct& product) const;
  void find_algorithm(Plan& plan, const LibraryProduct& product);
  void set_addresses(const Plan& plan, const LibraryProduct& product) const;
  template <class Value>
  void set(const Plan& plan, int attribute, Value value, const LibraryProduct& product) const;
  bool forget_oldest_plan();
  void multiply(const LibraryProduct& product);

  Driver& driver_;
  const Stream stream_;
  const CublasltLibrary library_;
  const std::size_t workspace_bytes_, most_plans_;
  CublasltObject* object_ = nullptr;  // set at the first product
  void* workspace_ = nullptr;         // set at the first product
  std::map<Form, std::unique_ptr<Plan>> plans_;
  std::uint64_t uses_ = 0;  // of plans
};

}  // namespace weft::cuda
