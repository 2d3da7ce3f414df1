// Captures of the fake device, and graphs.

#include <algorithm>

#include <fmt/core.h>

#include "runtime/cuda/fake_calls.h"

namespace weft::cuda {

// -- what a capture forbids

namespace {

// Whether only a rule of captures was broken, so that the call can still be done. After other faults it has no result.
bool is_only_forbidden(Status status) {
  constexpr Status kRules[] = {Status::capture_unsupported, Status::capture_isolation, Status::capture_implicit,
                               Status::capture_merge, Status::captured_event};
  return std::find(std::begin(kRules), std::end(kRules), status) != std::end(kRules);
}

}  // namespace

Status FakeCalls::invalidate(FakeCapture& capture, Status status, const std::string& words) {
  if (!settings_.checks_captures && is_only_forbidden(status)) return Status::success;
  if (!capture.is_invalid) capture.fault = words;
  capture.is_invalid = true;
  return answer(status, words);
}

Status FakeCalls::refuse_in_capture(StreamObject* stream, const std::string& words) {
  return stream->capture != nullptr ? invalidate(*stream->capture, Status::invalid_value, words)
                                    : answer(Status::invalid_value, words);
}

Status FakeCalls::refuse_while_capturing(const std::string& words) {
  for (const std::shared_ptr<FakeCapture>& capture : captures_)
    if (capture->thread == thread_->number) return invalidate(*capture, Status::capture_unsupported, words);
  return Status::success;
}

// A default stream waits for the streams that join it, and it cannot wait for one that is in a capture.
Status FakeCalls::check_default_stream(const StreamObject& stream) {
  if (!stream.is_default) return Status::success;
  for (const std::shared_ptr<FakeCapture>& capture : captures_)
    for (const StreamObject* member : capture->members)
      if (member->device == stream.device && member->joins_default)
        return invalidate(*capture, Status::capture_implicit, "the default stream is used during a capture");
  return Status::success;
}

Status FakeCalls::check_capture(FakeCapture& capture) {
  return capture.is_invalid ? answer(Status::capture_invalidated, capture.fault) : Status::success;
}

// -- capturing

Status FakeCalls::begin_capture(StreamObject* stream) {
  const auto lock = begin_call();
  if (const Status status = check_stream(stream); status != Status::success) return status;
  if (stream->is_default) return answer(Status::capture_unsupported, "a default stream captures nothing");
  if (stream->capture != nullptr)
    return invalidate(*stream->capture, Status::illegal_state, "the stream is in a capture");
  auto capture = std::make_shared<FakeCapture>();
  capture->origin = stream;
  capture->thread = thread_->number;
  capture->members = {stream};
  capture->graph.device = stream->device;
  capture->graph.memory = std::make_shared<FakeGraphMemory>(memory_);
  stream->capture = capture;
  stream->captured_after.clear();
  captures_.push_back(std::move(capture));
  return Status::success;
}

void FakeCalls::leave(FakeCapture& capture) {
  capture.has_ended = true;
  const std::set<StreamObject*> members = std::move(capture.members);
  capture.members.clear();
  std::erase_if(captures_, [&](const std::shared_ptr<FakeCapture>& open) { return open.get() == &capture; });
  for (StreamObject* member : members) {
    member->captured_after.clear();
    member->capture = nullptr;
  }
}

// A stream that waits for an event of a capture joins it.
Status FakeCalls::wait_for_captured(StreamObject* stream, EventObject* event) {
  FakeCapture& capture = *event->capture;
  if (capture.has_ended) {
    const char* words = "the event was recorded in a capture that has ended";
    return stream->capture != nullptr ? invalidate(*stream->capture, Status::captured_event, words)
                                      : answer(Status::captured_event, words);
  }
  if (const Status status = check_capture(capture); status != Status::success) return status;
  if (stream->is_default)
    return invalidate(capture, Status::capture_implicit, "a default stream waits for an event of a capture");
  if (stream->capture != nullptr && stream->capture != event->capture) {
    static_cast<void>(invalidate(*stream->capture, Status::capture_merge, "it waits for an event of another capture"));
    return invalidate(capture, Status::capture_merge, "another capture waits for an event of it");
  }
  stream->capture = event->capture;
  capture.members.insert(stream);
  stream->captured_after.insert(stream->captured_after.end(), event->nodes.begin(), event->nodes.end());
  return Status::success;
}

namespace {

std::size_t count_reached(const GraphObject& graph, const std::vector<std::size_t>& ends) {
  std::set<std::size_t> reached;
  std::vector<std::size_t> open = ends;
  while (!open.empty()) {
    const std::size_t next = open.back();
    open.pop_back();
    if (!reached.insert(next).second) continue;
    open.insert(open.end(), graph.nodes[next].after.begin(), graph.nodes[next].after.end());
  }
  return reached.size();
}

}  // namespace

Status FakeCalls::end_capture(StreamObject* stream, GraphObject*& graph) {
  const auto lock = begin_call();
  const std::shared_ptr<FakeCapture> capture = stream->capture;
  if (capture == nullptr) return answer(Status::illegal_state, "the stream is in no capture");
  if (capture->origin != stream)
    return invalidate(*capture, Status::capture_unmatched, "it is ended on a stream that it was not begun on");
  if (capture->thread != thread_->number)
    return invalidate(*capture, Status::capture_wrong_thread, "it is ended on a thread that did not begin it");
  const std::size_t reached = count_reached(capture->graph, stream->captured_after);
  leave(*capture);
  if (const Status fault = fault_of(stream->device); fault != Status::success) return fault;
  if (const Status status = check_capture(*capture); status != Status::success) return status;
  if (reached != capture->graph.nodes.size())
    return answer(Status::capture_unjoined,
                  fmt::format("its stream waits for {} of {} nodes", reached, capture->graph.nodes.size()));
  if (!capture->graph.memory->unreleased.empty())
    return answer(Status::invalid_value, "memory that the capture allocated is not released in it");
  graph = keep(stream->device, std::make_unique<GraphObject>(std::move(capture->graph)));
  return Status::success;
}

Status FakeCalls::query_capture(StreamObject* stream, bool& is_capturing) {
  const auto lock = begin_call();
  is_capturing = stream->capture != nullptr;
  return Status::success;
}

Status FakeCalls::allocate_captured(StreamObject* stream, std::size_t bytes, void*& address) {
  FakeGraphMemory& memory = *stream->capture->graph.memory;
  const std::size_t needed = std::max(memory.most_bytes, memory.bytes + bytes);
  const std::size_t held = devices_[static_cast<std::size_t>(stream->device)].graph_bytes;
  if (needed > held + free_bytes(stream->device))
    return invalidate(*stream->capture, Status::out_of_memory, "no memory for what a capture allocates");
  void* const added = memory_.add(stream->device, bytes, FakeMemory::Kind::graph);
  const Status status = enqueue(stream, {.kind = FakeOperation::Kind::allocate, .to = added, .bytes = bytes});
  if (status != Status::success) {
    memory_.remove(added);
    return status;
  }
  memory.addresses.push_back(added);
  memory.unreleased.insert(added);
  memory.bytes += bytes;
  memory.most_bytes = needed;
  address = added;
  return Status::success;
}

Status FakeCalls::release_captured(StreamObject* stream, void* address) {
  FakeGraphMemory& memory = *stream->capture->graph.memory;
  if (!memory.unreleased.contains(address))
    return refuse_in_capture(stream, "what a capture releases must have been allocated in it, and not released yet");
  const Status status = enqueue(stream, {.kind = FakeOperation::Kind::release, .to = address});
  if (status != Status::success) return status;
  memory.unreleased.erase(address);
  memory.bytes -= memory_.size_of(address);
  return Status::success;
}

// -- graphs

Status FakeCalls::destroy_graph(GraphObject* graph) {
  const auto lock = begin_call();
  return forget(graph);
}

Status FakeCalls::count_nodes(GraphObject* graph, std::size_t& count) {
  const auto lock = begin_call();
  count = graph->nodes.size();
  return Status::success;
}

Status FakeCalls::instantiate(GraphObject* graph, ExecutableObject*& executable) {
  const auto lock = begin_call();
  if (const Status fault = fault_of(graph->device); fault != Status::success) return fault;
  if (!graph->memory->addresses.empty() && graph->memory->executables > 0)
    return answer(Status::not_supported, "a graph that allocates memory has one executable at a time");
  auto made = std::make_unique<ExecutableObject>();
  made->device = graph->device;
  made->nodes = graph->nodes;
  made->memory = graph->memory;
  ++made->memory->executables;
  if (const Status status = take_executable_memory(*made, settings_.node_bytes); status != Status::success)
    return status;
  executable = keep(graph->device, std::move(made));
  return Status::success;
}

Status FakeCalls::update(ExecutableObject* executable, GraphObject* graph, std::string& refusal) {
  const auto lock = begin_call();
  if (const Status fault = fault_of(executable->device); fault != Status::success) return fault;
  const auto refuse = [&](std::string why) {
    refusal = std::move(why);
    return answer(Status::update_failure, refusal);
  };
  if (executable->nodes.size() != graph->nodes.size())
    return refuse(
        fmt::format("the graph's form changed: {} nodes, not {}", graph->nodes.size(), executable->nodes.size()));
  for (std::size_t i = 0; i < graph->nodes.size(); ++i) {
    const GraphObject::Node& now = executable->nodes[i];
    const GraphObject::Node& wanted = graph->nodes[i];
    const FakeOperation::Kind kind = wanted.operation.kind;
    if (now.after != wanted.after) return refuse(fmt::format("the graph's form changed: what node {} waits for", i));
    if (now.operation.kind != kind) return refuse(fmt::format("node {} is of another kind", i));
    if (now.operation.device != wanted.operation.device) return refuse(fmt::format("node {} is of another device", i));
    if (kind == FakeOperation::Kind::allocate || kind == FakeOperation::Kind::release)
      return refuse(fmt::format("node {} allocates or releases memory, which cannot be updated", i));
    if (memory_.device_of(now.operation.to) != memory_.device_of(wanted.operation.to) ||
        memory_.device_of(now.operation.from) != memory_.device_of(wanted.operation.from))
      return refuse(fmt::format("node {} is given memory of another device", i));
  }
  executable->nodes = graph->nodes;
  return Status::success;
}

Status FakeCalls::take_executable_memory(ExecutableObject& executable, std::size_t bytes_of_node) {
  const std::size_t bytes = executable.nodes.size() * bytes_of_node;
  if (bytes > free_bytes(executable.device)) queue_.run_device(executable.device);
  if (bytes > free_bytes(executable.device))
    return answer(Status::out_of_memory,
                  fmt::format("an executable of {} nodes takes {} bytes", executable.nodes.size(), bytes));
  devices_[static_cast<std::size_t>(executable.device)].executable_bytes += bytes;
  executable.bytes += bytes;
  return Status::success;
}

Status FakeCalls::upload(ExecutableObject& executable) {
  if (executable.is_uploaded) return Status::success;
  const Status status = take_executable_memory(executable, settings_.uploaded_node_bytes);
  executable.is_uploaded = status == Status::success;
  return status;
}

Status FakeCalls::upload_graph(StreamObject* stream, ExecutableObject* executable) {
  const auto lock = begin_call();
  if (const Status status = check_stream(stream); status != Status::success) return status;
  if (stream->capture != nullptr)
    return invalidate(*stream->capture, Status::not_supported, "a graph is uploaded in a capture");
  return upload(*executable);
}

Status FakeCalls::launch_graph(StreamObject* stream, ExecutableObject* executable) {
  const auto lock = begin_call();
  if (const Status status = check_stream(stream); status != Status::success) return status;
  if (stream->capture != nullptr)
    return invalidate(*stream->capture, Status::not_supported, "a graph is launched into a capture");
  if (const Status status = check_default_stream(*stream); status != Status::success) return status;
  if (const Status status = upload(*executable); status != Status::success) return status;
  if (const Status status = hold_graph_memory(*stream, *executable); status != Status::success) return status;
  std::vector<WorkPointer> before = order_of(*stream);
  if (executable->last != nullptr) before.push_back(executable->last);
  const WorkPointer start = queue_.add({.device = stream->device, .stream = stream}, std::move(before));
  std::vector<WorkPointer> works;
  for (const GraphObject::Node& node : executable->nodes) {
    std::vector<WorkPointer> after;
    for (const std::size_t other : node.after) after.push_back(works[other]);
    if (after.empty()) after.push_back(start);
    works.push_back(queue_.add(node.operation, std::move(after)));
    works.back()->operation.keeps = executable->memory;
  }
  works.push_back(start);
  executable->last = queue_.add({.device = stream->device, .stream = stream}, std::move(works));
  stream->after = {executable->last};
  graph_launches_.push_back({stream->device, stream, executable->memory->most_bytes, executable->last});
  queue_.run_some();
  return Status::success;
}

// Graphs on different streams may run at the same time, so their memory is added up.
Status FakeCalls::hold_graph_memory(const StreamObject& stream, const ExecutableObject& executable) {
  const auto needed = [&] {
    std::erase_if(graph_launches_, [](const GraphLaunch& launch) { return launch.end->is_done; });
    std::map<const StreamObject*, std::size_t> of_streams;
    for (const GraphLaunch& launch : graph_launches_)
      if (launch.device == stream.device) of_streams[launch.stream] = std::max(of_streams[launch.stream], launch.bytes);
    of_streams[&stream] = std::max(of_streams[&stream], executable.memory->most_bytes);
    std::size_t bytes = 0;
    for (const auto& [other, most] : of_streams) bytes += most;
    return bytes;
  };
  std::size_t& held = devices_[static_cast<std::size_t>(stream.device)].graph_bytes;
  if (needed() > held + free_bytes(stream.device)) queue_.run_device(stream.device);
  const std::size_t bytes = needed();
  if (bytes > held + free_bytes(stream.device))
    return answer(Status::out_of_memory, fmt::format("graphs need {} bytes of memory", bytes));
  held = std::max(held, bytes);
  return Status::success;
}

Status FakeCalls::destroy_executable(ExecutableObject* executable) {
  const auto lock = begin_call();
  devices_[static_cast<std::size_t>(executable->device)].executable_bytes -= executable->bytes;
  return forget(executable);
}

Status FakeCalls::count_graph_memory(int device, std::size_t& bytes) {
  const auto lock = begin_call();
  bytes = devices_[static_cast<std::size_t>(device)].graph_bytes;
  return Status::success;
}

}  // namespace weft::cuda
