#pragma once

// Products by cuBLASLt. The library is opened while the program runs: no header and no library of a toolkit is needed
// to build, and a machine without it has a reason for that. On a fake device the host stands in behind the same
// functions (runtime/cuda/cublaslt_host.h), so that descriptions, plans and error texts are the same code there.

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

// 10000 * major + 100 * minor + patch: of CUDA 12 and 13.
inline constexpr std::size_t kLeastCublasltVersion = 120000, kCublasltVersionsEnd = 140000;

struct CublasltLibrary {
  CublasltFunctions functions;
  std::string place;  // in messages
  std::size_t version = 0;
};

// From the first place that has it; nothing, and in `problem` what was wanted, what was found and where it was looked
// for, where none has one of these versions. Places are paths or names that the loader looks up. The driver's version
// (DeviceFacts::driver_version; 0 where there is none to ask) bounds the library's: a driver runs libraries of its own
// major version and of older ones.
std::optional<CublasltLibrary> open_cublaslt(const std::vector<std::string>& places, int driver_version,
                                             std::string& problem);
// The same for one library that is opened already; `place` stands in messages.
std::optional<CublasltLibrary> open_cublaslt(const FindSymbol& find, const std::string& place, int driver_version,
                                             std::string& problem);

// Where it may lie, best first: the toolkit of CUDA_HOME, what the loader knows, /usr/local/cuda, and the package
// nvidia-cublas in the Python of VIRTUAL_ENV.
std::vector<std::string> cublaslt_places(const EnvironmentLookup& environment);

// "12.9.3 of PATH"; or "none: " and why. The driver's version as above.
std::string cublaslt_text(int driver_version);

// What the library is given of a stream's memory for sums of parts: as much as its vendor advises for the largest GPUs.
inline constexpr std::size_t kCublasltWorkspaceBytes = std::size_t{32} << 20;

// How many products are kept described. The counts of rows of steps that are not captured may be any.
inline constexpr std::size_t kCublasltPlans = 1024;

// kLibraryProduct of the queue of one stream. How a product is done is asked of the library once for its sizes, and
// again after those of `most_plans` others; every address must be a multiple of 16. DeviceError naming device, call,
// product and the library's reason. For one thread at a time; the driver must outlive it, and nothing queued may be
// left when it ends.
class CublasltProducts : public DeviceLibrary {
 public:
  CublasltProducts(Driver& driver, Stream stream, CublasltLibrary library,
                   std::size_t workspace_bytes = kCublasltWorkspaceBytes, std::size_t most_plans = kCublasltPlans);
  ~CublasltProducts() override;

  void prepare(Stream stream, std::span<const std::byte> arguments) override;
  void expect_no_more() noexcept override;
  void call(Stream stream, std::span<const std::byte> arguments) override;

 private:
  // All of a product but its addresses.
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
  CublasltObject* object_ = nullptr;  // from the first product on
  void* workspace_ = nullptr;         // the same
  std::map<Form, std::unique_ptr<Plan>> plans_;
  std::uint64_t uses_ = 0;  // of plans
};

}  // namespace weft::cuda
