#include "runtime/cuda/cublaslt_host.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

#include "base/error.h"

namespace weft::cuda {

struct CublasltObject {};

struct MatmulDescObject {
  std::int32_t compute_type = 0, scale_type = 0;
  std::map<int, std::vector<std::byte>> attributes;

  template <class Value>
  Value get(int attribute, Value otherwise) const {
    const auto found = attributes.find(attribute);
    if (found != attributes.end()) std::memcpy(&otherwise, found->second.data(), sizeof otherwise);
    return otherwise;
  }
};

struct MatrixLayoutObject {
  std::int32_t type = 0;
  std::uint64_t rows = 0, columns = 0;
  std::int64_t leading = 0;
};

struct MatmulPreferenceObject {
  std::uint64_t workspace_bytes = 0;
  std::map<int, std::uint32_t> alignments = {};
  std::uint32_t reductions = 7;
};

namespace {

constexpr const char* kKernel = "cublaslt_host_product";
constexpr std::size_t kVectorBytes = 16;
constexpr std::size_t kWorkspaceAlignment = 256;
constexpr std::size_t kModesVersion = 120800;  // the first library that has attributes for scale modes

struct HostProductArguments {
  LibraryProduct product;
  std::byte* workspace;
  std::size_t workspace_bytes;
};

std::int64_t x_scale_count(const LibraryProduct& product) {
  if (product.scales == ProductScales::blocks) return scale_blocks(product.depth) * product.rows;
  return product.scales == ProductScales::rows ? product.rows : 1;
}

std::int64_t weight_scale_count(const LibraryProduct& product) {
  if (product.scales == ProductScales::blocks)
    return scale_blocks(product.columns) * whole_scale_steps(scale_blocks(product.depth));
  return product.scales == ProductScales::rows ? product.columns : 1;
}

void run_product(const FakeLaunch& launch) {
  const auto& [product, workspace, workspace_bytes] = launch.arguments<HostProductArguments>();
  // Checks that a matrix is memory of the device: one range for all its rows, which are `stride` apart.
  const auto look = [&](const std::byte* first, DType dtype, std::int64_t rows, std::int64_t columns,
                        std::int64_t stride) {
    if (first != nullptr && rows > 0)
      launch.elements(first, static_cast<std::size_t>(bytes_of(dtype, (rows - 1) * stride + columns)));
  };
  look(product.x, product.dtype, product.rows, product.depth, product.x_stride);
  look(product.weight, product.dtype, product.columns, product.depth, product.weight_stride);
  look(product.bias, product.result_dtype, 1, product.columns, product.columns);
  look(product.result, product.result_dtype, product.rows, product.columns, product.result_stride);
  look(reinterpret_cast<const std::byte*>(product.x_scale), DType::f32, 1, x_scale_count(product), 0);
  look(reinterpret_cast<const std::byte*>(product.weight_scale), DType::f32, 1, weight_scale_count(product), 0);
  const std::span<std::byte> room = launch.elements(workspace, workspace_bytes);
  multiply_on_host(product, {reinterpret_cast<float*>(room.data()), room.size() / sizeof(float)});
}

std::optional<DType> dtype_of(std::int32_t type) {
  switch (type) {
    case kReal32:
      return DType::f32;
    case kReal16:
      return DType::f16;
    case kRealBfloat16:
      return DType::bf16;
    case kRealE4m3:
      return DType::f8e4m3;
    default:
      return std::nullopt;
  }
}

bool is_whole(std::int64_t elements, DType dtype) {
  return bytes_of(dtype, elements) % static_cast<std::int64_t>(kVectorBytes) == 0;
}

// The scales that the description sets, or nullopt if the library has no such pair of modes.
std::optional<ProductScales> scales_of(const MatmulDescObject& desc) {
  const bool has_a = desc.get<const float*>(kDescScaleA, nullptr) != nullptr;
  const bool has_b = desc.get<const float*>(kDescScaleB, nullptr) != nullptr;
  const std::pair modes(desc.get(kDescScaleModeA, kScaleWhole), desc.get(kDescScaleModeB, kScaleWhole));
  if (has_a != has_b) return std::nullopt;  // no caller asks for this
  if (modes == std::pair(kScaleWhole, kScaleWhole)) return has_a ? ProductScales::whole : ProductScales::none;
  if (has_a && modes == std::pair(kScaleOuter, kScaleOuter)) return ProductScales::rows;
  if (has_a && modes == std::pair(kScaleBlocks128, kScaleGroups128)) return ProductScales::blocks;
  return std::nullopt;
}

// Whether the library takes this FP8 product. Each column of its matrices must begin at a multiple of 16 bytes, weights
// must have whole tiles, a bias must be of 16 bits, and block scales need a multiple of kScaleStep rows.
bool takes_codes(const LibraryProduct& product, int capability, std::size_t version) {
  constexpr std::int64_t kTile = 16;  // a weight's rows and columns are multiples of it
  return refusal_of_scales(product.scales, capability, version).empty() && product.depth % kTile == 0 &&
         product.columns % kTile == 0 && is_whole(product.x_stride, product.dtype) &&
         is_whole(product.weight_stride, product.dtype) && is_whole(product.columns, product.result_dtype) &&
         is_whole(product.result_stride, product.result_dtype) && product.result_dtype != DType::f8e4m3 &&
         (product.bias == nullptr || product.result_dtype != DType::f32) &&
         (product.scales != ProductScales::blocks || product.rows % kScaleStep == 0);
}

// The emulated library: its version and its GPU.
struct Standing {
  int capability;
  std::size_t version;
};

// The product without the addresses of its matrices. Returns nullopt, with the status, if the library would refuse it.
std::optional<LibraryProduct> read_product(const MatmulDescObject& desc, const MatrixLayoutObject& a,
                                           const MatrixLayoutObject& b, const MatrixLayoutObject& d,
                                           const Standing& standing, CublasStatus& status) {
  status = CublasStatus::invalid_value;
  for (const MatrixLayoutObject* layout : {&a, &b, &d})
    if (layout->leading < static_cast<std::int64_t>(layout->rows)) return std::nullopt;
  if (a.rows != b.rows || d.rows != a.columns || d.columns != b.columns) return std::nullopt;
  status = CublasStatus::not_supported;
  const auto dtype = dtype_of(a.type), result = dtype_of(d.type);
  const auto scales = scales_of(desc);
  const auto epilogue = desc.get(kDescEpilogue, kEpilogueDefault);
  const bool is_known = desc.compute_type == kCompute32 && desc.scale_type == kReal32 && a.type == b.type && dtype &&
                        result && scales && desc.get(kDescTransposeA, kNotTransposed) == kTransposed &&
                        desc.get(kDescTransposeB, kNotTransposed) == kNotTransposed &&
                        (epilogue == kEpilogueDefault || epilogue == kEpilogueBias);
  if (!is_known || a.rows == 0 || a.columns == 0 || b.columns == 0) return std::nullopt;
  LibraryProduct product{.x_scale = desc.get<const float*>(kDescScaleB, nullptr),
                         .weight_scale = desc.get<const float*>(kDescScaleA, nullptr),
                         .rows = static_cast<std::int64_t>(b.columns),
                         .columns = static_cast<std::int64_t>(a.columns),
                         .depth = static_cast<std::int64_t>(a.rows),
                         .x_stride = b.leading,
                         .weight_stride = a.leading,
                         .result_stride = d.leading,
                         .dtype = *dtype,
                         .result_dtype = *result,
                         .scales = *scales};
  if (epilogue == kEpilogueBias) product.bias = desc.get<const std::byte*>(kDescBias, nullptr);
  const bool is_taken = *dtype == DType::f8e4m3 ? takes_codes(product, standing.capability, standing.version)
                                                : *result == *dtype && *scales == ProductScales::none;
  if (!is_taken) return std::nullopt;
  const bool lacks_bias = epilogue == kEpilogueBias && product.bias == nullptr;
  status = lacks_bias ? CublasStatus::invalid_value : CublasStatus::success;
  if (lacks_bias) return std::nullopt;
  return product;
}

class StandIn {
 public:
  StandIn(Driver& driver, Stream stream, std::size_t version)
      : driver_(driver), stream_(stream), standing_{driver.facts(stream.device).compute_capability, version} {
    module_ = driver.load_module(stream.device, fake_image({standing_.capability}));
    function_ = driver.find_function(module_, kKernel, sizeof(HostProductArguments));
  }
  ~StandIn() {
    try {
      driver_.destroy(module_);
    } catch (const DeviceError&) {  // the module is gone with the broken device
    }
  }
  StandIn(const StandIn&) = delete;
  StandIn& operator=(const StandIn&) = delete;

  // Fails during a capture: cuBLASLt of CUDA 13.3 then makes a driver call that no capture allows, and returns
  // internal_error. The algorithm holds the bytes of the rows that are widened at a time, and the smallest alignment
  // that was promised for a matrix.
  CublasStatus find_algorithm(const MatmulDescObject& desc, const MatrixLayoutObject& a, const MatrixLayoutObject& b,
                              const MatrixLayoutObject& d, const MatmulPreferenceObject& preference,
                              MatmulHeuristic& found, int& count) const {
    count = 0;
    if (driver_.is_capturing(stream_)) return CublasStatus::internal_error;
    CublasStatus status;
    const auto product = read_product(desc, a, b, d, standing_, status);
    if (!product) return status;
    const std::size_t row_bytes = static_cast<std::size_t>(product->depth) * sizeof(float);
    const std::size_t rows = std::min(static_cast<std::size_t>(product->rows), preference.workspace_bytes / row_bytes);
    std::uint32_t alignment = kWorkspaceAlignment;
    for (const auto& [attribute, bytes] : preference.alignments) alignment = std::min(alignment, bytes);
    // The stand-in adds partial sums in f32 and supports no other reduction.
    const bool fits = rows > 0 && alignment >= kVectorBytes && (preference.reductions & kReduceInComputeType) != 0;
    if (!fits) return CublasStatus::not_supported;
    found = {.algorithm = {{rows * row_bytes, alignment}}, .workspace_bytes = rows * row_bytes};
    count = 1;
    return CublasStatus::success;
  }

  CublasStatus multiply(const MatmulDescObject& desc, LibraryProduct addresses, const MatrixLayoutObject& a,
                        const MatrixLayoutObject& b, const MatrixLayoutObject& d, const MatmulAlgorithm& algorithm,
                        std::byte* workspace, std::size_t workspace_bytes, StreamObject* stream) const {
    CublasStatus status;
    auto product = read_product(desc, a, b, d, standing_, status);
    if (!product) return status;
    const auto is_aligned = [](const void* address, std::uint64_t bytes) {
      return reinterpret_cast<std::uintptr_t>(address) % bytes == 0;
    };
    const std::byte* const matrices[] = {addresses.x, addresses.weight, addresses.result};
    for (const std::byte* address : matrices)
      if (address == nullptr || !is_aligned(address, algorithm.data[1])) return CublasStatus::invalid_value;
    if (product->scales == ProductScales::blocks &&
        !(is_aligned(product->x_scale, kVectorBytes) && is_aligned(product->weight_scale, kVectorBytes)))
      return CublasStatus::invalid_value;
    const std::size_t needed = algorithm.data[0];
    if (workspace == nullptr || !is_aligned(workspace, kVectorBytes) || workspace_bytes < needed ||
        stream != driver_.object_of(stream_, kLibraryProduct))
      return CublasStatus::invalid_value;
    product->x = addresses.x;
    product->weight = addresses.weight;
    product->result = addresses.result;
    const HostProductArguments arguments{*product, workspace, needed};
    try {
      driver_.launch(stream_, function_, {}, arguments);
    } catch (const CudaError&) {
      return CublasStatus::execution_failed;
    }
    return CublasStatus::success;
  }

 private:
  Driver& driver_;
  const Stream stream_;
  const Standing standing_;
  Module module_;
  Function function_;
};

const char* name_of(CublasStatus status) {
  switch (status) {
    case CublasStatus::success:
      return "CUBLAS_STATUS_SUCCESS";
    case CublasStatus::not_initialized:
      return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CublasStatus::alloc_failed:
      return "CUBLAS_STATUS_ALLOC_FAILED";
    case CublasStatus::invalid_value:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case CublasStatus::execution_failed:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CublasStatus::internal_error:
      return "CUBLAS_STATUS_INTERNAL_ERROR";
    case CublasStatus::not_supported:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
  }
  return "an unknown status";
}

template <class Object>
CublasStatus destroy(Object* object) {
  delete object;
  return CublasStatus::success;
}

// Whether the stand-in supports this attribute of a description, with this size.
bool is_attribute(int attribute, std::size_t bytes, std::size_t version) {
  switch (attribute) {
    case kDescTransposeA:
    case kDescTransposeB:
    case kDescEpilogue:
      return bytes == sizeof(std::int32_t);
    case kDescBias:
    case kDescScaleA:
    case kDescScaleB:
      return bytes == sizeof(void*);
    case kDescScaleModeA:
    case kDescScaleModeB:
      return bytes == sizeof(std::int32_t) && version >= kModesVersion;
    default:
      return false;
  }
}

CublasStatus set_preference(MatmulPreferenceObject* preference, int attribute, const void* value, std::size_t bytes) {
  if (attribute == kPreferenceWorkspaceBytes && bytes == sizeof preference->workspace_bytes) {
    std::memcpy(&preference->workspace_bytes, value, bytes);
  } else if (attribute == kPreferenceReductions && bytes == sizeof preference->reductions) {
    std::memcpy(&preference->reductions, value, bytes);
  } else if (attribute >= kPreferenceAlignmentA && attribute <= kPreferenceAlignmentD &&
             bytes == sizeof(std::uint32_t)) {
    std::memcpy(&preference->alignments[attribute], value, bytes);
  } else {
    return CublasStatus::invalid_value;
  }
  return CublasStatus::success;
}

void describe(CublasltFunctions& all, std::size_t version) {
  all.cublasLtMatmulDescCreate = [](MatmulDescObject** desc, std::int32_t compute_type, std::int32_t scale_type) {
    *desc = new MatmulDescObject{compute_type, scale_type, {}};
    return CublasStatus::success;
  };
  all.cublasLtMatmulDescDestroy = destroy<MatmulDescObject>;
  all.cublasLtMatmulDescSetAttribute = [version](MatmulDescObject* desc, int attribute, const void* value,
                                                 std::size_t bytes) {
    if (!is_attribute(attribute, bytes, version)) return CublasStatus::invalid_value;
    const auto* first = static_cast<const std::byte*>(value);
    desc->attributes[attribute].assign(first, first + bytes);
    return CublasStatus::success;
  };
  all.cublasLtMatrixLayoutCreate = [](MatrixLayoutObject** layout, std::int32_t type, std::uint64_t rows,
                                      std::uint64_t columns, std::int64_t leading) {
    *layout = new MatrixLayoutObject{type, rows, columns, leading};
    return CublasStatus::success;
  };
  all.cublasLtMatrixLayoutDestroy = destroy<MatrixLayoutObject>;
  all.cublasLtMatmulPreferenceCreate = [](MatmulPreferenceObject** preference) {
    *preference = new MatmulPreferenceObject;
    return CublasStatus::success;
  };
  all.cublasLtMatmulPreferenceDestroy = destroy<MatmulPreferenceObject>;
  all.cublasLtMatmulPreferenceSetAttribute = set_preference;
}

}  // namespace

FakeKernel host_product_kernel() {
  return {.name = kKernel, .argument_bytes = sizeof(HostProductArguments), .run = run_product};
}

CublasltLibrary cublaslt_on_host(Driver& driver, Stream stream, std::size_t version) {
  const auto stand_in = std::make_shared<StandIn>(driver, stream, version);
  CublasltLibrary library{.functions = {}, .place = "the host's stand-in", .version = version};
  CublasltFunctions& all = library.functions;
  describe(all, version);
  all.cublasLtGetVersion = [version] { return version; };
  all.cublasLtGetStatusName = name_of;
  all.cublasLtGetStatusString = [](CublasStatus) { return "reported by the host in its place"; };
  all.cublasLtCreate = [](CublasltObject** object) {
    *object = new CublasltObject;
    return CublasStatus::success;
  };
  all.cublasLtDestroy = destroy<CublasltObject>;
  all.cublasLtMatmulAlgoGetHeuristic = [stand_in](CublasltObject*, MatmulDescObject* desc, MatrixLayoutObject* a,
                                                  MatrixLayoutObject* b, MatrixLayoutObject*, MatrixLayoutObject* d,
                                                  MatmulPreferenceObject* preference, int wanted,
                                                  MatmulHeuristic* found, int* count) {
    if (wanted < 1) return CublasStatus::invalid_value;
    return stand_in->find_algorithm(*desc, *a, *b, *d, *preference, *found, *count);
  };
  all.cublasLtMatmul = [stand_in](CublasltObject*, MatmulDescObject* desc, const void* alpha, const void* a,
                                  MatrixLayoutObject* a_layout, const void* b, MatrixLayoutObject* b_layout,
                                  const void* beta, const void*, MatrixLayoutObject*, void* d,
                                  MatrixLayoutObject* d_layout, const MatmulAlgorithm* algorithm, void* workspace,
                                  std::size_t workspace_bytes, StreamObject* on) {
    if (*static_cast<const float*>(alpha) != 1 || *static_cast<const float*>(beta) != 0)
      return CublasStatus::not_supported;
    const LibraryProduct addresses{.x = static_cast<const std::byte*>(b),
                                   .weight = static_cast<const std::byte*>(a),
                                   .result = static_cast<std::byte*>(d)};
    return stand_in->multiply(*desc, addresses, *a_layout, *b_layout, *d_layout, *algorithm,
                              static_cast<std::byte*>(workspace), workspace_bytes, on);
  };
  return library;
}

}  // namespace weft::cuda
