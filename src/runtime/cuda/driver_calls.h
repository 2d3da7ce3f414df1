#pragma once

// The calls of the CUDA driver that Weft makes, one function each, without the driver's type names. There are two
// backends: libcuda.so.1 (runtime/cuda/driver_library.h) and a fake device (runtime/cuda/fake_device.h). Only Driver
// (runtime/cuda/driver.h) makes these calls; it refuses what the driver leaves undefined, such as the use of a
// destroyed stream.
//
// Calls without a stream or a device use the device that is current on the calling thread.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace weft::cuda {

// The result of a call, with the driver's own values. Only those that Weft or the fake device use are listed.
enum class Status : int {
  success = 0,
  invalid_value = 1,
  out_of_memory = 2,
  invalid_device = 101,
  invalid_image = 200,
  invalid_context = 201,  // belongs to a device that is not current
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

// Whether every later call on the device returns this status, until the device is reset.
bool breaks_device(Status status);

struct DeviceFacts {
  std::string name;
  int compute_capability = 0;  // 90 for 9.0
  int driver_version = 0;      // the driver's CUDA version: 12040 for 12.4; 0 without a driver
  int multiprocessors = 0;
  int threads_per_block = 0;          // at most
  std::int64_t shared_bytes = 0;      // of a block, at most
  std::int64_t memory_bytes = 0;      // of the device
  std::int64_t level_two_bytes = 0;   // of its cache
  bool allocates_in_streams = false;  // if false, allocate fails
  bool host_reads_memory = false;     // true for a fake device that does not hide its memory
};

struct MemoryCounts {
  std::size_t free = 0;   // bytes
  std::size_t total = 0;  // bytes
};

struct LaunchSize {
  std::uint32_t blocks[3] = {1, 1, 1};
  std::uint32_t threads[3] = {1, 1, 1};  // of a block
  std::uint32_t shared_bytes = 0;        // of a block, in addition to what the function declares
  bool operator==(const LaunchSize&) const = default;
};

// Runs on a thread of the driver; must not throw and must not call the driver.
using HostFunction = void (*)(void* data);

// Each backend defines its own.
struct StreamObject;
struct EventObject;
struct ModuleObject;
struct FunctionObject;
struct GraphObject;
struct ExecutableObject;

class DriverCalls {
 public:
  virtual ~DriverCalls() = default;

  // The name and the message: "CUDA_ERROR_OUT_OF_MEMORY, out of memory", with any details that a backend knows.
  virtual std::string explain(Status status) = 0;

  virtual Status count_devices(int& count) = 0;
  virtual Status read_facts(int device, DeviceFacts& facts) = 0;
  virtual Status set_current(int device) = 0;
  virtual Status count_memory(MemoryCounts& counts) = 0;
  // Destroys everything on the device, streams and memory included, and leaves it as if it was never used.
  virtual Status reset(int device) = 0;
  virtual Status synchronize_device() = 0;

  // `joins_default`: the stream and the device's default stream wait for each other.
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
  // The time between two timed events that were reached; invalid_handle for untimed events, not_ready while one is not
  // reached.
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
  // `shared_bytes`: the most dynamic shared memory that a launch will request.
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
  // Returns update_failure, and the reason in `refusal`, where the graphs differ in more than an update may change.
  virtual Status update(ExecutableObject* executable, GraphObject* graph, std::string& refusal) = 0;
  virtual Status upload_graph(StreamObject* stream, ExecutableObject* executable) = 0;
  virtual Status launch_graph(StreamObject* stream, ExecutableObject* executable) = 0;
  virtual Status destroy_executable(ExecutableObject* executable) = 0;
  virtual Status count_graph_memory(int device, std::size_t& bytes) = 0;
};

}  // namespace weft::cuda
