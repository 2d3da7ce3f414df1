#pragma once

// The entry points of libnvrtc that Weft calls, as NVRTC's public interface declares them. All but nvrtcGetErrorString
// return an NvrtcStatus.

#include <cstddef>

namespace weft::cuda {

enum class NvrtcStatus : int { success = 0, compilation = 6 };
struct NvrtcProgramObject;  // what nvrtcProgram points to

// FUNCTION(symbol, parameters...)
#define WEFT_NVRTC_FUNCTIONS(FUNCTION)                                                                             \
  FUNCTION(nvrtcVersion, int* major, int* minor)                                                                   \
  FUNCTION(nvrtcGetNumSupportedArchs, int* count)                                                                  \
  FUNCTION(nvrtcGetSupportedArchs, int* architectures)                                                             \
  FUNCTION(nvrtcCreateProgram, NvrtcProgramObject** program, const char* text, const char* name, int header_count, \
           const char* const* headers, const char* const* header_names)                                            \
  FUNCTION(nvrtcDestroyProgram, NvrtcProgramObject** program)                                                      \
  FUNCTION(nvrtcCompileProgram, NvrtcProgramObject* program, int option_count, const char* const* options)         \
  FUNCTION(nvrtcGetProgramLogSize, NvrtcProgramObject* program, std::size_t* bytes)                                \
  FUNCTION(nvrtcGetProgramLog, NvrtcProgramObject* program, char* log)                                             \
  FUNCTION(nvrtcGetPTXSize, NvrtcProgramObject* program, std::size_t* bytes)                                       \
  FUNCTION(nvrtcGetPTX, NvrtcProgramObject* program, char* code)                                                   \
  FUNCTION(nvrtcGetCUBINSize, NvrtcProgramObject* program, std::size_t* bytes)                                     \
  FUNCTION(nvrtcGetCUBIN, NvrtcProgramObject* program, char* code)

struct NvrtcFunctions {
  const char* (*nvrtcGetErrorString)(NvrtcStatus status) = nullptr;
#define WEFT_NVRTC_MEMBER(symbol, ...) NvrtcStatus (*symbol)(__VA_ARGS__) = nullptr;
  WEFT_NVRTC_FUNCTIONS(WEFT_NVRTC_MEMBER)
#undef WEFT_NVRTC_MEMBER
};

}  // namespace weft::cuda
