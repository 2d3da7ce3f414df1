#include "runtime/cuda/cublaslt.h"

#include <fmt/core.h>

#include "base/error.h"
#include "runtime/cuda/current_guard.h"
#include "runtime/cuda/library_places.h"

namespace weft::cuda {
namespace {

constexpr std::uintptr_t kAlignment = 16;

const CudaLibrary kCublaslt{.front = "libcublasLt.so.", .packages = {"cu13", "cublas"}, .cache = ""};

std::string version_of(std::size_t version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

template <class Result, class... Parameters>
void find_function(const FindSymbol& find, const char* symbol, const std::string& place, std::string& problem,
                   std::function<Result(Parameters...)>& function) {
  if (void* const address = find(symbol)) {
    function = reinterpret_cast<Result (*)(Parameters...)>(address);
  } else if (problem.empty()) {
    problem = place + " has no " + symbol;
  }
}

std::int32_t type_of(DType dtype) {
  if (dtype == DType::f32) return kReal32;
  if (dtype == DType::f16) return kReal16;
  if (dtype == DType::bf16) return kRealBfloat16;
  CHECK(dtype == DType::f8e4m3, "products of {} are not the library's", dtype_text(dtype));
  return kRealE4m3;
}

LibraryProduct product_from(std::span<const std::byte> arguments) {
  CHECK(arguments.size() == sizeof(LibraryProduct), "[{}] takes {} bytes of arguments, but is given {}",
        kLibraryProduct, sizeof(LibraryProduct), arguments.size());
  return *reinterpret_cast<const LibraryProduct*>(arguments.data());
}

}  // namespace

// -- opening

std::optional<CublasltLibrary> open_cublaslt(const FindSymbol& find, const std::string& place, std::string& problem) {
  problem.clear();
  CublasltLibrary library{.functions = {}, .place = place};
  CublasltFunctions& all = library.functions;
  find_function(find, "cublasLtGetVersion", place, problem, all.cublasLtGetVersion);
  find_function(find, "cublasLtGetStatusName", place, problem, all.cublasLtGetStatusName);
  find_function(find, "cublasLtGetStatusString", place, problem, all.cublasLtGetStatusString);
#define WEFT_CUBLASLT_FIND(symbol, ...) find_function(find, #symbol, place, problem, all.symbol);
  WEFT_CUBLASLT_FUNCTIONS(WEFT_CUBLASLT_FIND)
#undef WEFT_CUBLASLT_FIND
  // Another version may lack functions: its number says more than their names.
  if (all.cublasLtGetVersion) library.version = all.cublasLtGetVersion();
  if (all.cublasLtGetVersion && (library.version < kLeastCublasltVersion || library.version >= kCublasltVersionsEnd))
    problem = fmt::format("{} is version {}", place, version_of(library.version));
  if (!problem.empty()) return std::nullopt;
  return library;
}

std::optional<CublasltLibrary> open_cublaslt(const std::vector<std::string>& places, std::string& problem) {
  std::optional<CublasltLibrary> opened;
  problem = open_first(places, "libcublasLt of CUDA 12 or 13",
                       [&](const FindSymbol& find, const std::string& place, std::string& why) {
                         opened = open_cublaslt(find, place, why);
                         return opened.has_value();
                       });
  return opened;
}

std::vector<std::string> cublaslt_places(const EnvironmentLookup& environment) {
  return library_places(kCublaslt, environment);
}

std::string cublaslt_text() {
  std::string problem;
  const auto library = open_cublaslt(cublaslt_places(process_environment()), problem);
  return library ? fmt::format("{} of {}", version_of(library->version), library->place) : "none: " + problem;
}

// -- products

struct CublasltProducts::Call {
  const LibraryProduct& product;
  Stream stream;
};

// The library's matrices are ours transposed: its A is the weight, [depth, columns] of it and transposed back, its B is
// x, [depth, rows], and its D the result, [columns, rows].
class CublasltProducts::Plan {
 public:
  explicit Plan(const CublasltFunctions& functions) : functions_(functions) {}
  ~Plan() {
    for (MatrixLayoutObject* layout : {a, b, d})
      if (layout != nullptr) functions_.cublasLtMatrixLayoutDestroy(layout);
    if (preference != nullptr) functions_.cublasLtMatmulPreferenceDestroy(preference);
    if (desc != nullptr) functions_.cublasLtMatmulDescDestroy(desc);
  }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  MatmulDescObject* desc = nullptr;
  MatrixLayoutObject *a = nullptr, *b = nullptr, *d = nullptr;
  MatmulPreferenceObject* preference = nullptr;
  MatmulHeuristic found;

 private:
  const CublasltFunctions& functions_;
};

CublasltProducts::CublasltProducts(Driver& driver, CublasltLibrary library, std::size_t workspace_bytes)
    : driver_(driver), library_(std::move(library)), workspace_bytes_(workspace_bytes) {}

CublasltProducts::~CublasltProducts() {
  plans_.clear();
  if (object_ != nullptr) library_.functions.cublasLtDestroy(object_);
  for (const auto& [number, workspace] : workspaces_) {
    try {
      const CurrentGuard guard(driver_, workspace.first);
      driver_.release(workspace.first, workspace.second);
    } catch (const DeviceError&) {  // gone with a broken device, or its stream was destroyed before
    }
  }
}

CublasltProducts::Form CublasltProducts::form_of(const LibraryProduct& product) {
  return {product.rows,
          product.columns,
          product.depth,
          product.x_stride,
          product.weight_stride,
          product.result_stride,
          product.dtype,
          product.result_dtype,
          product.bias != nullptr,
          product.x_scale != nullptr};
}

void CublasltProducts::check(CublasStatus status, const char* call, const Call& on) const {
  if (status == CublasStatus::success) return;
  const CublasltFunctions& all = library_.functions;
  fail_device("[{}] {} of {}: {}, {}; asked {}, with a workspace of {} bytes", driver_.device_name(on.stream.device),
              call, library_.place, all.cublasLtGetStatusName(status), all.cublasLtGetStatusString(status),
              product_text(on.product), workspace_bytes_);
}

void CublasltProducts::check_addresses(const Call& on) const {
  const LibraryProduct& product = on.product;
  CHECK((product.x_scale == nullptr) == (product.weight_scale == nullptr), "a product has both scales or none");
  const std::pair<const char*, const std::byte*> addresses[] = {
      {"x", product.x}, {"the weight", product.weight}, {"the bias", product.bias}, {"the result", product.result}};
  for (const auto& [name, address] : addresses)
    if (reinterpret_cast<std::uintptr_t>(address) % kAlignment != 0)
      fail_device("[{}] {}: {} must lie at a multiple of {} bytes, but lies at {}; asked {}",
                  driver_.device_name(on.stream.device), kLibraryProduct, name, kAlignment,
                  static_cast<const void*>(address), product_text(product));
}

template <class Value>
void CublasltProducts::set(const Plan& plan, int attribute, Value value, const Call& on) const {
  check(library_.functions.cublasLtMatmulDescSetAttribute(plan.desc, attribute, &value, sizeof value),
        "cublasLtMatmulDescSetAttribute", on);
}

void CublasltProducts::set_addresses(const Plan& plan, const Call& on) const {
  if (on.product.bias != nullptr) set(plan, kDescBias, static_cast<const void*>(on.product.bias), on);
  if (on.product.x_scale == nullptr) return;
  set(plan, kDescScaleA, static_cast<const void*>(on.product.weight_scale), on);
  set(plan, kDescScaleB, static_cast<const void*>(on.product.x_scale), on);
}

std::unique_ptr<CublasltProducts::Plan> CublasltProducts::make_plan(const Call& on) {
  const CublasltFunctions& all = library_.functions;
  const LibraryProduct& product = on.product;
  if (object_ == nullptr) check(all.cublasLtCreate(&object_), "cublasLtCreate", on);
  auto plan = std::make_unique<Plan>(all);
  check(all.cublasLtMatmulDescCreate(&plan->desc, kCompute32, kReal32), "cublasLtMatmulDescCreate", on);
  set(*plan, kDescTransposeA, kTransposed, on);
  set(*plan, kDescTransposeB, kNotTransposed, on);
  set(*plan, kDescEpilogue, product.bias == nullptr ? kEpilogueDefault : kEpilogueBias, on);
  const auto layout = [&](MatrixLayoutObject*& made, DType dtype, std::int64_t rows, std::int64_t columns,
                          std::int64_t leading) {
    check(all.cublasLtMatrixLayoutCreate(&made, type_of(dtype), static_cast<std::uint64_t>(rows),
                                         static_cast<std::uint64_t>(columns), leading),
          "cublasLtMatrixLayoutCreate", on);
  };
  layout(plan->a, product.dtype, product.depth, product.columns, product.weight_stride);
  layout(plan->b, product.dtype, product.depth, product.rows, product.x_stride);
  layout(plan->d, product.result_dtype, product.columns, product.rows, product.result_stride);
  find_algorithm(*plan, on);
  return plan;
}

void CublasltProducts::find_algorithm(Plan& plan, const Call& on) {
  const CublasltFunctions& all = library_.functions;
  check(all.cublasLtMatmulPreferenceCreate(&plan.preference), "cublasLtMatmulPreferenceCreate", on);
  const auto prefer = [&](int attribute, auto value) {
    check(all.cublasLtMatmulPreferenceSetAttribute(plan.preference, attribute, &value, sizeof value),
          "cublasLtMatmulPreferenceSetAttribute", on);
  };
  prefer(kPreferenceWorkspaceBytes, std::uint64_t{workspace_bytes_});
  prefer(kPreferenceReductions, kReduceInComputeType);  // sums of parts would be rounded to 16 bits otherwise
  for (const int attribute :
       {kPreferenceAlignmentA, kPreferenceAlignmentB, kPreferenceAlignmentC, kPreferenceAlignmentD})
    prefer(attribute, static_cast<std::uint32_t>(kAlignment));
  set_addresses(plan, on);  // their alignment counts, and that they are there
  int count = 0;
  check(all.cublasLtMatmulAlgoGetHeuristic(object_, plan.desc, plan.a, plan.b, plan.d, plan.d, plan.preference, 1,
                                           &plan.found, &count),
        "cublasLtMatmulAlgoGetHeuristic", on);
  if (count == 0) check(CublasStatus::not_supported, "cublasLtMatmulAlgoGetHeuristic", on);
  check(plan.found.state, "cublasLtMatmulAlgoGetHeuristic", on);
}

void CublasltProducts::prepare(Stream stream, std::span<const std::byte> arguments) {
  const LibraryProduct product = product_from(arguments);
  const Call on{product, stream};
  check_addresses(on);
  auto& [of, workspace] = workspaces_[stream.number];
  if (workspace == nullptr && workspace_bytes_ > 0) {
    try {
      workspace = driver_.allocate(stream, workspace_bytes_);
    } catch (const CudaError& error) {
      throw CudaError(error.status(), fmt::format("{} (workspace of {})", error.what(), kLibraryProduct));
    }
    of = stream;
  }
  std::unique_ptr<Plan>& plan = plans_[form_of(product)];
  if (plan == nullptr) plan = make_plan(on);
}

void CublasltProducts::call(Stream stream, std::span<const std::byte> arguments) {
  const LibraryProduct product = product_from(arguments);
  const Call on{product, stream};
  check_addresses(on);
  const auto found = plans_.find(form_of(product));
  CHECK(found != plans_.end() && found->second != nullptr && workspaces_.contains(stream.number),
        "[{}] was not prepared for {}", kLibraryProduct, product_text(product));
  const Plan& plan = *found->second;
  set_addresses(plan, on);
  const float alpha = 1, beta = 0;
  check(library_.functions.cublasLtMatmul(object_, plan.desc, &alpha, product.weight, plan.a, product.x, plan.b, &beta,
                                          product.result, plan.d, product.result, plan.d, &plan.found.algorithm,
                                          workspaces_.at(stream.number).second, workspace_bytes_,
                                          driver_.object_of(stream, kLibraryProduct)),
        kLibraryProduct, on);
}

}  // namespace weft::cuda
