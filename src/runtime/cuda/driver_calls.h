#pragma once

// The calls of the CUDA driver that Weft makes, one function each and without its names for the types. Two backends
// stand behind them: libcuda.so.1 (runtime/cuda/driver_library.h) and a fake device (runtime/cuda/fake_device.h). Only
// Driver (runtime/cuda/driver.h) makes them; it holds back what the driver leaves undefined, such as a stream that was
// destroyed.
//
// Calls that name no stream and no device go to the device that is current on the calling thread.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace weft::cuda {

// What a call answers: the driver's own numbers, those that Weft or the fake device speak of.
enum class Status : int {
  success = 0,
  invalid_value = 1,
  out_of_memory = 2,
  invalid_device = 101,
  invalid_image = 200,
  invalid_context = 201,  // of a device that is not current
  no_binary_for_gpu = 209,
  invalid_ptx = 218,
  unsupported_ptx_version = 222,
  invalid_handle = 400,
  illegal_state = 401,
  not_found = 500,
  not_ready = 600,
  illegal_address = 700,
  launch_failed = 719,
  not_supported = 801,
  capture_unsupported = 900,
  capture_invalidated = 901,
  capture_merge = 902,
  capture_unmatched = 903,
  capture_unjoined = 904,
  capture_isolation = 905,
  capture_implicit = 906,
  captured_event = 907,
  capture_wrong_thread = 908,
  update_failure = 910,
};

// Whether the device answers nothing else from then on, until it is reset.
bool breaks_device(Status status);

struct DeviceFacts {
  std::string name;
  int compute_capability = 0;  // 90 for 9.0
  int driver_version = 0;      // of the CUDA that its driver is for: 12040 for 12.4; 0 where there is none
  int multiprocessors = 0;
  int threads_per_block = 0;          // at most
  std::int64_t shared_bytes = 0;      // of a block, at most
  std::int64_t memory_bytes = 0;      // of the device
  std::int64_t level_two_bytes = 0;   // of its cache
  bool allocates_in_streams = false;  // without which allocate fails
  bool host_reads_memory = false;     // as a fake device's, unless it hides it
};

struct MemoryCounts {
  std::size_t free = 0;   // bytes
  std::size_t total = 0;  // bytes
};

struct LaunchSize {
  std::uint32_t blocks[3] = {1, 1, 1};
  std::uint32_t threads[3] = {1, 1, 1};  // of a block
  std::uint32_t shared_bytes = 0;        // of a block, beside what the function declares
  bool operator==(const LaunchSize&) const = default;
};

// Runs on a thread of the driver; throws nothing and calls nothing of the driver.
using HostFunction = void (*)(void* data);

// Each backend has its own.
struct StreamObject;
struct EventObject;
struct ModuleObject;
struct FunctionObject;
struct GraphObject;
struct ExecutableObject;

class DriverCalls {
 public:
  virtual ~DriverCalls() = default;

  // Name and words: "CUDA_ERROR_OUT_OF_MEMORY, out of memory"; with what a backend knows beyond that.
  virtual std::string explain(Status status) = 0;

  virtual Status count_devices(int& count) = 0;
  virtual Status read_facts(int device, DeviceFacts& facts) = 0;
  virtual Status set_current(int device) = 0;
  virtual Status count_memory(MemoryCounts& counts) = 0;
  // Ends everything of the device, streams and memory included, and leaves it as if it was never used.
  virtual Status reset(int device) = 0;
  virtual Status synchronize_device() = 0;

  // `joins_default`: it waits for the device's default stream, and is waited for.
  virtual Status create_stream(bool joins_default, StreamObject*& stream) = 0;
  virtual Status default_stream(int device, StreamObject*& stream) = 0;
  virtual Status destroy_stream(StreamObject* stream) = 0;
  virtual Status synchronize_stream(StreamObject* stream) = 0;

  virtual Status create_event(bool is_timed, EventObject*& event) = 0;
  virtual Status destroy_event(EventObject* event) = 0;
  virtual Status record_event(EventObject* event, StreamObject* stream) = 0;
  virtual Status wait_for_event(StreamObject* stream, EventObject* event) = 0;
  virtual Status query_event(EventObject* event) = 0;  // not_ready while it is not reached
  virtual Status synchronize_event(EventObject* event) = 0;
  // Between two timed events that were reached; invalid_handle for others, not_ready while one is not reached.
  virtual Status measure_time(EventObject* from, EventObject* to, float& milliseconds) = 0;

  virtual Status allocate(StreamObject* stream, std::size_t bytes, void*& address) = 0;
  virtual Status release(StreamObject* stream, void* address) = 0;
  virtual Status allocate_host(std::size_t bytes, void*& address) = 0;
  virtual Status release_host(void* address) = 0;
  virtual Status find_device(const void* address, int& device) = 0;
  virtual Status copy(StreamObject* stream, void* to, const void* from, std::size_t bytes) = 0;
  virtual Status fill(StreamObject* stream, void* to, std::uint8_t value, std::size_t bytes) = 0;

  virtual Status load_module(std::span<const std::byte> image, ModuleObject*& module) = 0;
  virtual Status unload_module(ModuleObject* module) = 0;
  // `shared_bytes`: the most that a launch will ask for.
  virtual Status find_function(ModuleObject* module, const std::string& name, std::size_t argument_bytes,
                               std::uint32_t shared_bytes, FunctionObject*& function) = 0;
  virtual Status launch(StreamObject* stream, FunctionObject* function, const LaunchSize& size,
                        std::span<const std::byte> arguments) = 0;
  virtual Status launch_host(StreamObject* stream, HostFunction function, void* data) = 0;

  virtual Status begin_capture(StreamObject* stream) = 0;
  virtual Status end_capture(StreamObject* stream, GraphObject*& graph) = 0;
  virtual Status query_capture(StreamObject* stream, bool& is_capturing) = 0;
  virtual Status destroy_graph(GraphObject* graph) = 0;
  virtual Status count_nodes(GraphObject* graph, std::size_t& count) = 0;
  virtual Status instantiate(GraphObject* graph, ExecutableObject*& executable) = 0;
  // update_failure, and why in `refusal`, where the graphs differ in what may not change.
  virtual Status update(ExecutableObject* executable, GraphObject* graph, std::string& refusal) = 0;
  virtual Status upload_graph(StreamObject* stream, ExecutableObject* executable) = 0;
  virtual Status launch_graph(StreamObject* stream, ExecutableObject* executable) = 0;
  virtual Status destroy_executable(ExecutableObject* executable) = 0;
  virtual Status count_graph_memory(int device, std::size_t& bytes) = 0;
};

}  // namespace weft::cuda
