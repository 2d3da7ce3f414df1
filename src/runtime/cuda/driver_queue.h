#pragma once

// A device's stream as a queue of kernels by name and of functions of the host (kernels/launch_queue.h). Calls make the
// stream current while they run. For one thread at a time.

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
  // `modules` define the kernels, which are looked for in each; the driver and all of it must outlive the queue.
  DriverQueue(Driver& driver, Stream stream, std::vector<Module> modules);
  // One more of them, of which it is known that it has this kernel. It is looked for there and nowhere else.
  void add(Module module, const std::string& kernel) { module_of_kernel_.emplace(kernel, module); }
  // Waits; errors of what was queued are dropped.
  ~DriverQueue() override;

  std::string device() const override { return driver_.device_name(stream_.device); }
  void launch(const std::string& kernel, const LaunchShape& shape, std::span<const std::byte> arguments) override;
  void run_on_host(const std::string& name, std::function<void()> function) override;
  void call_library(const std::string& function, std::span<const std::byte> arguments) override;
  // What does the calls of that function. It goes before the queue does, when nothing queued is left.
  void add_library(const std::string& function, std::unique_ptr<DeviceLibrary> library) {
    libraries_[function] = std::move(library);
  }
  // Lets them go before their device is reset.
  void close_libraries() { libraries_.clear(); }

  // Waits for all that was queued. Throws what the first failed host function threw, or a DeviceError.
  void synchronize();

  struct Failure {  // of host functions
    std::mutex mutex;
    std::exception_ptr first;
  };
  struct HostWork {
    std::function<void()> function;
    Failure& failure;
  };
  struct Given {
    std::vector<std::unique_ptr<HostWork>> host_work;
    std::string form;  // names of kernels and host functions, in order
    std::int64_t nodes = 0;
  };
  // What the queue was given, captured instead of run. It must outlive what is launched of the graph.
  struct Recording {
    Owner<GraphObject> graph;
    Given given;
  };
  // Captures what `give` gives to the queue. It is called twice: code is looked up, and loaded by the driver, before
  // the capture begins. What is thrown inside ends the capture, and the queue goes on.
  Recording record(const std::function<void()>& give);
  // Kernels that were launched, or captured, so far.
  std::int64_t launches() const { return launches_; }
  // The same of calls of libraries.
  std::int64_t library_calls() const { return library_calls_; }
  // Keeps what a recording's last launches still need until the queue was waited for.
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
  std::vector<std::unique_ptr<HostWork>> host_work_;  // that may still be to be done
  bool only_looks_up_ = false;                        // what is given, before it is captured
  Given* captured_ = nullptr;                         // while something is captured
  std::int64_t launches_ = 0, library_calls_ = 0;
  std::map<std::string, std::unique_ptr<DeviceLibrary>> libraries_;  // by function
};

}  // namespace weft::cuda
