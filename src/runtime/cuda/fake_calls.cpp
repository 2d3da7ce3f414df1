#include "runtime/cuda/fake_calls.h"

#include <algorithm>

#include <fmt/core.h>

#include "base/error.h"

namespace weft::cuda {
namespace {

struct StatusName {
  Status status;
  const char* name;
};

constexpr StatusName kStatusNames[] = {
    {Status::invalid_value, "CUDA_ERROR_INVALID_VALUE, invalid argument"},
    {Status::out_of_memory, "CUDA_ERROR_OUT_OF_MEMORY, out of memory"},
    {Status::invalid_device, "CUDA_ERROR_INVALID_DEVICE, invalid device ordinal"},
    {Status::invalid_image, "CUDA_ERROR_INVALID_IMAGE, device kernel image is invalid"},
    {Status::invalid_context, "CUDA_ERROR_INVALID_CONTEXT, invalid device context"},
    {Status::no_binary_for_gpu, "CUDA_ERROR_NO_BINARY_FOR_GPU, no kernel image is available for the device"},
    {Status::invalid_ptx, "CUDA_ERROR_INVALID_PTX, a PTX JIT compilation failed"},
    {Status::unsupported_ptx_version,
     "CUDA_ERROR_UNSUPPORTED_PTX_VERSION, the provided PTX was compiled with an unsupported toolchain."},
    {Status::invalid_handle, "CUDA_ERROR_INVALID_HANDLE, invalid resource handle"},
    {Status::illegal_state, "CUDA_ERROR_ILLEGAL_STATE, the operation cannot be performed in the present state"},
    {Status::not_found, "CUDA_ERROR_NOT_FOUND, named symbol not found"},
    {Status::not_ready, "CUDA_ERROR_NOT_READY, device not ready"},
    {Status::illegal_address, "CUDA_ERROR_ILLEGAL_ADDRESS, an illegal memory access was encountered"},
    {Status::launch_failed, "CUDA_ERROR_LAUNCH_FAILED, unspecified launch failure"},
    {Status::not_supported, "CUDA_ERROR_NOT_SUPPORTED, operation not supported"},
    {Status::capture_unsupported, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, not permitted when stream is capturing"},
    {Status::capture_invalidated, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, failed due to a previous error in capture"},
    {Status::capture_merge, "CUDA_ERROR_STREAM_CAPTURE_MERGE, would result in a merge of separate captures"},
    {Status::capture_unmatched, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, capture was not begun in this stream"},
    {Status::capture_unjoined, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED, capturing has unjoined work"},
    {Status::capture_isolation, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION, dependency on uncaptured work"},
    {Status::capture_implicit, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, would depend on a capture in the default stream"},
    {Status::captured_event, "CUDA_ERROR_CAPTURED_EVENT, not permitted on an event last recorded in a capture"},
    {Status::capture_wrong_thread, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, not the thread that began the capture"},
    {Status::update_failure, "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, the graph update was not performed"},
};

}  // namespace

FakeCalls::FakeCalls(FakeSettings settings)
    : settings_(std::move(settings)),
      queue_(settings_.seed, settings_.is_late, [this](const FakeOperation& operation) { run(operation); }),
      devices_(static_cast<std::size_t>(settings_.devices)) {
  for (int device = 0; device < settings_.devices; ++device) {
    StreamObject& stream = devices_[static_cast<std::size_t>(device)].default_stream;
    stream = {.device = device, .is_default = true};
  }
}

FakeCalls::~FakeCalls() = default;

std::string FakeCalls::explain(Status status) {
  const std::lock_guard lock(mutex_);
  const auto* found = std::find_if(std::begin(kStatusNames), std::end(kStatusNames),
                                   [&](const StatusName& row) { return row.status == status; });
  std::string text = found == std::end(kStatusNames) ? fmt::format("error {}", static_cast<int>(status)) : found->name;
  const std::string& words = thread_->words;
  return words.empty() ? text : text + ": " + words;
}

// Host functions run under the lock, so they must not call the driver.
FakeCalls::Call FakeCalls::lock_calls() {
  CHECK(!thread_->is_in_host_function, "a host function called the driver");
  return Call(*this);
}

FakeCalls::Call FakeCalls::begin_call() {
  thread_->words.clear();
  return lock_calls();
}

Status FakeCalls::answer(Status status, std::string words) {
  thread_->words = std::move(words);
  return status;
}

Status FakeCalls::current_device(int& device) {
  const Thread& thread = *thread_;
  if (!thread.device || thread.resets != devices_[static_cast<std::size_t>(*thread.device)].resets)
    return answer(Status::invalid_context, "no device is current on the thread");
  device = *thread.device;
  return fault_of(device);
}

Status FakeCalls::fault_of(int device) {
  const Device& on = devices_[static_cast<std::size_t>(device)];
  return on.fault == Status::success ? Status::success : answer(on.fault, on.fault_words);
}

Status FakeCalls::check_stream(const StreamObject* stream) {
  int device = 0;
  if (const Status status = current_device(device); status == Status::invalid_context) return status;
  if (stream->device != device)
    return answer(Status::invalid_context,
                  fmt::format("the stream is of device {}, but current is {}", stream->device, device));
  return fault_of(device);
}

Status FakeCalls::forget(const void* object) {
  const auto found = objects_.find(object);
  if (found == objects_.end()) return Status::invalid_value;
  const int device = found->second.first;
  objects_.erase(found);
  return fault_of(device);
}

// -- devices

Status FakeCalls::count_devices(int& count) {
  count = settings_.devices;
  return Status::success;
}

Status FakeCalls::read_facts(int device, DeviceFacts& facts) {
  facts = {.name = fmt::format("fake device {}", device),
           .compute_capability = settings_.compute_capability,
           .driver_version = settings_.driver_version,
           .multiprocessors = settings_.multiprocessors,
           .threads_per_block = 1024,
           .shared_bytes = 227 << 10,
           .memory_bytes = static_cast<std::int64_t>(settings_.memory_bytes),
           .level_two_bytes = 50 << 20,
           .allocates_in_streams = true,
           .host_reads_memory = !settings_.hides_memory};
  return Status::success;
}

Status FakeCalls::set_current(int device) {
  const auto lock = begin_call();
  if (device < 0 || device >= settings_.devices) return Status::invalid_device;
  thread_->device = device;
  thread_->resets = devices_[static_cast<std::size_t>(device)].resets;
  return Status::success;
}

Status FakeCalls::count_memory(MemoryCounts& counts) {
  const auto lock = lock_calls();  // not begin_call(): keeps the error text of the call that needs the free bytes
  int device = 0;
  if (const Status status = current_device(device); status != Status::success) return status;
  counts = {.free = free_bytes(device), .total = settings_.memory_bytes};
  return Status::success;
}

Status FakeCalls::reset(int device) {
  const auto lock = begin_call();
  queue_.drop_device(device);
  for (const std::shared_ptr<FakeCapture>& capture : std::vector(captures_))
    for (const StreamObject* member : capture->members)
      if (member->device == device) {
        leave(*capture);
        break;
      }
  std::erase_if(streams_, [&](const StreamObject* stream) { return stream->device == device; });
  std::erase_if(objects_, [&](const auto& entry) { return entry.second.first == device; });
  memory_.remove_device(device);
  Device& on = devices_[static_cast<std::size_t>(device)];
  const std::uint64_t resets = on.resets + 1;
  const Status fault = settings_.resets_mend_faults ? Status::success : on.fault;
  const std::string words = on.fault_words;
  on = Device{};
  on.default_stream = {.device = device, .is_default = true};
  on.resets = resets;
  if (fault != Status::success) break_device(device, fault, words);
  return fault_of(device);
}

Status FakeCalls::synchronize_device() {
  const auto lock = begin_call();
  int device = 0;
  if (const Status status = current_device(device); status != Status::success) return status;
  for (const std::shared_ptr<FakeCapture>& capture : captures_)
    for (const StreamObject* member : capture->members)
      if (member->device == device)
        return invalidate(*capture, Status::capture_unsupported, "the host waits for a device in a capture");
  queue_.run_device(device);
  return check_memory(device);
}

// Checks the bytes that no one may write, guard bytes and released memory. No work of the device may be running.
Status FakeCalls::check_memory(int device) {
  if (const std::string spoiled = memory_.spoiled(device); !spoiled.empty())
    break_device(device, Status::illegal_address, spoiled);
  return fault_of(device);
}

// -- streams

Status FakeCalls::create_stream(bool joins_default, StreamObject*& stream) {
  const auto lock = begin_call();
  int device = 0;
  if (const Status status = current_device(device); status != Status::success) return status;
  auto made = std::make_unique<StreamObject>();
  made->device = device;
  made->joins_default = joins_default;
  stream = keep(device, std::move(made));
  streams_.push_back(stream);
  return Status::success;
}

Status FakeCalls::default_stream(int device, StreamObject*& stream) {
  stream = &devices_[static_cast<std::size_t>(device)].default_stream;
  return Status::success;
}

Status FakeCalls::destroy_stream(StreamObject* stream) {
  const auto lock = begin_call();
  if (stream->capture != nullptr)
    return invalidate(*stream->capture, Status::capture_unsupported, "a stream is destroyed in a capture");
  return fault_of(stream->device);
}

// The work that must be done before the next work of a stream.
std::vector<WorkPointer> FakeCalls::order_of(const StreamObject& stream) const {
  std::vector<WorkPointer> works = stream.after;
  const auto add = [&](const StreamObject& other) {
    works.insert(works.end(), other.after.begin(), other.after.end());
  };
  if (stream.joins_default) add(devices_[static_cast<std::size_t>(stream.device)].default_stream);
  if (!stream.is_default) return works;
  for (const StreamObject* other : streams_)
    if (other->device == stream.device && other->joins_default) add(*other);
  return works;
}

Status FakeCalls::enqueue(StreamObject* stream, FakeOperation operation) {
  if (const Status status = check_stream(stream); status != Status::success) return status;
  operation.device = stream->device;
  operation.stream = stream;
  if (stream->capture != nullptr) {
    if (const Status status = check_capture(*stream->capture); status != Status::success) return status;
    auto& nodes = stream->capture->graph.nodes;
    nodes.push_back({std::move(operation), stream->captured_after});
    stream->captured_after = {nodes.size() - 1};
    return Status::success;
  }
  if (const Status status = check_default_stream(*stream); status != Status::success) return status;
  stream->after = {queue_.add(std::move(operation), order_of(*stream))};
  queue_.run_some();
  return Status::success;
}

Status FakeCalls::run_until(const std::vector<WorkPointer>& works, int device) {
  for (const WorkPointer& work : works) queue_.run_until(work);
  return check_memory(device);
}

Status FakeCalls::synchronize_stream(StreamObject* stream) {
  const auto lock = begin_call();
  if (const Status status = check_stream(stream); status != Status::success) return status;
  if (stream->capture != nullptr)
    return invalidate(*stream->capture, Status::capture_unsupported, "the host waits for a stream in a capture");
  if (const Status status = check_default_stream(*stream); status != Status::success) return status;
  return run_until(stream->is_default ? order_of(*stream) : stream->after, stream->device);
}

// -- events

Status FakeCalls::create_event(bool is_timed, EventObject*& event) {
  const auto lock = begin_call();
  int device = 0;
  if (const Status status = current_device(device); status != Status::success) return status;
  auto made = std::make_unique<EventObject>();
  made->device = device;
  made->is_timed = is_timed;
  event = keep(device, std::move(made));
  return Status::success;
}

Status FakeCalls::destroy_event(EventObject* event) {
  const auto lock = begin_call();
  return forget(event);
}

Status FakeCalls::record_event(EventObject* event, StreamObject* stream) {
  const auto lock = begin_call();
  if (stream->capture != nullptr) {
    if (const Status status = check_stream(stream); status != Status::success) return status;
    if (const Status status = check_capture(*stream->capture); status != Status::success) return status;
    event->works.clear();
    event->capture = stream->capture;
    event->nodes = stream->captured_after;
    return Status::success;
  }
  if (const Status status = enqueue(stream, {}); status != Status::success) return status;
  event->capture = nullptr;
  event->nodes.clear();
  event->works = stream->after;
  return Status::success;
}

Status FakeCalls::wait_for_event(StreamObject* stream, EventObject* event) {
  const auto lock = begin_call();
  if (const Status status = check_stream(stream); status != Status::success) return status;
  if (event->capture != nullptr) return wait_for_captured(stream, event);
  if (event->works.empty()) return Status::success;
  if (stream->capture != nullptr)
    return invalidate(*stream->capture, Status::capture_isolation,
                      "a capture waits for an event that was recorded outside of it");
  stream->after.insert(stream->after.end(), event->works.begin(), event->works.end());
  return Status::success;
}

Status FakeCalls::query_event(EventObject* event) {
  const auto lock = begin_call();
  if (const Status fault = fault_of(event->device); fault != Status::success) return fault;
  if (event->capture != nullptr)
    return invalidate(*event->capture, Status::captured_event, "the host asks for an event of a capture");
  queue_.run_some();
  const bool is_done =
      std::all_of(event->works.begin(), event->works.end(), [](const WorkPointer& work) { return work->is_done; });
  return is_done ? fault_of(event->device) : Status::not_ready;
}

Status FakeCalls::synchronize_event(EventObject* event) {
  const auto lock = begin_call();
  if (const Status fault = fault_of(event->device); fault != Status::success) return fault;
  if (event->capture != nullptr)
    return invalidate(*event->capture, Status::captured_event, "the host waits for an event of a capture");
  return run_until(event->works, event->device);
}

Status FakeCalls::measure_time(EventObject* from, EventObject* to, float& milliseconds) {
  const auto lock = begin_call();
  if (const Status fault = fault_of(from->device); fault != Status::success) return fault;
  std::uint64_t done_at[2] = {};
  for (const int end : {0, 1}) {
    const EventObject& event = end == 0 ? *from : *to;
    if (!event.is_timed) return answer(Status::invalid_handle, "an event was made without timing");
    if (event.capture != nullptr) return answer(Status::invalid_handle, "an event was recorded in a capture");
    if (event.works.empty()) return answer(Status::invalid_handle, "an event was never recorded");
    for (const WorkPointer& work : event.works) {
      if (!work->is_done) return Status::not_ready;
      done_at[end] = std::max(done_at[end], work->done_at);
    }
  }
  constexpr float kMillisecondsOfWork = 1e-3f;
  milliseconds = (static_cast<float>(done_at[1]) - static_cast<float>(done_at[0])) * kMillisecondsOfWork;
  return Status::success;
}

std::unique_ptr<Driver> open_fake_device(FakeSettings settings) {
  return std::make_unique<Driver>(DeviceType::fake_cuda, std::make_unique<FakeCalls>(std::move(settings)));
}

}  // namespace weft::cuda
