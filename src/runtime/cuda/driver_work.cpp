// The work that Driver queues on streams, except events: memory, kernels and captured graphs.

#include <algorithm>

#include <fmt/core.h>

#include "runtime/cuda/driver.h"
#include "runtime/cuda/driver_objects.h"

namespace weft::cuda {
namespace {

bool is_about_image(Status status) {
  return status == Status::invalid_image || status == Status::no_binary_for_gpu || status == Status::invalid_ptx ||
         status == Status::unsupported_ptx_version;
}

// "PTX 8.5 for sm_90a", read from its first directives, or "no PTX" for any other image.
std::string image_text(std::span<const std::byte> image) {
  constexpr std::size_t kFront = 4096;  // comments may come before the directives
  const std::string_view text(reinterpret_cast<const char*>(image.data()), std::min(image.size(), kFront));
  const auto word_after = [&](std::string_view directive) {
    const std::size_t at = text.find(directive);
    const std::string_view rest = at == std::string_view::npos ? "" : text.substr(at + directive.size());
    return rest.substr(0, rest.find_first_of(" ,;\t\r\n"));
  };
  const std::string_view version = word_after(".version "), target = word_after(".target ");
  return version.empty() || target.empty() ? "no PTX" : fmt::format("PTX {} for {}", version, target);
}

}  // namespace

// -- memory

void* Driver::allocate(Stream stream, std::size_t bytes) {
  constexpr const char* kCall = "cuMemAllocAsync";
  StreamObject* on = find_current(stream, kCall);
  void* address = nullptr;
  if (bytes > 0) check(calls_->allocate(on, bytes, address), kCall, stream.device, bytes);
  return address;
}

void Driver::release(Stream stream, void* address) {
  constexpr const char* kCall = "cuMemFreeAsync";
  StreamObject* on = find_current(stream, kCall);
  if (address != nullptr) check(calls_->release(on, address), kCall, stream.device);
}

void* Driver::allocate_host(int device, std::size_t bytes) {
  const OnDevice on_device(*this, device, "cuMemHostAlloc");
  void* address = nullptr;
  if (bytes > 0) check(calls_->allocate_host(bytes, address), "cuMemHostAlloc", device, bytes);
  return address;
}

void Driver::release_host(int device, void* address) {
  const OnDevice on_device(*this, device, "cuMemFreeHost");
  if (address != nullptr) check(calls_->release_host(address), "cuMemFreeHost", device);
}

std::optional<int> Driver::device_of(const void* address) {
  const int asked_on = current_device();
  int device = 0;
  const Status status = calls_->find_device(address, device);
  if (status == Status::invalid_value) return std::nullopt;
  check(status, "cuPointerGetAttribute", asked_on);
  return device;
}

void Driver::copy(Stream stream, void* to, const void* from, std::size_t bytes) {
  constexpr const char* kCall = "cuMemcpyAsync";
  StreamObject* on = find_current(stream, kCall);
  if (bytes > 0) check(calls_->copy(on, to, from, bytes), kCall, stream.device, bytes);
}

void Driver::fill(Stream stream, void* to, std::uint8_t value, std::size_t bytes) {
  constexpr const char* kCall = "cuMemsetD8Async";
  StreamObject* on = find_current(stream, kCall);
  if (bytes > 0) check(calls_->fill(on, to, value, bytes), kCall, stream.device, bytes);
}

// -- device code

Module Driver::load_module(int device, std::span<const std::byte> image) {
  const OnDevice on_device(*this, device, "cuModuleLoadData");
  if (image.empty()) refuse("cuModuleLoadData", device, "it wants an image, but is given 0 bytes");
  ModuleObject* module = nullptr;
  const Status status = calls_->load_module(image, module);
  try {
    check(status, "cuModuleLoadData", device, image.size());
  } catch (const CudaError& error) {
    if (!is_about_image(status)) throw;
    // The driver's own error names neither the image that it was given nor the images that it accepts.
    const DeviceFacts& of = facts(device);
    const std::string driver =
        of.driver_version == 0 ? "" : ", its driver for CUDA " + cuda_version_text(of.driver_version);
    throw CudaError(status, fmt::format("{}; given {}, the device is sm_{}{}", error.what(), image_text(image),
                                        of.compute_capability, driver));
  }
  return add(device, module);
}

void Driver::destroy(Module module) {
  const OnDevice on_device(*this, module.device, "cuModuleUnload");
  ModuleObject* object = take(module, "cuModuleUnload");
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [function, owner] : module_of_function_)
      if (owner == module.number) functions_.erase(function);
    std::erase_if(module_of_function_, [&](const auto& entry) { return entry.second == module.number; });
  }
  check(calls_->unload_module(object), "cuModuleUnload", module.device);
}

std::optional<Function> Driver::look_up_function(Module module, const std::string& name, std::size_t argument_bytes,
                                                 std::uint32_t shared_bytes) {
  const std::string call = "cuModuleGetFunction " + name;
  const OnDevice on_device(*this, module.device, call.c_str());
  FunctionObject* object = nullptr;
  const Status status = calls_->find_function(find(module, call.c_str()), name, argument_bytes, shared_bytes, object);
  if (status == Status::not_found) return std::nullopt;
  check(status, call.c_str(), module.device);
  const Function function = add(module.device, object);
  const std::lock_guard lock(mutex_);
  module_of_function_[function.number] = module.number;
  return function;
}

Function Driver::find_function(Module module, const std::string& name, std::size_t argument_bytes,
                               std::uint32_t shared_bytes) {
  const std::optional<Function> found = look_up_function(module, name, argument_bytes, shared_bytes);
  if (!found) check(Status::not_found, ("cuModuleGetFunction " + name).c_str(), module.device);
  return *found;
}

void Driver::launch(Stream stream, Function function, const LaunchSize& size, std::span<const std::byte> arguments) {
  constexpr const char* kCall = "cuLaunchKernel";
  StreamObject* on = find_current(stream, kCall);
  FunctionObject* object = find(function, kCall);
  if (function.device != stream.device)
    refuse(kCall, stream.device, "its function is of " + device_name(function.device));
  check(calls_->launch(on, object, size, arguments), kCall, stream.device);
}

void Driver::launch_host(Stream stream, HostFunction function, void* data) {
  constexpr const char* kCall = "cuLaunchHostFunc";
  check(calls_->launch_host(find_current(stream, kCall), function, data), kCall, stream.device);
}

// -- captured graphs

void Driver::begin_capture(Stream stream) {
  constexpr const char* kCall = "cuStreamBeginCapture";
  check(calls_->begin_capture(find_current(stream, kCall)), kCall, stream.device);
}

CapturedGraph Driver::end_capture(Stream stream) {
  constexpr const char* kCall = "cuStreamEndCapture";
  GraphObject* graph = nullptr;
  check(calls_->end_capture(find_current(stream, kCall), graph), kCall, stream.device);
  return add(stream.device, graph);
}

bool Driver::is_capturing(Stream stream) {
  const OnDevice on_device(*this, stream.device, "cuStreamIsCapturing");
  bool is_capturing = false;
  check(calls_->query_capture(find(stream, "cuStreamIsCapturing"), is_capturing), "cuStreamIsCapturing", stream.device);
  return is_capturing;
}

void Driver::abandon_capture(Stream stream) noexcept {
  try {
    StreamObject* on = find(stream, "cuStreamEndCapture");
    GraphObject* graph = nullptr;
    if (calls_->end_capture(on, graph) == Status::success && graph != nullptr) calls_->destroy_graph(graph);
  } catch (const DeviceError&) {  // the stream, and its capture with it, is gone
  }
}

std::size_t Driver::node_count(CapturedGraph graph) {
  std::size_t count = 0;
  check(calls_->count_nodes(find(graph, "cuGraphGetNodes"), count), "cuGraphGetNodes", graph.device);
  return count;
}

void Driver::destroy(CapturedGraph graph) {
  check(calls_->destroy_graph(take(graph, "cuGraphDestroy")), "cuGraphDestroy", graph.device);
}

ExecutableGraph Driver::instantiate(CapturedGraph graph) {
  constexpr const char* kCall = "cuGraphInstantiate";
  const OnDevice on_device(*this, graph.device, kCall);
  ExecutableObject* executable = nullptr;
  check(calls_->instantiate(find(graph, kCall), executable), kCall, graph.device);
  return add(graph.device, executable);
}

Verdict Driver::update(ExecutableGraph executable, CapturedGraph graph) {
  constexpr const char* kCall = "cuGraphExecUpdate";
  const OnDevice on_device(*this, executable.device, kCall);
  std::string refusal;
  const Status status = calls_->update(find(executable, kCall), find(graph, kCall), refusal);
  if (status == Status::update_failure) return Verdict::no(refusal);
  check(status, kCall, executable.device);
  return Verdict::yes();
}

ExecutableObject* Driver::find_for(Stream stream, ExecutableGraph executable, const char* call) {
  ExecutableObject* const object = find(executable, call);
  if (executable.device != stream.device)
    refuse(call, stream.device, "its graph is of " + device_name(executable.device));
  return object;
}

void Driver::upload(Stream stream, ExecutableGraph executable) {
  constexpr const char* kCall = "cuGraphUpload";
  StreamObject* on = find_current(stream, kCall);
  check(calls_->upload_graph(on, find_for(stream, executable, kCall)), kCall, stream.device);
}

void Driver::launch(Stream stream, ExecutableGraph executable) {
  constexpr const char* kCall = "cuGraphLaunch";
  StreamObject* on = find_current(stream, kCall);
  check(calls_->launch_graph(on, find_for(stream, executable, kCall)), kCall, stream.device);
}

void Driver::destroy(ExecutableGraph executable) {
  const OnDevice on_device(*this, executable.device, "cuGraphExecDestroy");
  check(calls_->destroy_executable(take(executable, "cuGraphExecDestroy")), "cuGraphExecDestroy", executable.device);
}

std::size_t Driver::graph_memory_bytes(int device) {
  check_device(device, "cuDeviceGetGraphMemAttribute");
  std::size_t bytes = 0;
  check(calls_->count_graph_memory(device, bytes), "cuDeviceGetGraphMemAttribute", device);
  return bytes;
}

}  // namespace weft::cuda
