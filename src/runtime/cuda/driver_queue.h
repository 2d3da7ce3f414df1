#pragma once

// A device's stream as a queue of named kernels and of host functions (kernels/launch_queue.h). Its functions make the
// stream current while they run. Only one thread may use it at a time.

#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kernels/launch_queue.h"
#include "runtime/cuda/device_library.h"
#include "runtime/cuda/driver.h"

namespace weft::cuda {

class DriverQueue : public LaunchQueue {
 public:
  // `modules` define the kernels; each module is searched. The driver, the stream and the modules must outlive the
  // queue.
  DriverQueue(Driver& driver, Stream stream, std::vector<Module> modules);
  // Adds a module that is known to define this kernel. The kernel is looked up only there.
  void add(Module module, const std::string& kernel) { module_of_kernel_.emplace(kernel, module); }
  // Waits for all queued work and ignores its errors.
  ~DriverQueue() override;

  std::string device() const override { return driver_.device_name(stream_.device); }
  void launch(const std::string& kernel, const LaunchShape& shape, std::span<const std::byte> arguments) override;
  void run_on_host(const std::string& name, std::function<void()> function) override;
  void call_library(const std::string& function, std::span<const std::byte> arguments) override;
  // Adds the library that implements the calls of that function. It is destroyed before the queue, when no queued work
  // is left.
  void add_library(const std::string& function, std::unique_ptr<DeviceLibrary> library) {
    libraries_[function] = std::move(library);
  }
  // Destroys the libraries. Their device must not be reset before.
  void close_libraries() { libraries_.clear(); }

  // Waits for all queued work. Throws the exception of the first host function that failed, or a DeviceError.
  void synchronize();

  struct Failure {  // of host functions
    std::mutex mutex;
    std::exception_ptr first;
  };
  struct HostWork {
    std::function<void()> function;
    Failure& failure;
  };
  struct QueuedWork {
    std::vector<std::unique_ptr<HostWork>> host_work;
    std::string form;  // names of kernels and host functions, in order
    std::int64_t nodes = 0;
  };
  // Queued work that was captured instead of run. It must outlive the launches of its graph.
  struct Recording {
    Owner<GraphObject> graph;
    QueuedWork work;
  };
  // Captures the work that `enqueue` queues. `enqueue` is called twice: the first call only looks up code, and lets the
  // driver load it, before the capture begins. An exception inside ends the capture, and the queue stays usable.
  Recording record(const std::function<void()>& enqueue);
  // The number of kernels launched or captured so far.
  std::int64_t launches() const { return launches_; }
  // The number of library calls made or captured so far.
  std::int64_t library_calls() const { return library_calls_; }
  // Keeps the data that a recording's last launches still need, until synchronize().
  void retire(Recording&& recording);

 private:
  Function function_of(const std::string& kernel, std::size_t argument_bytes);
  void wait_for_device() noexcept;

  Driver& driver_;
  const Stream stream_;
  std::vector<Module> modules_;
  std::map<std::string, Module> module_of_kernel_;
  std::map<std::string, Function> functions_;
  Failure failure_;
  std::vector<std::unique_ptr<HostWork>> host_work_;  // may not have run yet
  bool only_looks_up_ = false;                        // in the first call of `enqueue`
  QueuedWork* captured_ = nullptr;                    // not null during a capture
  std::int64_t launches_ = 0, library_calls_ = 0;
  std::map<std::string, std::unique_ptr<DeviceLibrary>> libraries_;  // by function
};

}  // namespace weft::cuda
