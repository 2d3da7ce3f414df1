#include "runtime/cuda/driver.h"

#include <algorithm>
#include <iterator>

#include <fmt/core.h>

#include "runtime/cuda/driver_objects.h"

namespace weft::cuda {

bool breaks_device(Status status) {
  // The faults without a name in Status: time-out, assertion, and the hardware's stack, instruction, alignment, address
  // space and program counter.
  constexpr int kFaults[] = {702, 710, 714, 715, 716, 717, 718};
  if (status == Status::illegal_address || status == Status::launch_failed) return true;
  return std::find(std::begin(kFaults), std::end(kFaults), static_cast<int>(status)) != std::end(kFaults);
}

std::string cuda_version_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

Driver::Driver(DeviceType type, std::unique_ptr<DriverCalls> calls) : type_(type), calls_(std::move(calls)) {
  int count = 0;
  check(calls_->count_devices(count), "cuDeviceGetCount", 0);
  for (int device = 0; device < count; ++device) {
    DeviceFacts facts;
    check(calls_->read_facts(device, facts), "cuDeviceGetAttribute", device);
    devices_.push_back(std::move(facts));
  }
}

Driver::~Driver() = default;

// -- handles

StreamObject* Driver::find_current(Stream stream, const char* call) {
  StreamObject* object = find(stream, call);
  if (const int device = current_device(); device != stream.device)
    refuse(call, stream.device, fmt::format("its stream is of this device, but current is {}", device_name(device)));
  return object;
}

// -- errors

void Driver::check_device(int device, const char* call) const {
  if (device < 0 || device >= device_count())
    refuse(call, device, fmt::format("there is no such device, there are {}", device_count()));
}

void Driver::check(Status status, const char* call, int device, std::optional<std::size_t> asked) {
  if (status == Status::success) return;
  std::string message = fmt::format("[{}] {}: {}", device_name(device), call, calls_->explain(status));
  if (asked) message += fmt::format("; asked {} bytes", *asked);
  MemoryCounts counts;
  if (status == Status::out_of_memory && calls_->count_memory(counts) == Status::success)
    message += fmt::format("{} {} bytes free of {}", asked ? "," : ";", counts.free, counts.total);
  if (breaks_device(status)) {
    const std::lock_guard lock(mutex_);
    last_errors_.try_emplace(device, message);
  }
  throw CudaError(status, message);
}

void Driver::refuse(const char* call, int device, const std::string& why) const {
  throw CudaError(Status::invalid_value, fmt::format("[{}] {}: {}", device_name(device), call, why));
}

// -- devices

const DeviceFacts& Driver::facts(int device) const {
  check_device(device, "facts");
  return devices_[static_cast<std::size_t>(device)];
}

std::string Driver::device_name(int device) const { return device_text({type_, device}); }

MemoryCounts Driver::memory(int device) {
  const OnDevice on_device(*this, device, "cuMemGetInfo");
  MemoryCounts counts;
  check(calls_->count_memory(counts), "cuMemGetInfo", device);
  return counts;
}

void Driver::synchronize_device(int device) {
  const OnDevice on_device(*this, device, "cuCtxSynchronize");
  check(calls_->synchronize_device(), "cuCtxSynchronize", device);
}

std::string Driver::last_error(int device) const {
  check_device(device, "last_error");
  const std::lock_guard lock(mutex_);
  const auto found = last_errors_.find(device);
  return found == last_errors_.end() ? "" : found->second;
}

void Driver::reset(int device) {
  check_device(device, "cuDevicePrimaryCtxReset");
  {
    const std::lock_guard lock(mutex_);
    forget<StreamObject>(device);
    forget<EventObject>(device);
    forget<ModuleObject>(device);
    forget<FunctionObject>(device);
    forget<GraphObject>(device);
    forget<ExecutableObject>(device);
    last_errors_.erase(device);
  }
  const Status status = calls_->reset(device);
  const std::lock_guard lock(mutex_);
  ++resets_;
  if (status == Status::success) return;
  const std::string message =
      fmt::format("[{}] cuDevicePrimaryCtxReset: {}{}", device_name(device), calls_->explain(status),
                  breaks_device(status) ? ". After a kernel failed, the driver refuses the device to this process: "
                                          "start the process again"
                                        : "");
  if (breaks_device(status)) last_errors_[device] = message;
  throw CudaError(status, message);
}

// -- what is current

// Sets the backend's device when a thread first asks, and again after a reset, which takes the context of every thread.
int Driver::current_device() {
  Current& now = *current_;
  std::uint64_t resets = 0;
  {
    const std::lock_guard lock(mutex_);
    resets = resets_;
  }
  if (now.resets == resets) return now.device;
  check(calls_->set_current(now.device), "cuCtxSetCurrent", now.device);
  now.resets = resets;
  return now.device;
}

Stream Driver::current_stream(int device) {
  check_device(device, "current_stream");
  const auto found = current_->streams.find(device);
  if (found == current_->streams.end()) return default_stream(device);
  const std::lock_guard lock(mutex_);
  return streams_.contains(found->second.number) ? found->second : default_stream(device);
}

void Driver::make_current(Stream stream) {
  find(stream, "make_current");
  if (current_device() != stream.device) check(calls_->set_current(stream.device), "cuCtxSetCurrent", stream.device);
  Current& now = *current_;
  now.device = stream.device;
  now.streams[stream.device] = stream;
}

void Driver::restore(int device, Stream stream) noexcept {
  Current& now = *current_;
  now.streams[stream.device] = stream;
  if (now.device != device) calls_->set_current(device);
  now.device = device;
}

// -- streams

Stream Driver::default_stream(int device) const {
  check_device(device, "default_stream");
  return {device, 0};
}

Stream Driver::create_stream(int device, bool joins_default) {
  const OnDevice on_device(*this, device, "cuStreamCreate");
  StreamObject* stream = nullptr;
  check(calls_->create_stream(joins_default, stream), "cuStreamCreate", device);
  return add(device, stream);
}

void Driver::destroy(Stream stream) {
  constexpr const char* kCall = "cuStreamDestroy";
  const OnDevice on_device(*this, stream.device, kCall);
  bool is_capturing = false;
  check(calls_->query_capture(find(stream, kCall), is_capturing), kCall, stream.device);
  if (is_capturing) refuse(kCall, stream.device, "its stream captures");
  check(calls_->destroy_stream(take(stream, kCall)), kCall, stream.device);
}

void Driver::synchronize(Stream stream) {
  const OnDevice on_device(*this, stream.device, "cuStreamSynchronize");
  check(calls_->synchronize_stream(find(stream, "cuStreamSynchronize")), "cuStreamSynchronize", stream.device);
}

// -- events

Event Driver::create_event(int device, bool is_timed) {
  const OnDevice on_device(*this, device, "cuEventCreate");
  EventObject* event = nullptr;
  check(calls_->create_event(is_timed, event), "cuEventCreate", device);
  return add(device, event);
}

void Driver::destroy(Event event) {
  const OnDevice on_device(*this, event.device, "cuEventDestroy");
  check(calls_->destroy_event(take(event, "cuEventDestroy")), "cuEventDestroy", event.device);
}

void Driver::record(Event event, Stream stream) {
  constexpr const char* kCall = "cuEventRecord";
  StreamObject* on = find_current(stream, kCall);
  if (event.device != stream.device) refuse(kCall, stream.device, "its event is of " + device_name(event.device));
  check(calls_->record_event(find(event, kCall), on), kCall, stream.device);
}

void Driver::wait(Stream stream, Event event) {
  constexpr const char* kCall = "cuStreamWaitEvent";
  check(calls_->wait_for_event(find_current(stream, kCall), find(event, kCall)), kCall, stream.device);
}

bool Driver::is_done(Event event) {
  const OnDevice on_device(*this, event.device, "cuEventQuery");
  const Status status = calls_->query_event(find(event, "cuEventQuery"));
  if (status == Status::not_ready) return false;
  check(status, "cuEventQuery", event.device);
  return true;
}

void Driver::synchronize(Event event) {
  const OnDevice on_device(*this, event.device, "cuEventSynchronize");
  check(calls_->synchronize_event(find(event, "cuEventSynchronize")), "cuEventSynchronize", event.device);
}

float Driver::milliseconds_between(Event from, Event to) {
  constexpr const char* kCall = "cuEventElapsedTime";
  const OnDevice on_device(*this, from.device, kCall);
  if (from.device != to.device) refuse(kCall, from.device, "one of its events is of " + device_name(to.device));
  float milliseconds = 0;
  check(calls_->measure_time(find(from, kCall), find(to, kCall), milliseconds), kCall, from.device);
  return milliseconds;
}

}  // namespace weft::cuda
