#pragma once

// The entry points and constants of libcublasLt that Weft uses, as its public interface declares them since CUDA 12.0,
// unless a comment gives another version. The library's matrices are column-major.

#include <cstddef>
#include <cstdint>
#include <functional>

#include "runtime/cuda/driver_calls.h"

namespace weft::cuda {

enum class CublasStatus : int {
  success = 0,
  not_initialized = 1,
  alloc_failed = 3,
  invalid_value = 7,
  execution_failed = 13,
  internal_error = 14,
  not_supported = 15,
};

// Values of the library's enumerations; the comments give their names there.
constexpr std::int32_t kReal32 = 0, kReal16 = 2, kRealBfloat16 = 14, kRealE4m3 = 28;       // cudaDataType_t
constexpr std::int32_t kCompute32 = 68;                                                    // cublasComputeType_t
constexpr std::int32_t kNotTransposed = 0, kTransposed = 1;                                // cublasOperation_t
constexpr std::uint32_t kEpilogueDefault = 1, kEpilogueBias = 4;                           // cublasLtEpilogue_t
constexpr int kDescTransposeA = 3, kDescTransposeB = 4, kDescEpilogue = 7, kDescBias = 8;  // 4, 4, 4, 8 bytes
constexpr int kDescScaleA = 17, kDescScaleB = 18;                                          // 8 bytes
constexpr int kDescScaleModeA = 31, kDescScaleModeB = 32;                                  // 4 bytes, since 12.8
// cublasLtMatmulMatrixScale_t: the layout of the f32 scales of a transposed matrix [depth, count]. kScaleWhole: one
// scale. The others exist since 12.9, and only on compute capability 9.0. kScaleOuter: one scale for each of the
// `count`. kScaleGroups128: [groups][count], for groups of 128 along the depth; `count` is a multiple of 4.
// kScaleBlocks128: [ceil(count / 128)][groups, padded to a multiple of 4], for blocks of 128 x 128. Blocks of one
// matrix are used with groups of the other. The scales of the last two begin at multiples of 16 bytes.
constexpr std::int32_t kScaleWhole = 0, kScaleOuter = 3, kScaleGroups128 = 4, kScaleBlocks128 = 5;
constexpr int kPreferenceWorkspaceBytes = 1;  // 8 bytes
constexpr int kPreferenceReductions = 3;      // 4 bytes
constexpr int kPreferenceAlignmentA = 5, kPreferenceAlignmentB = 6, kPreferenceAlignmentC = 7,
              kPreferenceAlignmentD = 8;           // 4 bytes
constexpr std::uint32_t kReduceInComputeType = 2;  // cublasLtReductionScheme_t

// Each backend defines its own.
struct CublasltObject;
struct MatmulDescObject;
struct MatrixLayoutObject;
struct MatmulPreferenceObject;

struct MatmulAlgorithm {  // cublasLtMatmulAlgo_t
  std::uint64_t data[8] = {};
};
struct MatmulHeuristic {  // cublasLtMatmulHeuristicResult_t
  MatmulAlgorithm algorithm;
  std::size_t workspace_bytes = 0;
  CublasStatus state = CublasStatus::success;
  float waves = 0;
  int reserved[4] = {};
};

// FUNCTION(symbol, parameters...)
#define WEFT_CUBLASLT_FUNCTIONS(FUNCTION)                                                                              \
  FUNCTION(cublasLtCreate, CublasltObject** library)                                                                   \
  FUNCTION(cublasLtDestroy, CublasltObject* library)                                                                   \
  FUNCTION(cublasLtMatmulDescCreate, MatmulDescObject** desc, std::int32_t compute_type, std::int32_t scale_type)      \
  FUNCTION(cublasLtMatmulDescDestroy, MatmulDescObject* desc)                                                          \
  FUNCTION(cublasLtMatmulDescSetAttribute, MatmulDescObject* desc, int attribute, const void* value,                   \
           std::size_t bytes)                                                                                          \
  FUNCTION(cublasLtMatrixLayoutCreate, MatrixLayoutObject** layout, std::int32_t type, std::uint64_t rows,             \
           std::uint64_t columns, std::int64_t leading)                                                                \
  FUNCTION(cublasLtMatrixLayoutDestroy, MatrixLayoutObject* layout)                                                    \
  FUNCTION(cublasLtMatmulPreferenceCreate, MatmulPreferenceObject** preference)                                        \
  FUNCTION(cublasLtMatmulPreferenceDestroy, MatmulPreferenceObject* preference)                                        \
  FUNCTION(cublasLtMatmulPreferenceSetAttribute, MatmulPreferenceObject* preference, int attribute, const void* value, \
           std::size_t bytes)                                                                                          \
  FUNCTION(cublasLtMatmulAlgoGetHeuristic, CublasltObject* library, MatmulDescObject* desc, MatrixLayoutObject* a,     \
           MatrixLayoutObject* b, MatrixLayoutObject* c, MatrixLayoutObject* d, MatmulPreferenceObject* preference,    \
           int wanted, MatmulHeuristic* found, int* count)                                                             \
  FUNCTION(cublasLtMatmul, CublasltObject* library, MatmulDescObject* desc, const void* alpha, const void* a,          \
           MatrixLayoutObject* a_layout, const void* b, MatrixLayoutObject* b_layout, const void* beta, const void* c, \
           MatrixLayoutObject* c_layout, void* d, MatrixLayoutObject* d_layout, const MatmulAlgorithm* algorithm,      \
           void* workspace, std::size_t workspace_bytes, StreamObject* stream)

struct CublasltFunctions {
  std::function<const char*(CublasStatus)> cublasLtGetStatusName, cublasLtGetStatusString;
  std::function<std::size_t()> cublasLtGetVersion;
#define WEFT_CUBLASLT_MEMBER(symbol, ...) std::function<CublasStatus(__VA_ARGS__)> symbol;
  WEFT_CUBLASLT_FUNCTIONS(WEFT_CUBLASLT_MEMBER)
#undef WEFT_CUBLASLT_MEMBER
};

}  // namespace weft::cuda
