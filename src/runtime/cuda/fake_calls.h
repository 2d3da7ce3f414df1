#pragma once

// The fake device's implementation of the driver's calls (see runtime/cuda/fake_device.h).

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runtime/cuda/fake_device.h"
#include "runtime/cuda/fake_memory.h"
#include "runtime/cuda/fake_work.h"
#include "runtime/cuda/per_thread.h"

namespace weft::cuda {

// Memory that a captured graph allocates. Its addresses are fixed, so that each launch uses the same ones.
struct FakeGraphMemory {
  explicit FakeGraphMemory(FakeMemory& memory) : memory(memory) {}
  ~FakeGraphMemory() {
    for (void* address : addresses) memory.remove(address);
  }
  FakeGraphMemory(const FakeGraphMemory&) = delete;
  FakeGraphMemory& operator=(const FakeGraphMemory&) = delete;

  FakeMemory& memory;
  std::vector<void*> addresses;
  std::set<void*> unreleased;
  std::size_t bytes = 0;       // allocated and not released
  std::size_t most_bytes = 0;  // at once
  int executables = 0;         // living executables
};

struct GraphObject {
  struct Node {
    FakeOperation operation;
    std::vector<std::size_t> after;
  };
  int device = 0;
  std::vector<Node> nodes;
  std::shared_ptr<FakeGraphMemory> memory;
};

struct ExecutableObject {
  int device = 0;
  std::vector<GraphObject::Node> nodes;
  std::shared_ptr<FakeGraphMemory> memory;
  WorkPointer last;       // its last launch
  std::size_t bytes = 0;  // the memory of the executable itself
  bool is_uploaded = false;
  ~ExecutableObject() { --memory->executables; }
};

struct FakeCapture {
  StreamObject* origin = nullptr;
  std::uint64_t thread = 0;  // a unique thread number that is never reused
  std::set<StreamObject*> members;
  GraphObject graph;
  std::string fault;  // the reason why it is invalid
  bool is_invalid = false;
  bool has_ended = false;
};

struct StreamObject {
  int device = 0;
  bool is_default = false;
  bool joins_default = false;
  std::vector<WorkPointer> after = {};             // work that precedes what is queued next
  std::shared_ptr<FakeCapture> capture = nullptr;  // the capture that it is part of
  std::vector<std::size_t> captured_after = {};    // the same, as nodes of the capture
};

struct EventObject {
  int device = 0;
  bool is_timed = false;
  std::vector<WorkPointer> works;
  std::shared_ptr<FakeCapture> capture;  // the capture that it was recorded in
  std::vector<std::size_t> nodes;
};

struct FunctionObject {
  const FakeKernel* kernel = nullptr;
  std::uint32_t shared_bytes = 0;
  bool is_loaded = true;
};

struct ModuleObject {
  int device = 0;
  std::vector<FakeKernel> kernels;  // empty for a fake image, which uses the settings' kernels
  std::vector<std::shared_ptr<FunctionObject>> functions;
};

class FakeCalls : public DriverCalls {
 public:
  explicit FakeCalls(FakeSettings settings);
  ~FakeCalls() override;

  std::string explain(Status status) override;
  Status count_devices(int& count) override;
  Status read_facts(int device, DeviceFacts& facts) override;
  Status set_current(int device) override;
  Status count_memory(MemoryCounts& counts) override;
  Status reset(int device) override;
  Status synchronize_device() override;

  Status create_stream(bool joins_default, StreamObject*& stream) override;
  Status default_stream(int device, StreamObject*& stream) override;
  Status destroy_stream(StreamObject* stream) override;
  Status synchronize_stream(StreamObject* stream) override;

  Status create_event(bool is_timed, EventObject*& event) override;
  Status destroy_event(EventObject* event) override;
  Status record_event(EventObject* event, StreamObject* stream) override;
  Status wait_for_event(StreamObject* stream, EventObject* event) override;
  Status query_event(EventObject* event) override;
  Status synchronize_event(EventObject* event) override;
  Status measure_time(EventObject* from, EventObject* to, float& milliseconds) override;

  Status allocate(StreamObject* stream, std::size_t bytes, void*& address) override;
  Status release(StreamObject* stream, void* address) override;
  Status allocate_host(std::size_t bytes, void*& address) override;
  Status release_host(void* address) override;
  Status find_device(const void* address, int& device) override;
  Status copy(StreamObject* stream, void* to, const void* from, std::size_t bytes) override;
  Status fill(StreamObject* stream, void* to, std::uint8_t value, std::size_t bytes) override;

  Status load_module(std::span<const std::byte> image, ModuleObject*& module) override;
  Status unload_module(ModuleObject* module) override;
  Status find_function(ModuleObject* module, const std::string& name, std::size_t argument_bytes,
                       std::uint32_t shared_bytes, FunctionObject*& function) override;
  Status launch(StreamObject* stream, FunctionObject* function, const LaunchSize& size,
                std::span<const std::byte> arguments) override;
  Status launch_host(StreamObject* stream, HostFunction function, void* data) override;

  Status begin_capture(StreamObject* stream) override;
  Status end_capture(StreamObject* stream, GraphObject*& graph) override;
  Status query_capture(StreamObject* stream, bool& is_capturing) override;
  Status destroy_graph(GraphObject* graph) override;
  Status count_nodes(GraphObject* graph, std::size_t& count) override;
  Status instantiate(GraphObject* graph, ExecutableObject*& executable) override;
  Status update(ExecutableObject* executable, GraphObject* graph, std::string& refusal) override;
  Status upload_graph(StreamObject* stream, ExecutableObject* executable) override;
  Status launch_graph(StreamObject* stream, ExecutableObject* executable) override;
  Status destroy_executable(ExecutableObject* executable) override;
  Status count_graph_memory(int device, std::size_t& bytes) override;

 private:
  struct Device {
    StreamObject default_stream;
    Status fault = Status::success;  // the result of every call after a kernel failed
    std::string fault_words;
    std::size_t graph_bytes = 0;       // reserved for graph allocations
    std::size_t executable_bytes = 0;  // memory of the executables themselves
    std::uint64_t resets = 0;
  };
  struct Thread {
    std::optional<int> device;
    std::uint64_t resets = 0;  // the device's number of resets when it became current
    std::string words;         // of the last call
    bool is_in_host_function = false;
    std::uint64_t number = new_number();

    static std::uint64_t new_number() {
      static std::atomic<std::uint64_t> last = 0;
      return ++last;
    }
  };
  struct GraphLaunch {
    int device;
    StreamObject* stream;
    std::size_t bytes;
    WorkPointer end;
  };

  // Held during a call: only one call runs at a time, and memory is accessible.
  class Call {
   public:
    explicit Call(FakeCalls& calls) : lock_(calls.mutex_), memory_(calls.memory_) { memory_.show(); }
    ~Call() { memory_.hide(); }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    const std::lock_guard<std::mutex> lock_;
    FakeMemory& memory_;
  };
  // Clears the message of this thread's last call.
  Call begin_call();
  Call lock_calls();
  Status answer(Status status, std::string words);
  // The device, or invalid_context on a thread that has none.
  Status current_device(int& device);
  Status fault_of(int device);
  Status check_stream(const StreamObject* stream);
  template <class Object>
  Object* keep(int device, std::unique_ptr<Object> object) {
    Object* address = object.get();
    objects_[address] = {device, std::shared_ptr<void>(std::move(object))};
    return address;
  }
  Status forget(const void* object);

  // fake_calls.cpp
  std::vector<WorkPointer> order_of(const StreamObject& stream) const;
  Status enqueue(StreamObject* stream, FakeOperation operation);
  Status run_until(const std::vector<WorkPointer>& works, int device);
  Status check_memory(int device);

  // fake_run.cpp
  Status read_image(std::span<const std::byte> image, std::vector<FakeKernel>& kernels);
  // Whether the device can run code that was compiled for another architecture.
  Status check_architecture(const FakeImage& image);
  Status check_ptx_version(const FakeImage& image);
  Status read_fake_image(const std::string& text);
  void run(const FakeOperation& operation);
  Status run_checked(const FakeOperation& operation, std::string& words);
  Status run_host(const FakeOperation& operation, std::string& words);
  void break_device(int device, Status status, const std::string& words);
  std::size_t free_bytes(int device) const;

  // fake_capture.cpp
  Status invalidate(FakeCapture& capture, Status status, const std::string& words);
  // Returns invalid_value; in a capture, the capture also becomes invalid.
  Status refuse_in_capture(StreamObject* stream, const std::string& words);
  Status refuse_while_capturing(const std::string& words);
  Status check_default_stream(const StreamObject& stream);
  void leave(FakeCapture& capture);
  Status check_capture(FakeCapture& capture);
  Status allocate_captured(StreamObject* stream, std::size_t bytes, void*& address);
  Status release_captured(StreamObject* stream, void* address);
  Status wait_for_captured(StreamObject* stream, EventObject* event);
  Status take_executable_memory(ExecutableObject& executable, std::size_t bytes_of_node);
  Status upload(ExecutableObject& executable);
  Status hold_graph_memory(const StreamObject& stream, const ExecutableObject& executable);

  const FakeSettings settings_;
  std::mutex mutex_;
  FakeMemory memory_{settings_.hides_memory};
  FakeQueue queue_;
  std::vector<Device> devices_;
  std::map<const void*, std::pair<int, std::shared_ptr<void>>> objects_;  // object to its device and owner
  std::vector<StreamObject*> streams_;                  // destroyed streams too: their work still runs
  std::vector<std::shared_ptr<FakeCapture>> captures_;  // captures that have not ended
  std::vector<GraphLaunch> graph_launches_;             // launches that may still run
  std::set<const void*> releasing_;                     // memory that is released, or whose release is queued
  PerThread<Thread> thread_;
};

}  // namespace weft::cuda
