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

// The major version of a driver's CUDA: 12040 is CUDA 12.4.
int major_of(int driver_version) { return driver_version / 1000; }

// Whether the product must be padded: with block scales the library takes only multiples of kScaleStep rows.
bool is_made_up(const LibraryProduct& product) {
  return product.scales == ProductScales::blocks && product.rows % kScaleStep != 0;
}

// The padded product that the library computes instead, with x and the result in the product's scratch.
LibraryProduct made_up(LibraryProduct product) {
  CHECK(product.scratch != nullptr && product.x_stride == product.depth && product.result_stride == product.columns,
        "[{}] {} wants scratch, and rows one after another", kLibraryProduct, product_text(product));
  product.x = product.scratch;
  product.result = product.scratch + padded_x_bytes(product);
  product.rows = whole_scale_steps(product.rows);
  return product;
}

}  // namespace

// -- opening

std::optional<CublasltLibrary> open_cublaslt(const FindSymbol& find, const std::string& place, int driver_version,
                                             std::string& problem) {
  problem.clear();
  CublasltLibrary library{.functions = {}, .place = place};
  CublasltFunctions& all = library.functions;
  find_function(find, "cublasLtGetVersion", place, problem, all.cublasLtGetVersion);
  find_function(find, "cublasLtGetStatusName", place, problem, all.cublasLtGetStatusName);
  find_function(find, "cublasLtGetStatusString", place, problem, all.cublasLtGetStatusString);
#define WEFT_CUBLASLT_FIND(symbol, ...) find_function(find, #symbol, place, problem, all.symbol);
  WEFT_CUBLASLT_FUNCTIONS(WEFT_CUBLASLT_FIND)
#undef WEFT_CUBLASLT_FIND
  // Another version may lack functions. Its number is a better error message than their names.
  if (all.cublasLtGetVersion) library.version = all.cublasLtGetVersion();
  if (all.cublasLtGetVersion && (library.version < kLeastCublasltVersion || library.version >= kCublasltVersionsEnd))
    problem = fmt::format("{} is version {}", place, version_of(library.version));
  const bool fits =
      driver_version == 0 || library.version / 10000 <= static_cast<std::size_t>(major_of(driver_version));
  if (problem.empty() && !fits)
    problem = fmt::format("{} is version {}, and the driver is for CUDA {}", place, version_of(library.version),
                          cuda_version_text(driver_version));
  if (!problem.empty()) return std::nullopt;
  return library;
}

std::optional<CublasltLibrary> open_cublaslt(const std::vector<std::string>& places, int driver_version,
                                             std::string& problem) {
  std::optional<CublasltLibrary> opened;
  problem =
      open_first(places, major_of(driver_version) == 12 ? "libcublasLt of CUDA 12" : "libcublasLt of CUDA 12 or 13",
                 [&](const FindSymbol& find, const std::string& place, std::string& why) {
                   opened = open_cublaslt(find, place, driver_version, why);
                   return opened.has_value();
                 });
  return opened;
}

std::vector<std::string> cublaslt_places(const EnvironmentLookup& environment) {
  return library_places(kCublaslt, environment);
}

std::string cublaslt_text(int driver_version) {
  std::string problem;
  const auto library = open_cublaslt(cublaslt_places(process_environment()), driver_version, problem);
  return library ? fmt::format("{} of {}", version_of(library->version), library->place) : "none: " + problem;
}

// -- products

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
  std::uint64_t last_use = 0;
  bool is_awaited = false;  // prepared for a call that has not come yet

 private:
  const CublasltFunctions& functions_;
};

CublasltProducts::CublasltProducts(Driver& driver, Stream stream, CublasltLibrary library, std::size_t workspace_bytes,
                                   std::size_t most_plans)
    : driver_(driver),
      stream_(stream),
      library_(std::move(library)),
      workspace_bytes_(workspace_bytes),
      most_plans_(most_plans) {}

CublasltProducts::~CublasltProducts() {
  const auto destroy = [&] {
    plans_.clear();
    if (object_ != nullptr) library_.functions.cublasLtDestroy(std::exchange(object_, nullptr));
  };
  try {
    const CurrentGuard guard(driver_, stream_);
    destroy();
    driver_.release(stream_, workspace_);
  } catch (const DeviceError&) {  // the device is broken or its stream is destroyed: the memory is already gone
    destroy();
  }
}

CublasltProducts::Form CublasltProducts::form_of(const LibraryProduct& product) {
  return {product.rows,          product.columns, product.depth,        product.x_stride,        product.weight_stride,
          product.result_stride, product.dtype,   product.result_dtype, product.bias != nullptr, product.scales};
}

LibraryProduct CublasltProducts::product_from(Stream stream, std::span<const std::byte> arguments) const {
  CHECK(stream == stream_, "[{}] is of stream {}, but is called for stream {}", kLibraryProduct, stream_.number,
        stream.number);
  CHECK(arguments.size() == sizeof(LibraryProduct), "[{}] takes {} bytes of arguments, but is given {}",
        kLibraryProduct, sizeof(LibraryProduct), arguments.size());
  return *reinterpret_cast<const LibraryProduct*>(arguments.data());
}

void CublasltProducts::check(CublasStatus status, const char* call, const LibraryProduct& product) const {
  if (status == CublasStatus::success) return;
  const CublasltFunctions& all = library_.functions;
  fail_device("[{}] {} of {}: {}, {}; asked {}, with a workspace of {} bytes", driver_.device_name(stream_.device),
              call, library_.place, all.cublasLtGetStatusName(status), all.cublasLtGetStatusString(status),
              product_text(product), workspace_bytes_);
}

void CublasltProducts::check_addresses(const LibraryProduct& product) const {
  const bool has_scales = product.scales != ProductScales::none;
  CHECK((product.x_scale != nullptr) == has_scales && (product.weight_scale != nullptr) == has_scales,
        "a product has both scales or none");
  const auto check_one = [&](const char* name, const void* address) {
    if (reinterpret_cast<std::uintptr_t>(address) % kAlignment != 0)
      fail_device("[{}] {}: {} must be at a multiple of {} bytes, but is at {}; asked {}",
                  driver_.device_name(stream_.device), kLibraryProduct, name, kAlignment, address,
                  product_text(product));
  };
  check_one("x", product.x);
  check_one("the weight", product.weight);
  check_one("the bias", product.bias);
  check_one("the result", product.result);
  if (product.scales != ProductScales::blocks) return;
  check_one("the scale of x", product.x_scale);
  check_one("the scale of the weight", product.weight_scale);
}

template <class Value>
void CublasltProducts::set(const Plan& plan, int attribute, Value value, const LibraryProduct& product) const {
  check(library_.functions.cublasLtMatmulDescSetAttribute(plan.desc, attribute, &value, sizeof value),
        "cublasLtMatmulDescSetAttribute", product);
}

void CublasltProducts::set_addresses(const Plan& plan, const LibraryProduct& product) const {
  if (product.bias != nullptr) set(plan, kDescBias, static_cast<const void*>(product.bias), product);
  if (product.scales == ProductScales::none) return;
  set(plan, kDescScaleA, static_cast<const void*>(product.weight_scale), product);
  set(plan, kDescScaleB, static_cast<const void*>(product.x_scale), product);
}

// One scale per matrix is the library's default, and versions before 12.8 support nothing else.
void CublasltProducts::set_modes(const Plan& plan, const LibraryProduct& product) const {
  if (product.scales != ProductScales::rows && product.scales != ProductScales::blocks) return;
  const bool is_blocks = product.scales == ProductScales::blocks;
  set(plan, kDescScaleModeA, is_blocks ? kScaleBlocks128 : kScaleOuter, product);
  set(plan, kDescScaleModeB, is_blocks ? kScaleGroups128 : kScaleOuter, product);
}

std::unique_ptr<CublasltProducts::Plan> CublasltProducts::make_plan(const LibraryProduct& product) {
  const CublasltFunctions& all = library_.functions;
  if (object_ == nullptr) check(all.cublasLtCreate(&object_), "cublasLtCreate", product);
  auto plan = std::make_unique<Plan>(all);
  check(all.cublasLtMatmulDescCreate(&plan->desc, kCompute32, kReal32), "cublasLtMatmulDescCreate", product);
  set(*plan, kDescTransposeA, kTransposed, product);
  set(*plan, kDescTransposeB, kNotTransposed, product);
  set(*plan, kDescEpilogue, product.bias == nullptr ? kEpilogueDefault : kEpilogueBias, product);
  set_modes(*plan, product);
  const auto layout = [&](MatrixLayoutObject*& made, DType dtype, std::int64_t rows, std::int64_t columns,
                          std::int64_t leading) {
    check(all.cublasLtMatrixLayoutCreate(&made, type_of(dtype), static_cast<std::uint64_t>(rows),
                                         static_cast<std::uint64_t>(columns), leading),
          "cublasLtMatrixLayoutCreate", product);
  };
  layout(plan->a, product.dtype, product.depth, product.columns, product.weight_stride);
  layout(plan->b, product.dtype, product.depth, product.rows, product.x_stride);
  layout(plan->d, product.result_dtype, product.columns, product.rows, product.result_stride);
  find_algorithm(*plan, product);
  return plan;
}

void CublasltProducts::find_algorithm(Plan& plan, const LibraryProduct& product) {
  const CublasltFunctions& all = library_.functions;
  check(all.cublasLtMatmulPreferenceCreate(&plan.preference), "cublasLtMatmulPreferenceCreate", product);
  const auto prefer = [&](int attribute, auto value) {
    check(all.cublasLtMatmulPreferenceSetAttribute(plan.preference, attribute, &value, sizeof value),
          "cublasLtMatmulPreferenceSetAttribute", product);
  };
  prefer(kPreferenceWorkspaceBytes, std::uint64_t{workspace_bytes_});
  prefer(kPreferenceReductions, kReduceInComputeType);  // otherwise partial sums would be rounded to 16 bits
  for (const int attribute :
       {kPreferenceAlignmentA, kPreferenceAlignmentB, kPreferenceAlignmentC, kPreferenceAlignmentD})
    prefer(attribute, static_cast<std::uint32_t>(kAlignment));
  set_addresses(plan, product);  // the heuristic needs them: their alignment, and whether they are set
  int count = 0;
  check(all.cublasLtMatmulAlgoGetHeuristic(object_, plan.desc, plan.a, plan.b, plan.d, plan.d, plan.preference, 1,
                                           &plan.found, &count),
        "cublasLtMatmulAlgoGetHeuristic", product);
  if (count == 0) check(CublasStatus::not_supported, "cublasLtMatmulAlgoGetHeuristic", product);
  check(plan.found.state, "cublasLtMatmulAlgoGetHeuristic", product);
}

void CublasltProducts::allocate_workspace() {
  if (workspace_ != nullptr || workspace_bytes_ == 0) return;
  try {
    workspace_ = driver_.allocate(stream_, workspace_bytes_);
  } catch (const CudaError& error) {
    throw CudaError(error.status(), fmt::format("{} (workspace of {})", error.what(), kLibraryProduct));
  }
}

// Forgets the oldest plan that no call waits for. Returns false if there is none.
bool CublasltProducts::forget_oldest_plan() {
  auto oldest = plans_.end();
  for (auto plan = plans_.begin(); plan != plans_.end(); ++plan)
    if (!plan->second->is_awaited && (oldest == plans_.end() || plan->second->last_use < oldest->second->last_use))
      oldest = plan;
  if (oldest == plans_.end()) return false;
  plans_.erase(oldest);
  return true;
}

void CublasltProducts::prepare(Stream stream, std::span<const std::byte> arguments) {
  LibraryProduct product = product_from(stream, arguments);
  check_addresses(product);
  if (is_made_up(product)) product = made_up(product);
  auto found = plans_.find(form_of(product));
  if (found == plans_.end()) {
    std::unique_ptr<Plan> plan = make_plan(product);
    while (plans_.size() >= most_plans_ && forget_oldest_plan()) {
    }
    found = plans_.emplace(form_of(product), std::move(plan)).first;
  }
  found->second->last_use = ++uses_;
  allocate_workspace();  // after make_plan(), in which the library refuses a product during a capture
  found->second->is_awaited = true;
}

void CublasltProducts::expect_no_more() noexcept {
  for (const auto& [form, plan] : plans_) plan->is_awaited = false;
}

void CublasltProducts::multiply(const LibraryProduct& product) {
  check_addresses(product);
  const auto found = plans_.find(form_of(product));
  CHECK(found != plans_.end(), "[{}] was not prepared for {}", kLibraryProduct, product_text(product));
  Plan& plan = *found->second;
  plan.is_awaited = false;
  set_addresses(plan, product);
  const float alpha = 1, beta = 0;
  check(library_.functions.cublasLtMatmul(object_, plan.desc, &alpha, product.weight, plan.a, product.x, plan.b, &beta,
                                          product.result, plan.d, product.result, plan.d, &plan.found.algorithm,
                                          workspace_, workspace_bytes_, driver_.object_of(stream_, kLibraryProduct)),
        kLibraryProduct, product);
}

void CublasltProducts::call(Stream stream, std::span<const std::byte> arguments) {
  const LibraryProduct product = product_from(stream, arguments);
  if (!is_made_up(product)) return multiply(product);
  check_addresses(product);
  const LibraryProduct whole = made_up(product);
  const auto copy = [&](std::byte* to, const std::byte* from, DType dtype, std::int64_t columns) {
    driver_.copy(stream_, to, from, static_cast<std::size_t>(bytes_of(dtype, product.rows * columns)));
  };
  copy(product.scratch, product.x, product.dtype, product.depth);
  multiply(whole);
  copy(product.result, whole.result, product.result_dtype, product.columns);
}

}  // namespace weft::cuda
