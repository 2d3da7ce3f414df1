#pragma once

// CUDA devices: streams, events, memory in the order of streams, kernels, captured graphs. All host code for a GPU goes
// through here, on a machine with one (runtime/cuda/driver_library.h) and in tests without
// (runtime/cuda/fake_device.h).
//
// What is queued on a stream runs after what was queued there before, and after the events that the stream was told to
// wait for; nothing else orders it. Errors are DeviceErrors and name the call, the device, and for memory what was
// asked and what is free. Handles are numbers: one of something that was destroyed is an error, never undefined. Any
// thread may call; what one destroys no other may be using then.
//
// A device and a stream of each device are current on a thread, device 0 and the default streams at first
// (runtime/cuda/current_guard.h). What is queued on a stream needs the stream's device to be current.

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

// A call that a driver did not do.
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
using Function = Handle<FunctionObject>;  // of device code; lives as long as its module
using CapturedGraph = Handle<GraphObject>;
using ExecutableGraph = Handle<ExecutableObject>;

// A plain struct, not bytes that hold one.
template <class T>
concept KernelArguments =
    std::is_trivially_copyable_v<T> && !std::is_convertible_v<const T&, std::span<const std::byte>>;

// "12.4" of 12040.
std::string cuda_version_text(int version);

class Driver {
 public:
  // `type`: cuda or fake_cuda, for messages. DeviceError when its devices cannot be asked about.
  Driver(DeviceType type, std::unique_ptr<DriverCalls> calls);
  // Nothing that was made is destroyed by this: its makers do that before.
  ~Driver();
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  // -- devices, numbered from 0
  int device_count() const { return static_cast<int>(devices_.size()); }
  const DeviceFacts& facts(int device) const;
  std::string device_name(int device) const;  // cuda:0
  MemoryCounts memory(int device);
  // Waits for everything that was queued there.
  void synchronize_device(int device);
  // A kernel that fails takes its device with it: every call there answers the same error from then on. This is that
  // error's message, "" for a device that works.
  std::string last_error(int device) const;
  // Makes a device usable again. All that was made on it is gone, and its handles are those of destroyed things.
  // DeviceError where the driver refuses: after a kernel failed, driver 580 (CUDA 13, seen on an H100) answers every
  // later call of the process with that failure, also in a new context.
  void reset(int device);

  // -- what is current on the calling thread
  int current_device();
  // The default stream again once the one made current was destroyed.
  Stream current_stream(int device);
  // Its device becomes current, and it the current stream there.
  void make_current(Stream stream);

  // -- streams
  // Waits for all that was queued before on streams made with joins_default, which wait for what was queued on it.
  Stream default_stream(int device) const;
  Stream create_stream(int device, bool joins_default = false);
  // Not while it captures. What was queued on it still runs.
  void destroy(Stream stream);
  void synchronize(Stream stream);
  // What the driver itself calls the stream, for a library that queues work there; `call` stands in messages.
  StreamObject* object_of(Stream stream, const char* call) { return find_current(stream, call); }

  // -- events
  Event create_event(int device, bool is_timed = false);
  void destroy(Event event);
  // The event stands for what the stream was given so far. Both are of one device.
  void record(Event event, Stream stream);
  // What `stream` is given from now on runs after what the event stands for now; after nothing for one never recorded.
  // The event may be of another device.
  void wait(Stream stream, Event event);
  bool is_done(Event event);
  void synchronize(Event event);
  // Between two timed events, which were recorded and are reached. A fake device has no clock and counts a microsecond
  // for each piece of work that it did.
  float milliseconds_between(Event from, Event to);

  // -- memory
  // 256-byte aligned, contents undefined; null for 0 bytes. May be used by what is queued on the stream from now on, or
  // ordered behind it. In a capture: at each launch of the graph, until it is released in the same capture.
  void* allocate(Stream stream, std::size_t bytes);
  // What is queued on the stream from now on may not use it. Null is ignored.
  void release(Stream stream, void* address);
  // Memory of the host that every device uses, too; contents undefined, null for 0 bytes. Not in a capture.
  void* allocate_host(int device, std::size_t bytes);
  // Nothing queued may use it any more. Null is ignored.
  void release_host(int device, void* address);
  // The device that the memory is of; nothing for the host's but for what allocate_host gave.
  std::optional<int> device_of(const void* address);
  // Between memory of devices and the host. The host's must stay, and stay as it is, until the copy ran.
  void copy(Stream stream, void* to, const void* from, std::size_t bytes);
  void fill(Stream stream, void* to, std::uint8_t value, std::size_t bytes);

  // -- device code
  // PTX, cubin or fatbin; not while the thread captures.
  Module load_module(int device, std::span<const std::byte> image);
  // With its functions. Nothing queued may use them any more.
  void destroy(Module module);
  // A kernel that takes one plain struct of `argument_bytes`, and at most so much shared memory beside its own; not
  // while the thread captures.
  Function find_function(Module module, const std::string& name, std::size_t argument_bytes,
                         std::uint32_t shared_bytes = 0);
  // The same, or nothing where the module has no kernel of that name.
  std::optional<Function> look_up_function(Module module, const std::string& name, std::size_t argument_bytes,
                                           std::uint32_t shared_bytes = 0);
  // The arguments are copied.
  void launch(Stream stream, Function function, const LaunchSize& size, std::span<const std::byte> arguments);
  template <KernelArguments Arguments>
  void launch(Stream stream, Function function, const LaunchSize& size, const Arguments& arguments) {
    launch(stream, function, size, std::as_bytes(std::span(&arguments, 1)));
  }
  // What `data` points to must stay until the function ran; in a capture, as long as what is made of the graph.
  void launch_host(Stream stream, HostFunction function, void* data);

  // -- captured graphs
  // Until end_capture what is queued on the stream, and on streams that wait for events of it, is not run but kept.
  // Not for default streams, and nothing inside may wait for a device. After an error inside, the capture is to be
  // abandoned: it may be invalid, and end_capture then says so. Other threads are not in its way.
  void begin_capture(Stream stream);
  // On the stream and thread that began it, all other streams joined by events; whether it then gives a graph or
  // throws, the capture has ended.
  CapturedGraph end_capture(Stream stream);
  bool is_capturing(Stream stream);
  // Ends a capture, if there is one, and forgets what was kept.
  void abandon_capture(Stream stream) noexcept;

  std::size_t node_count(CapturedGraph graph);
  void destroy(CapturedGraph graph);
  ExecutableGraph instantiate(CapturedGraph graph);
  // Gives what was launched from now on the nodes' parameters of another graph of the same form; or the reason why not,
  // and nothing is changed.
  Verdict update(ExecutableGraph executable, CapturedGraph graph);
  // Gives the device what launches of the executable need, which its first launch would else do. Not into a capture.
  void upload(Stream stream, ExecutableGraph executable);
  // Launches of one executable run one after another, whatever their streams. Not into a capture.
  void launch(Stream stream, ExecutableGraph executable);
  // What was launched still runs.
  void destroy(ExecutableGraph executable);
  // Bytes that the device holds for memory allocated in captures. Graphs that do not run at once share it, so that the
  // largest decides; nothing in it is kept from one launch to the next.
  std::size_t graph_memory_bytes(int device);

 private:
  template <class Object>
  using Objects = std::map<std::uint64_t, std::pair<int, Object*>>;  // device and object, by number
  struct Current {
    int device = 0;
    std::map<int, Stream> streams;  // where it is not the default stream
    std::uint64_t resets = 0;       // that there had been when the backend was told
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
  // Without a question whether the stream still lives.
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
  mutable std::mutex mutex_;  // of all below
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

// Destroys what it holds when it ends; errors of that are dropped.
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
    } catch (const DeviceError&) {  // the device is broken, or was reset: it is gone already
    }
  }
  Handle<Object> operator*() const { return handle_; }

 private:
  Driver* driver_;
  Handle<Object> handle_;
};

}  // namespace weft::cuda
