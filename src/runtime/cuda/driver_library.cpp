#include "runtime/cuda/driver_library.h"

#include <limits>
#include <mutex>
#include <vector>

#include <fmt/core.h>

#include "base/shared_library.h"
#include "runtime/cuda/driver_functions.h"

namespace weft::cuda {
namespace {

// Numbers of the driver's interface, by their names there.
constexpr int kMaxThreadsPerBlock = 1, kMultiprocessorCount = 16, kLevelTwoCacheSize = 38, kCapabilityMajor = 75,
              kCapabilityMinor = 76, kMaxSharedMemoryPerBlockOptIn = 97, kMemoryPoolsSupported = 115;
constexpr int kPointerDeviceOrdinal = 9;
constexpr int kPoolReleaseThreshold = 4;
constexpr int kGraphMemoryReserved = 2;
constexpr int kFunctionMaxDynamicSharedBytes = 8;
constexpr unsigned kStreamJoinsDefault = 0, kStreamNonBlocking = 1, kEventDefault = 0, kEventDisableTiming = 2;
constexpr unsigned kHostPortable = 1, kHostMapped = 2;
constexpr int kCaptureThreadLocal = 1;

// The reasons for which a graph's update is refused, by number.
constexpr const char* kUpdateResults[] = {
    "nothing",
    "an error that is not described",
    "the graph's form changed",
    "a node is of another kind",
    "the function of a node changed",
    "a node's parameters changed in a way that cannot be updated",
    "a node is of a kind that cannot be updated",
    "the function of a node changed in a way that cannot be updated",
    "a node's attributes changed in a way that cannot be updated",
};

DeviceAddress number_of(const void* address) { return reinterpret_cast<DeviceAddress>(address); }

class LibraryCalls : public DriverCalls {
 public:
  explicit LibraryCalls(const DriverFunctions& driver) : driver_(driver) {}

  std::string explain(Status status) override {
    const char* name = nullptr;
    const char* words = nullptr;
    driver_.cuGetErrorName(status, &name);
    driver_.cuGetErrorString(status, &words);
    if (name == nullptr) return fmt::format("error {}", static_cast<int>(status));
    return words == nullptr ? name : fmt::format("{}, {}", name, words);
  }

  Status count_devices(int& count) override { return driver_.cuDeviceGetCount(&count); }
  Status read_facts(int device, DeviceFacts& facts) override;
  Status set_current(int device) override;
  Status count_memory(MemoryCounts& counts) override { return driver_.cuMemGetInfo_v2(&counts.free, &counts.total); }
  Status reset(int device) override;
  Status synchronize_device() override { return driver_.cuCtxSynchronize(); }

  Status create_stream(bool joins_default, StreamObject*& stream) override {
    return driver_.cuStreamCreate(&stream, joins_default ? kStreamJoinsDefault : kStreamNonBlocking);
  }
  Status default_stream(int, StreamObject*& stream) override {
    stream = nullptr;
    return Status::success;
  }
  Status destroy_stream(StreamObject* stream) override { return driver_.cuStreamDestroy_v2(stream); }
  Status synchronize_stream(StreamObject* stream) override { return driver_.cuStreamSynchronize(stream); }

  Status create_event(bool is_timed, EventObject*& event) override {
    return driver_.cuEventCreate(&event, is_timed ? kEventDefault : kEventDisableTiming);
  }
  Status destroy_event(EventObject* event) override { return driver_.cuEventDestroy_v2(event); }
  Status record_event(EventObject* event, StreamObject* stream) override {
    return driver_.cuEventRecord(event, stream);
  }
  Status wait_for_event(StreamObject* stream, EventObject* event) override {
    return driver_.cuStreamWaitEvent(stream, event, 0);
  }
  Status query_event(EventObject* event) override { return driver_.cuEventQuery(event); }
  Status synchronize_event(EventObject* event) override { return driver_.cuEventSynchronize(event); }
  Status measure_time(EventObject* from, EventObject* to, float& milliseconds) override {
    return driver_.cuEventElapsedTime(&milliseconds, from, to);
  }

  Status allocate(StreamObject* stream, std::size_t bytes, void*& address) override {
    DeviceAddress allocated = 0;
    const Status status = driver_.cuMemAllocAsync(&allocated, bytes, stream);
    address = reinterpret_cast<void*>(allocated);
    return status;
  }
  Status release(StreamObject* stream, void* address) override {
    return driver_.cuMemFreeAsync(number_of(address), stream);
  }
  Status allocate_host(std::size_t bytes, void*& address) override {
    return driver_.cuMemHostAlloc(&address, bytes, kHostPortable | kHostMapped);
  }
  Status release_host(void* address) override { return driver_.cuMemFreeHost(address); }
  Status find_device(const void* address, int& device) override {
    return driver_.cuPointerGetAttribute(&device, kPointerDeviceOrdinal, number_of(address));
  }
  Status copy(StreamObject* stream, void* to, const void* from, std::size_t bytes) override {
    return driver_.cuMemcpyAsync(number_of(to), number_of(from), bytes, stream);
  }
  Status fill(StreamObject* stream, void* to, std::uint8_t value, std::size_t bytes) override {
    return driver_.cuMemsetD8Async(number_of(to), value, bytes, stream);
  }

  Status load_module(std::span<const std::byte> image, ModuleObject*& module) override;
  Status unload_module(ModuleObject* module) override { return driver_.cuModuleUnload(module); }
  Status find_function(ModuleObject* module, const std::string& name, std::size_t argument_bytes,
                       std::uint32_t shared_bytes, FunctionObject*& function) override;
  Status launch(StreamObject* stream, FunctionObject* function, const LaunchSize& size,
                std::span<const std::byte> arguments) override;
  Status launch_host(StreamObject* stream, HostFunction function, void* data) override {
    return driver_.cuLaunchHostFunc(stream, function, data);
  }

  Status begin_capture(StreamObject* stream) override {
    return driver_.cuStreamBeginCapture_v2(stream, kCaptureThreadLocal);
  }
  Status end_capture(StreamObject* stream, GraphObject*& graph) override {
    return driver_.cuStreamEndCapture(stream, &graph);
  }
  Status query_capture(StreamObject* stream, bool& is_capturing) override {
    int state = 0;
    const Status status = driver_.cuStreamIsCapturing(stream, &state);
    is_capturing = state != 0;  // 2 is a capture that is invalid
    return status;
  }
  Status destroy_graph(GraphObject* graph) override { return driver_.cuGraphDestroy(graph); }
  Status count_nodes(GraphObject* graph, std::size_t& count) override {
    return driver_.cuGraphGetNodes(graph, nullptr, &count);
  }
  Status instantiate(GraphObject* graph, ExecutableObject*& executable) override {
    return driver_.cuGraphInstantiateWithFlags(&executable, graph, 0);
  }
  Status update(ExecutableObject* executable, GraphObject* graph, std::string& refusal) override;
  Status upload_graph(StreamObject* stream, ExecutableObject* executable) override {
    return driver_.cuGraphUpload(executable, stream);
  }
  Status launch_graph(StreamObject* stream, ExecutableObject* executable) override {
    return driver_.cuGraphLaunch(executable, stream);
  }
  Status destroy_executable(ExecutableObject* executable) override { return driver_.cuGraphExecDestroy(executable); }
  Status count_graph_memory(int device, std::size_t& bytes) override;

 private:
  Status keep_released_memory(DeviceNumber number);

  const DriverFunctions driver_;
  std::mutex mutex_;                      // guards contexts_
  std::vector<ContextObject*> contexts_;  // by device, null until one is needed
};

Status LibraryCalls::read_facts(int device, DeviceFacts& facts) {
  DeviceNumber number = 0;
  if (const Status status = driver_.cuDeviceGet(&number, device); status != Status::success) return status;
  char name[256] = "";
  if (const Status status = driver_.cuDeviceGetName(name, sizeof(name), number); status != Status::success)
    return status;
  facts.name = name;
  if (const Status status = driver_.cuDriverGetVersion(&facts.driver_version); status != Status::success) return status;
  std::size_t bytes = 0;
  if (const Status status = driver_.cuDeviceTotalMem_v2(&bytes, number); status != Status::success) return status;
  facts.memory_bytes = static_cast<std::int64_t>(bytes);
  int major = 0, minor = 0, shared = 0, level_two = 0, pools = 0;
  const std::pair<int, int*> attributes[] = {{kCapabilityMajor, &major},
                                             {kCapabilityMinor, &minor},
                                             {kMultiprocessorCount, &facts.multiprocessors},
                                             {kMaxThreadsPerBlock, &facts.threads_per_block},
                                             {kMaxSharedMemoryPerBlockOptIn, &shared},
                                             {kLevelTwoCacheSize, &level_two},
                                             {kMemoryPoolsSupported, &pools}};
  for (const auto& [attribute, value] : attributes)
    if (const Status status = driver_.cuDeviceGetAttribute(value, attribute, number); status != Status::success)
      return status;
  facts.compute_capability = 10 * major + minor;
  facts.shared_bytes = shared;
  facts.level_two_bytes = level_two;
  facts.allocates_in_streams = pools != 0;
  return Status::success;
}

Status LibraryCalls::set_current(int device) {
  const auto index = static_cast<std::size_t>(device);
  const std::lock_guard lock(mutex_);
  if (contexts_.size() <= index) contexts_.resize(index + 1);
  if (contexts_[index] != nullptr) return driver_.cuCtxSetCurrent(contexts_[index]);
  DeviceNumber number = 0;
  if (const Status status = driver_.cuDeviceGet(&number, device); status != Status::success) return status;
  ContextObject* context = nullptr;
  if (const Status status = driver_.cuDevicePrimaryCtxRetain(&context, number); status != Status::success)
    return status;
  Status status = driver_.cuCtxSetCurrent(context);
  if (status == Status::success) status = keep_released_memory(number);
  if (status == Status::success) {
    contexts_[index] = context;
  } else {
    driver_.cuDevicePrimaryCtxRelease_v2(number);
  }
  return status;
}

// Otherwise each wait returns released memory to the system, and the next allocation requests it again.
Status LibraryCalls::keep_released_memory(DeviceNumber number) {
  int pools = 0;
  if (const Status status = driver_.cuDeviceGetAttribute(&pools, kMemoryPoolsSupported, number);
      status != Status::success || pools == 0)
    return status;
  PoolObject* pool = nullptr;
  std::uint64_t keep = std::numeric_limits<std::uint64_t>::max();
  if (const Status status = driver_.cuDeviceGetDefaultMemPool(&pool, number); status != Status::success) return status;
  return driver_.cuMemPoolSetAttribute(pool, kPoolReleaseThreshold, &keep);
}

Status LibraryCalls::reset(int device) {
  const auto index = static_cast<std::size_t>(device);
  DeviceNumber number = 0;
  if (const Status status = driver_.cuDeviceGet(&number, device); status != Status::success) return status;
  if (const Status status = driver_.cuDevicePrimaryCtxReset_v2(number); status != Status::success) return status;
  {
    const std::lock_guard lock(mutex_);
    if (contexts_.size() <= index || contexts_[index] == nullptr) return Status::success;
    contexts_[index] = nullptr;
  }
  if (const Status status = driver_.cuDevicePrimaryCtxRelease_v2(number); status != Status::success) return status;
  return set_current(device);  // a driver that refuses the device after a fault fails here, not in the reset
}

Status LibraryCalls::load_module(std::span<const std::byte> image, ModuleObject*& module) {
  // PTX must end with a zero byte, and a span need not be followed by one.
  std::vector<std::byte> ended(image.begin(), image.end());
  ended.push_back(std::byte{0});
  return driver_.cuModuleLoadData(&module, ended.data());
}

Status LibraryCalls::find_function(ModuleObject* module, const std::string& name, std::size_t argument_bytes,
                                   std::uint32_t shared_bytes, FunctionObject*& function) {
  if (const Status status = driver_.cuModuleGetFunction(&function, module, name.c_str()); status != Status::success)
    return status;
  if (driver_.cuFuncGetParamInfo != nullptr && argument_bytes > 0) {
    std::size_t offset = 0, bytes = 0;
    if (const Status status = driver_.cuFuncGetParamInfo(function, 0, &offset, &bytes); status != Status::success)
      return status;
    if (bytes != argument_bytes) return Status::invalid_value;
  }
  if (shared_bytes == 0) return Status::success;
  return driver_.cuFuncSetAttribute(function, kFunctionMaxDynamicSharedBytes, static_cast<int>(shared_bytes));
}

Status LibraryCalls::launch(StreamObject* stream, FunctionObject* function, const LaunchSize& size,
                            std::span<const std::byte> arguments) {
  void* parameters[] = {const_cast<std::byte*>(arguments.data())};
  return driver_.cuLaunchKernel(function, size.blocks[0], size.blocks[1], size.blocks[2], size.threads[0],
                                size.threads[1], size.threads[2], size.shared_bytes, stream,
                                arguments.empty() ? nullptr : parameters, nullptr);
}

Status LibraryCalls::update(ExecutableObject* executable, GraphObject* graph, std::string& refusal) {
  GraphUpdateResult result;
  const Status status = driver_.cuGraphExecUpdate_v2(executable, graph, &result);
  const bool is_known = result.result >= 0 && result.result < static_cast<int>(std::size(kUpdateResults));
  refusal = is_known ? kUpdateResults[result.result] : fmt::format("reason {} of the driver", result.result);
  return status;
}

Status LibraryCalls::count_graph_memory(int device, std::size_t& bytes) {
  DeviceNumber number = 0;
  if (const Status status = driver_.cuDeviceGet(&number, device); status != Status::success) return status;
  std::uint64_t reserved = 0;
  const Status status = driver_.cuDeviceGetGraphMemAttribute(number, kGraphMemoryReserved, &reserved);
  bytes = reserved;
  return status;
}

// Looks up all required functions. `problem` names the first one that is missing.
DriverFunctions find_functions(const FindSymbol& find, std::string& problem) {
  DriverFunctions driver;
#define WEFT_CUDA_FIND(symbol, ...)                                         \
  driver.symbol = reinterpret_cast<decltype(driver.symbol)>(find(#symbol)); \
  if (driver.symbol == nullptr && problem.empty()) problem = "the CUDA driver has no " #symbol;
  WEFT_CUDA_FUNCTIONS(WEFT_CUDA_FIND)
#undef WEFT_CUDA_FIND
  driver.cuFuncGetParamInfo = reinterpret_cast<decltype(driver.cuFuncGetParamInfo)>(find("cuFuncGetParamInfo"));
  return driver;
}

}  // namespace

std::unique_ptr<Driver> open_cuda(const FindSymbol& find, std::string& problem) {
  std::string missing;
  const DriverFunctions driver = find_functions(find, missing);
  // An old driver lacks functions. Its version is a better error message than their names.
  int version = 0;
  if (driver.cuDriverGetVersion != nullptr && driver.cuDriverGetVersion(&version) == Status::success &&
      version < kLeastDriverVersion) {
    problem = fmt::format("the CUDA driver must be for CUDA {} or newer, but is for {}",
                          cuda_version_text(kLeastDriverVersion), cuda_version_text(version));
    return nullptr;
  }
  problem = missing;
  if (!problem.empty()) return nullptr;
  auto calls = std::make_unique<LibraryCalls>(driver);
  if (const Status status = driver.cuInit(0); status != Status::success) {
    problem = "the CUDA driver does not start: " + calls->explain(status);
    return nullptr;
  }
  try {
    auto opened = std::make_unique<Driver>(DeviceType::cuda, std::move(calls));
    if (opened->device_count() > 0) return opened;
    problem = "the CUDA driver has no device";
  } catch (const DeviceError& error) {
    problem = error.what();
  }
  return nullptr;
}

std::unique_ptr<Driver> open_cuda(std::string& problem, const std::string& library) {
  std::string words;
  const auto opened = SharedLibrary::open(library, words);
  if (opened)
    return open_cuda([&](const char* symbol) { return reinterpret_cast<void*>(opened->find<void()>(symbol)); },
                     problem);
  const bool is_absent = words.find("No such file") != std::string::npos;
  problem = is_absent ? library + " was not found" : fmt::format("{} cannot be opened: {}", library, words);
  return nullptr;
}

}  // namespace weft::cuda
