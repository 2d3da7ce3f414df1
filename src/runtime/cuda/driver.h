#pragma once

// CUDA devices: streams, events, stream-ordered memory, kernels, captured graphs. All host code for a GPU uses this
// class, on a machine with a GPU (runtime/cuda/driver_library.h) and in tests without one (runtime/cuda/fake_device.h).
//
// Work that is queued on a stream runs after the work queued there before, and after the events that the stream waits
// for; there is no other order. Errors are DeviceErrors that name the call, the device and, for memory, the requested
// and the free bytes. Handles are numbers: the use of a destroyed object is an error, never undefined. Any thread may
// call; a thread must not destroy an object that another thread is using.
//
// A device and a stream of each device are current on a thread; initially device 0 and the default streams
// (runtime/cuda/current_guard.h). Queueing work on a stream needs the stream's device to be current.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.h"
#include "kernels/kernel.h"
#include "runtime/cuda/driver_calls.h"
#include "runtime/cuda/per_thread.h"
#include "tensor/device.h"

namespace weft::cuda {

// A call that the driver refused.
class CudaError : public DeviceError {
 public:
  CudaError(Status status, const std::string& message) : DeviceError(message), status_(status) {}
  Status status() const { return status_; }

 private:
  Status status_;
};

template <class Object>
struct Handle {
  int device = 0;
  std::uint64_t number = 0;
  bool operator==(const Handle&) const = default;
};
using Stream = Handle<StreamObject>;
using Event = Handle<EventObject>;
using Module = Handle<ModuleObject>;
using Function = Handle<FunctionObject>;  // device code; its lifetime is that of its module
using CapturedGraph = Handle<GraphObject>;
using ExecutableGraph = Handle<ExecutableObject>;

// A plain struct, and not a span of bytes.
template <class T>
concept KernelArguments =
    std::is_trivially_copyable_v<T> && !std::is_convertible_v<const T&, std::span<const std::byte>>;

// "12.4" of 12040.
std::string cuda_version_text(int version);

class Driver {
 public:
  // `type`: cuda or fake_cuda, for messages. DeviceError when the devices cannot be queried.
  Driver(DeviceType type, std::unique_ptr<DriverCalls> calls);
  // Destroys no stream, event, module or graph: their owners must do that before.
  ~Driver();
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  // -- devices, numbered from 0
  int device_count() const { return static_cast<int>(devices_.size()); }
  const DeviceFacts& facts(int device) const;
  std::string device_name(int device) const;  // cuda:0
  MemoryCounts memory(int device);
  // Waits for all work that is queued on the device.
  void synchronize_device(int device);
  // A kernel that fails breaks its device: every later call there returns the same error. This is that error's message,
  // "" for a device that works.
  std::string last_error(int device) const;
  // Makes a broken device usable again. All objects on it are destroyed, and their handles become invalid. DeviceError
  // where the driver refuses: after a kernel failed, driver 580 (CUDA 13, observed on an H100) returns that failure for
  // every later call of the process, even in a new context.
  void reset(int device);

  // -- what is current on the calling thread
  int current_device();
  // After the current stream was destroyed, this is the default stream.
  Stream current_stream(int device);
  // Makes the stream's device current, and the stream current on that device.
  void make_current(Stream stream);

  // -- streams
  // The default stream's work waits for work queued before on streams with joins_default, and their later work waits
  // for it.
  Stream default_stream(int device) const;
  Stream create_stream(int device, bool joins_default = false);
  // Not while the stream captures. Work that is queued on it still runs.
  void destroy(Stream stream);
  void synchronize(Stream stream);
  // The driver's own object of the stream, for a library that queues work there; `call` is for messages.
  StreamObject* object_of(Stream stream, const char* call) { return find_current(stream, call); }

  // -- events
  Event create_event(int device, bool is_timed = false);
  void destroy(Event event);
  // The event marks the work that is queued on the stream so far. Both must be of one device.
  void record(Event event, Stream stream);
  // Work that is queued on `stream` from now on runs after the work that the event marks now; an event that was never
  // recorded marks nothing. The event may be of another device.
  void wait(Stream stream, Event event);
  bool is_done(Event event);
  void synchronize(Event event);
  // The time between two timed events, which must be recorded and reached. A fake device has no clock and counts a
  // microsecond for each operation that it did.
  float milliseconds_between(Event from, Event to);

  // -- memory
  // Memory with 256-byte alignment and undefined contents; null for 0 bytes. Work that is queued on the stream after
  // this call may use it, and so may other work that is ordered after the allocation. In a capture each launch of the
  // graph allocates the memory, until it is released in the same capture.
  void* allocate(Stream stream, std::size_t bytes);
  // Work that is queued on the stream from now on must not use the memory. Null is ignored.
  void release(Stream stream, void* address);
  // Host memory that every device can use; contents undefined, null for 0 bytes. Not in a capture.
  void* allocate_host(int device, std::size_t bytes);
  // No queued work may still use the memory. Null is ignored.
  void release_host(int device, void* address);
  // The device that owns the memory; nullopt for host memory, except for memory of allocate_host.
  std::optional<int> device_of(const void* address);
  // Copies between memory of devices and the host. The host memory must stay allocated and unchanged until the copy
  // ran.
  void copy(Stream stream, void* to, const void* from, std::size_t bytes);
  void fill(Stream stream, void* to, std::uint8_t value, std::size_t bytes);

  // -- device code
  // `image` is PTX, a cubin or a fatbin. Not while the thread captures.
  Module load_module(int device, std::span<const std::byte> image);
  // Destroys the module and its functions. No queued work may still use them.
  void destroy(Module module);
  // A kernel that takes one plain struct of `argument_bytes`. `shared_bytes` is the most dynamic shared memory of its
  // launches. Not while the thread captures.
  Function find_function(Module module, const std::string& name, std::size_t argument_bytes,
                         std::uint32_t shared_bytes = 0);
  // The same, or nullopt where the module has no kernel of that name.
  std::optional<Function> look_up_function(Module module, const std::string& name, std::size_t argument_bytes,
                                           std::uint32_t shared_bytes = 0);
  // The arguments are copied.
  void launch(Stream stream, Function function, const LaunchSize& size, std::span<const std::byte> arguments);
  template <KernelArguments Arguments>
  void launch(Stream stream, Function function, const LaunchSize& size, const Arguments& arguments) {
    launch(stream, function, size, std::as_bytes(std::span(&arguments, 1)));
  }
  // The target of `data` must live until the function ran; in a capture, as long as everything made from the graph.
  void launch_host(Stream stream, HostFunction function, void* data);

  // -- captured graphs
  // Until end_capture, work that is queued on the stream, and on streams that wait for its events, is recorded instead
  // of run. Default streams cannot capture, and nothing inside a capture may wait for a device. After an error inside,
  // the capture must be abandoned: it may be invalid, and end_capture then reports that. Other threads do not affect
  // it.
  void begin_capture(Stream stream);
  // To be called with the stream and on the thread that began the capture, after all other streams were joined by
  // events. The capture has ended afterwards, also when this throws.
  CapturedGraph end_capture(Stream stream);
  bool is_capturing(Stream stream);
  // Ends a capture, if there is one, and discards what was recorded.
  void abandon_capture(Stream stream) noexcept;

  std::size_t node_count(CapturedGraph graph);
  void destroy(CapturedGraph graph);
  ExecutableGraph instantiate(CapturedGraph graph);
  // Gives the executable's nodes the parameters of another graph of the same form, for later launches. If that is not
  // possible, returns the reason and changes nothing.
  Verdict update(ExecutableGraph executable, CapturedGraph graph);
  // Uploads what launches of the executable need; else its first launch does it. Not in a capture.
  void upload(Stream stream, ExecutableGraph executable);
  // Launches of one executable run one after another, on whatever streams. Not in a capture.
  void launch(Stream stream, ExecutableGraph executable);
  // Work that was launched still runs.
  void destroy(ExecutableGraph executable);
  // Bytes that the device reserves for memory that graphs allocate. Graphs that do not run at the same time share it,
  // so the largest graph decides; its contents do not survive from one launch to the next.
  std::size_t graph_memory_bytes(int device);

 private:
  template <class Object>
  using Objects = std::map<std::uint64_t, std::pair<int, Object*>>;  // number to device and object
  struct Current {
    int device = 0;
    std::map<int, Stream> streams;  // streams that are not the default stream
    std::uint64_t resets = 0;       // the number of resets when the backend was last called
  };
  class OnDevice;
  friend class CurrentGuard;

  template <class Object>
  Objects<Object>& objects();
  template <class Object>
  Handle<Object> add(int device, Object* object);
  template <class Object>
  Object* find(Handle<Object> handle, const char* call);
  template <class Object>
  Object* take(Handle<Object> handle, const char* call);
  StreamObject* find_current(Stream stream, const char* call);
  ExecutableObject* find_for(Stream stream, ExecutableGraph executable, const char* call);
  // Does not check whether the stream still exists.
  void restore(int device, Stream stream) noexcept;
  template <class Object>
  void forget(int device);

  void check_device(int device, const char* call) const;
  void check(Status status, const char* call, int device, std::optional<std::size_t> asked = {});
  [[noreturn]] void refuse(const char* call, int device, const std::string& why) const;

  const DeviceType type_;
  const std::unique_ptr<DriverCalls> calls_;
  std::vector<DeviceFacts> devices_;

  PerThread<Current> current_;
  mutable std::mutex mutex_;  // guards the members below
  std::uint64_t last_number_ = 0;
  Objects<StreamObject> streams_;
  Objects<EventObject> events_;
  Objects<ModuleObject> modules_;
  Objects<FunctionObject> functions_;
  Objects<GraphObject> graphs_;
  Objects<ExecutableObject> executables_;
  std::map<std::uint64_t, std::uint64_t> module_of_function_;
  std::uint64_t resets_ = 1;
  std::map<int, std::string> last_errors_;
};

// Destroys its object at the end of its lifetime; errors of that are ignored.
template <class Object>
class Owner {
 public:
  Owner(Driver& driver, Handle<Object> handle) : driver_(&driver), handle_(handle) {}
  Owner(Owner&& other) noexcept : driver_(std::exchange(other.driver_, nullptr)), handle_(other.handle_) {}
  Owner& operator=(Owner&& other) noexcept {
    std::swap(driver_, other.driver_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Owner() {
    if (driver_ == nullptr) return;
    try {
      driver_->destroy(handle_);
    } catch (const DeviceError&) {  // the device is broken or was reset, so the object is destroyed already
    }
  }
  Handle<Object> operator*() const { return handle_; }

 private:
  Driver* driver_;
  Handle<Object> handle_;
};

}  // namespace weft::cuda
