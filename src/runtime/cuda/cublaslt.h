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
// for, where none has one of these versions. Places are paths or names that the loader looks up.
std::optional<CublasltLibrary> open_cublaslt(const std::vector<std::string>& places, std::string& problem);
// The same for one library that is opened already; `place` stands in messages.
std::optional<CublasltLibrary> open_cublaslt(const FindSymbol& find, const std::string& place, std::string& problem);

// Where it may lie, best first: the toolkit of CUDA_HOME, what the loader knows, /usr/local/cuda, and the package
// nvidia-cublas in the Python of VIRTUAL_ENV.
std::vector<std::string> cublaslt_places(const EnvironmentLookup& environment);

// "12.9.3 of PATH"; or "none: " and why.
std::string cublaslt_text();

// What the library is given of a stream's memory for sums of parts: as much as its vendor advises for the largest GPUs.
inline constexpr std::size_t kCublasltWorkspaceBytes = std::size_t{32} << 20;

// kLibraryProduct of a DriverQueue. How a product is done is asked of the library once for its sizes; every address
// must be a multiple of 16. DeviceError naming device, call, product and the library's reason. For one thread at a
// time; the driver must outlive it, and nothing queued may be left when it ends.
class CublasltProducts : public DeviceLibrary {
 public:
  CublasltProducts(Driver& driver, CublasltLibrary library, std::size_t workspace_bytes = kCublasltWorkspaceBytes);
  ~CublasltProducts() override;

  void prepare(Stream stream, std::span<const std::byte> arguments) override;
  void call(Stream stream, std::span<const std::byte> arguments) override;

 private:
  // All of a product but its addresses.
  struct Form {
    std::int64_t rows, columns, depth, x_stride, weight_stride, result_stride;
    DType dtype, result_dtype;
    bool has_bias, is_scaled;
    auto operator<=>(const Form&) const = default;
  };
  class Plan;
  struct Call;

  static Form form_of(const LibraryProduct& product);
  void check(CublasStatus status, const char* call, const Call& on) const;
  void check_addresses(const Call& on) const;
  std::unique_ptr<Plan> make_plan(const Call& on);
  void find_algorithm(Plan& plan, const Call& on);
  void set_addresses(const Plan& plan, const Call& on) const;
  template <class Value>
  void set(const Plan& plan, int attribute, Value value, const Call& on) const;

  Driver& driver_;
  const CublasltLibrary library_;
  const std::size_t workspace_bytes_;
  CublasltObject* object_ = nullptr;                              // from the first product on
  std::map<std::uint64_t, std::pair<Stream, void*>> workspaces_;  // by number of the stream
  std::map<Form, std::unique_ptr<Plan>> plans_;
};

}  // namespace weft::cuda
