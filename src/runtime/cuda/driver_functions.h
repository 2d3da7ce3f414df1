#pragma once

// The entry points of libcuda.so.1 that Weft calls, as the driver's public interface declares them. The symbols are
// those that cuda.h gives each call since CUDA 12.0, so that a newer driver keeps their behaviour. All return a Status.

#include <cstddef>
#include <cstdint>

#include "runtime/cuda/driver_calls.h"

namespace weft::cuda {

// 1000 * major + 10 * minor: the first version that has all of these.
inline constexpr int kLeastDriverVersion = 12000;

using DeviceNumber = int;                  // CUdevice
using DeviceAddress = unsigned long long;  // CUdeviceptr
struct ContextObject;                      // CUcontext
struct PoolObject;                         // CUmemoryPool
struct NodeObject;                         // CUgraphNode

struct GraphUpdateResult {  // CUgraphExecUpdateResultInfo
  int result = 0;
  NodeObject* node = nullptr;
  NodeObject* from_node = nullptr;
};

// FUNCTION(symbol, parameters...)
#define WEFT_CUDA_FUNCTIONS(FUNCTION)                                                                                \
  FUNCTION(cuGetErrorName, Status, const char** name)                                                                \
  FUNCTION(cuGetErrorString, Status, const char** words)                                                             \
  FUNCTION(cuDriverGetVersion, int* version)                                                                         \
  FUNCTION(cuInit, unsigned flags)                                                                                   \
  FUNCTION(cuDeviceGetCount, int* count)                                                                             \
  FUNCTION(cuDeviceGet, DeviceNumber* device, int ordinal)                                                           \
  FUNCTION(cuDeviceGetName, char* name, int length, DeviceNumber device)                                             \
  FUNCTION(cuDeviceGetAttribute, int* value, int attribute, DeviceNumber device)                                     \
  FUNCTION(cuDeviceTotalMem_v2, std::size_t* bytes, DeviceNumber device)                                             \
  FUNCTION(cuDeviceGetDefaultMemPool, PoolObject** pool, DeviceNumber device)                                        \
  FUNCTION(cuDeviceGetGraphMemAttribute, DeviceNumber device, int attribute, void* value)                            \
  FUNCTION(cuMemPoolSetAttribute, PoolObject* pool, int attribute, void* value)                                      \
  FUNCTION(cuDevicePrimaryCtxRetain, ContextObject** context, DeviceNumber device)                                   \
  FUNCTION(cuDevicePrimaryCtxRelease_v2, DeviceNumber device)                                                        \
  FUNCTION(cuDevicePrimaryCtxReset_v2, DeviceNumber device)                                                          \
  FUNCTION(cuCtxSetCurrent, ContextObject* context)                                                                  \
  FUNCTION(cuCtxSynchronize, )                                                                                       \
  FUNCTION(cuMemGetInfo_v2, std::size_t* free, std::size_t* total)                                                   \
  FUNCTION(cuStreamCreate, StreamObject** stream, unsigned flags)                                                    \
  FUNCTION(cuStreamDestroy_v2, StreamObject* stream)                                                                 \
  FUNCTION(cuStreamSynchronize, StreamObject* stream)                                                                \
  FUNCTION(cuStreamWaitEvent, StreamObject* stream, EventObject* event, unsigned flags)                              \
  FUNCTION(cuStreamBeginCapture_v2, StreamObject* stream, int mode)                                                  \
  FUNCTION(cuStreamEndCapture, StreamObject* stream, GraphObject** graph)                                            \
  FUNCTION(cuStreamIsCapturing, StreamObject* stream, int* status)                                                   \
  FUNCTION(cuEventCreate, EventObject** event, unsigned flags)                                                       \
  FUNCTION(cuEventDestroy_v2, EventObject* event)                                                                    \
  FUNCTION(cuEventRecord, EventObject* event, StreamObject* stream)                                                  \
  FUNCTION(cuEventQuery, EventObject* event)                                                                         \
  FUNCTION(cuEventSynchronize, EventObject* event)                                                                   \
  FUNCTION(cuEventElapsedTime, float* milliseconds, EventObject* from, EventObject* to)                              \
  FUNCTION(cuMemAllocAsync, DeviceAddress* address, std::size_t bytes, StreamObject* stream)                         \
  FUNCTION(cuMemFreeAsync, DeviceAddress address, StreamObject* stream)                                              \
  FUNCTION(cuMemHostAlloc, void** address, std::size_t bytes, unsigned flags)                                        \
  FUNCTION(cuMemFreeHost, void* address)                                                                             \
  FUNCTION(cuPointerGetAttribute, void* value, int attribute, DeviceAddress address)                                 \
  FUNCTION(cuMemcpyAsync, DeviceAddress to, DeviceAddress from, std::size_t bytes, StreamObject* stream)             \
  FUNCTION(cuMemsetD8Async, DeviceAddress to, unsigned char value, std::size_t bytes, StreamObject* stream)          \
  FUNCTION(cuModuleLoadData, ModuleObject** module, const void* image)                                               \
  FUNCTION(cuModuleUnload, ModuleObject* module)                                                                     \
  FUNCTION(cuModuleGetFunction, FunctionObject** function, ModuleObject* module, const char* name)                   \
  FUNCTION(cuFuncSetAttribute, FunctionObject* function, int attribute, int value)                                   \
  FUNCTION(cuLaunchKernel, FunctionObject* function, unsigned blocks_x, unsigned blocks_y, unsigned blocks_z,        \
           unsigned threads_x, unsigned threads_y, unsigned threads_z, unsigned shared_bytes, StreamObject* stream,  \
           void** parameters, void** extra)                                                                          \
  FUNCTION(cuLaunchHostFunc, StreamObject* stream, HostFunction function, void* data)                                \
  FUNCTION(cuGraphInstantiateWithFlags, ExecutableObject** executable, GraphObject* graph, unsigned long long flags) \
  FUNCTION(cuGraphExecUpdate_v2, ExecutableObject* executable, GraphObject* graph, GraphUpdateResult* result)        \
  FUNCTION(cuGraphGetNodes, GraphObject* graph, NodeObject** nodes, std::size_t* count)                              \
  FUNCTION(cuGraphUpload, ExecutableObject* executable, StreamObject* stream)                                        \
  FUNCTION(cuGraphLaunch, ExecutableObject* executable, StreamObject* stream)                                        \
  FUNCTION(cuGraphDestroy, GraphObject* graph)                                                                       \
  FUNCTION(cuGraphExecDestroy, ExecutableObject* executable)

struct DriverFunctions {
#define WEFT_CUDA_MEMBER(symbol, ...) Status (*symbol)(__VA_ARGS__) = nullptr;
  WEFT_CUDA_FUNCTIONS(WEFT_CUDA_MEMBER)
#undef WEFT_CUDA_MEMBER
  // Only in drivers since 12.4; may be null.
  Status (*cuFuncGetParamInfo)(FunctionObject* function, std::size_t parameter, std::size_t* offset,
                               std::size_t* bytes) = nullptr;
};

}  // namespace weft::cuda
