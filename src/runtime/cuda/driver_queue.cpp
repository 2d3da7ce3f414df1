#include "runtime/cuda/driver_queue.h"

#include "runtime/cuda/current_guard.h"

namespace weft::cuda {

namespace {

void run_host_work(void* data) {
  const auto& work = *static_cast<const DriverQueue::HostWork*>(data);
  {
    const std::lock_guard lock(work.failure.mutex);
    if (work.failure.first != nullptr) return;
  }
  try {
    work.function();
  } catch (...) {
    const std::lock_guard lock(work.failure.mutex);
    work.failure.first = std::current_exception();
  }
}

}  // namespace

DriverQueue::DriverQueue(Driver& driver, Stream stream, std::vector<Module> modules)
    : driver_(driver), stream_(stream), modules_(std::move(modules)) {}

DriverQueue::~DriverQueue() { wait_for_device(); }

// Waits in any state of the stream, because queued host functions must not run after this.
void DriverQueue::wait_for_device() noexcept {
  try {
    driver_.synchronize_device(stream_.device);
  } catch (const DeviceError&) {  // a broken device runs nothing more
  }
}

Function DriverQueue::function_of(const std::string& kernel, std::size_t argument_bytes) {
  const auto known = functions_.find(kernel);
  if (known != functions_.end()) return known->second;
  const auto own = module_of_kernel_.find(kernel);
  if (own != module_of_kernel_.end())
    return functions_[kernel] = driver_.find_function(own->second, kernel, argument_bytes);
  for (const Module module : modules_)
    if (const auto found = driver_.look_up_function(module, kernel, argument_bytes)) return functions_[kernel] = *found;
  throw CudaError(Status::not_found, fmt::format("[{}] cuModuleGetFunction {}: CUDA_ERROR_NOT_FOUND in each of the {} "
                                                 "modules that were loaded",
                                                 driver_.device_name(stream_.device), kernel, modules_.size()));
}

void DriverQueue::launch(const std::string& kernel, const LaunchShape& shape, std::span<const std::byte> arguments) {
  const CurrentGuard guard(driver_, stream_);
  const Function function = function_of(kernel, arguments.size());
  if (only_looks_up_) return;
  try {
    driver_.launch(stream_, function, {.blocks = {shape.blocks, shape.block_rows, 1}, .threads = {shape.threads, 1, 1}},
                   arguments);
  } catch (const CudaError& error) {
    throw CudaError(error.status(), fmt::format("{} (kernel {})", error.what(), kernel));
  }
  ++launches_;
  if (captured_ != nullptr) captured_->form += kernel + " ";
}

void DriverQueue::call_library(const std::string& function, std::span<const std::byte> arguments) {
  const auto found = libraries_.find(function);
  if (found == libraries_.end())
    fail_device("[{}] no library that has {} was opened", driver_.device_name(stream_.device), function);
  const CurrentGuard guard(driver_, stream_);
  if (captured_ == nullptr) found->second->prepare(stream_, arguments);
  if (only_looks_up_) return;
  found->second->call(stream_, arguments);
  ++library_calls_;
  if (captured_ != nullptr) captured_->form += function + " ";
}

void DriverQueue::run_on_host(const std::string& name, std::function<void()> function) {
  if (only_looks_up_) return;
  const CurrentGuard guard(driver_, stream_);
  auto& kept = captured_ == nullptr ? host_work_ : captured_->host_work;
  kept.push_back(std::unique_ptr<HostWork>(new HostWork{std::move(function), failure_}));
  try {
    driver_.launch_host(stream_, &run_host_work, kept.back().get());
  } catch (const CudaError& error) {
    kept.pop_back();
    throw CudaError(error.status(), fmt::format("{} (host function {})", error.what(), name));
  }
  if (captured_ != nullptr) captured_->form += "host:" + name + " ";
}

void DriverQueue::synchronize() {
  std::exception_ptr of_device;
  try {
    const CurrentGuard guard(driver_, stream_);
    driver_.synchronize(stream_);
  } catch (const DeviceError&) {
    of_device = std::current_exception();
    wait_for_device();
  }
  host_work_.clear();
  const std::exception_ptr of_host = std::exchange(failure_.first, nullptr);
  if (of_host != nullptr) std::rethrow_exception(of_host);
  if (of_device != nullptr) std::rethrow_exception(of_device);
}

DriverQueue::Recording DriverQueue::record(const std::function<void()>& enqueue) {
  CHECK(captured_ == nullptr, "what is given to a queue is captured once");
  const CurrentGuard guard(driver_, stream_);
  struct Leave {
    DriverQueue& queue;
    ~Leave() {
      queue.only_looks_up_ = false;
      queue.captured_ = nullptr;
      for (const auto& [function, library] : queue.libraries_) library->expect_no_more();
    }
  } const leave{*this};
  only_looks_up_ = true;
  enqueue();
  only_looks_up_ = false;
  QueuedWork work;
  CaptureScope capture(driver_, stream_);
  captured_ = &work;
  enqueue();
  Owner<GraphObject> graph = capture.end();
  work.nodes = static_cast<std::int64_t>(driver_.node_count(*graph));  // a library's call may be any number of nodes
  return {std::move(graph), std::move(work)};
}

void DriverQueue::retire(Recording&& recording) {
  for (std::unique_ptr<HostWork>& work : recording.work.host_work) host_work_.push_back(std::move(work));
  recording.work.host_work.clear();
}

}  // namespace weft::cuda
