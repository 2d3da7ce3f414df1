// Memory, code and launches of the fake device, and how its work is done.

#include <algorithm>
#include <cstring>

#include <fmt/core.h>

#include "runtime/cuda/fake_calls.h"

namespace weft::cuda {
namespace {

constexpr std::string_view kImagePrefix = "weft fake image:";

class IllegalAddress : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The PTX version of each driver's CUDA, from "Release Notes" of the PTX ISA 9.1.
struct PtxOfDriver {
  int driver, ptx;
};
constexpr PtxOfDriver kPtxOfDrivers[] = {{12000, 80}, {12010, 81}, {12020, 82}, {12030, 83}, {12040, 84}, {12050, 85},
                                         {12070, 86}, {12080, 87}, {12090, 88}, {13000, 90}, {13010, 91}};

// The newest PTX that a driver knows: 84 (PTX 8.4) for CUDA 12.4, or 0 for a driver that is older than the table.
int newest_ptx(int driver_version) {
  int newest = 0;
  for (const auto& [driver, ptx] : kPtxOfDrivers)
    if (driver <= driver_version) newest = ptx;
  return newest;
}

bool runs_on(const FakeImage& image, int device) {
  if (image.suffix == 'a') return device == image.architecture;
  const bool is_for_family = !image.is_ptx || image.suffix == 'f';
  return device >= image.architecture && (!is_for_family || device / 10 == image.architecture / 10);
}

}  // namespace

// -- doing

void FakeLaunch::check(const void* first, std::size_t bytes) const {
  if (bytes == 0) return;
  if (const std::string fault = memory_.fault(first, bytes, device_); !fault.empty()) throw IllegalAddress(fault);
}

std::vector<std::span<std::byte>> FakeLaunch::allocations() const { return memory_.usable(device_); }

void FakeCalls::break_device(int device, Status status, const std::string& words) {
  Device& on = devices_[static_cast<std::size_t>(device)];
  if (on.fault != Status::success) return;
  on.fault = status;
  on.fault_words = words;
}

void FakeCalls::run(const FakeOperation& operation) {
  if (devices_[static_cast<std::size_t>(operation.device)].fault != Status::success) return;
  std::string words;
  const Status status = run_checked(operation, words);
  if (status != Status::success) break_device(operation.device, status, words);
}

Status FakeCalls::run_checked(const FakeOperation& operation, std::string& words) {
  switch (operation.kind) {
    case FakeOperation::Kind::nothing:
      return Status::success;
    case FakeOperation::Kind::allocate:
      memory_.begin(operation.to);
      return Status::success;
    case FakeOperation::Kind::release:
      memory_.end(operation.to);
      return Status::success;
    case FakeOperation::Kind::copy:
      words = memory_.copy_fault(operation.from, operation.bytes);
      if (words.empty()) words = memory_.copy_fault(operation.to, operation.bytes);
      if (!words.empty()) break;
      std::memmove(operation.to, operation.from, operation.bytes);
      return Status::success;
    case FakeOperation::Kind::fill:
      words = memory_.copy_fault(operation.to, operation.bytes);
      if (!words.empty()) break;
      std::memset(operation.to, operation.value, operation.bytes);
      return Status::success;
    case FakeOperation::Kind::host:
      return run_host(operation, words);
    case FakeOperation::Kind::kernel:
      if (!operation.function->is_loaded) {
        words = "its module was unloaded before it ran";
        break;
      }
      try {
        operation.function->kernel->run({operation.device, operation.size, operation.arguments, memory_});
      } catch (const IllegalAddress& fault) {
        words = fmt::format("kernel {}: {}", operation.function->kernel->name, fault.what());
        break;
      } catch (const std::exception& fault) {
        words = fmt::format("kernel {}: {}", operation.function->kernel->name, fault.what());
        return Status::launch_failed;
      }
      return Status::success;
  }
  return Status::illegal_address;
}

Status FakeCalls::run_host(const FakeOperation& operation, std::string& words) {
  thread_->is_in_host_function = true;
  memory_.hide();
  try {
    operation.host(operation.host_data);
  } catch (const std::exception& fault) {
    words = fmt::format("a host function threw: {}", fault.what());
  }
  memory_.show();
  thread_->is_in_host_function = false;
  return words.empty() ? Status::success : Status::launch_failed;
}

// -- memory

std::size_t FakeCalls::free_bytes(int device) const {
  const Device& of = devices_[static_cast<std::size_t>(device)];
  const std::size_t taken = memory_.used(device) + of.graph_bytes + of.executable_bytes;
  return taken >= settings_.memory_bytes ? 0 : settings_.memory_bytes - taken;
}

Status FakeCalls::allocate(StreamObject* stream, std::size_t bytes, void*& address) {
  const auto lock = begin_call();
  if (stream->capture != nullptr) return allocate_captured(stream, bytes, address);
  if (const Status status = check_stream(stream); status != Status::success) return status;
  // Released memory is free only after the queued release has run.
  if (bytes > free_bytes(stream->device)) queue_.run_device(stream->device);
  if (bytes > free_bytes(stream->device)) return Status::out_of_memory;
  void* const added = memory_.add(stream->device, bytes);
  releasing_.erase(added);  // an old allocation may have had the same address
  const Status status = enqueue(stream, {.kind = FakeOperation::Kind::allocate, .to = added, .bytes = bytes});
  if (status == Status::success) address = added;
  if (status != Status::success) memory_.remove(added);
  return status;
}

Status FakeCalls::release(StreamObject* stream, void* address) {
  const auto lock = begin_call();
  if (stream->capture != nullptr) return release_captured(stream, address);
  if (memory_.size_of(address) == 0 || releasing_.contains(address) || memory_.is_of_host(address))
    return answer(Status::invalid_value, "nothing was allocated there, or it was released before");
  if (memory_.device_of(address) != stream->device)
    return answer(Status::invalid_value, "the memory is not of the stream's device");
  const Status status = enqueue(stream, {.kind = FakeOperation::Kind::release, .to = address});
  if (status == Status::success) releasing_.insert(address);
  return status;
}

Status FakeCalls::allocate_host(std::size_t bytes, void*& address) {
  const auto lock = begin_call();
  int device = 0;
  if (const Status status = current_device(device); status != Status::success) return status;
  if (const Status status = refuse_while_capturing("memory of the host is allocated in a capture");
      status != Status::success)
    return status;
  address = memory_.add(device, bytes, FakeMemory::Kind::host);
  releasing_.erase(address);
  memory_.begin(address);
  return Status::success;
}

Status FakeCalls::release_host(void* address) {
  const auto lock = begin_call();
  if (!memory_.is_of_host(address) || releasing_.contains(address))
    return answer(Status::invalid_value, "no memory of the host was allocated there, or it was released before");
  if (const Status status = refuse_while_capturing("memory of the host is released in a capture");
      status != Status::success)
    return status;
  releasing_.insert(address);
  memory_.end(address);
  return Status::success;
}

Status FakeCalls::find_device(const void* address, int& device) {
  const auto lock = begin_call();
  device = memory_.device_of(address);
  return device < 0 ? Status::invalid_value : Status::success;
}

Status FakeCalls::copy(StreamObject* stream, void* to, const void* from, std::size_t bytes) {
  const auto lock = begin_call();
  if (to == nullptr || from == nullptr || !memory_.is_in_bounds(to, bytes) || !memory_.is_in_bounds(from, bytes))
    return refuse_in_capture(stream, "a copy reaches beyond the end of an allocation, or is of nothing");
  return enqueue(stream, {.kind = FakeOperation::Kind::copy, .to = to, .from = from, .bytes = bytes});
}

Status FakeCalls::fill(StreamObject* stream, void* to, std::uint8_t value, std::size_t bytes) {
  const auto lock = begin_call();
  if (!memory_.is_known(to) || !memory_.is_in_bounds(to, bytes))
    return refuse_in_capture(stream, "a fill reaches beyond the end of an allocation, or is not of a device's memory");
  return enqueue(stream, {.kind = FakeOperation::Kind::fill, .to = to, .bytes = bytes, .value = value});
}

// -- code

std::vector<std::byte> fake_image(const std::vector<int>& compute_capabilities) {
  std::string text(kImagePrefix);
  for (const int capability : compute_capabilities) text += fmt::format(" sm_{},", capability);
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

Status FakeCalls::read_image(std::span<const std::byte> image, std::vector<FakeKernel>& kernels) {
  if (!settings_.read_image) return Status::invalid_image;
  FakeImage read;
  try {
    read = settings_.read_image(image);
  } catch (const std::exception& fault) {
    return answer(Status::invalid_image, fault.what());
  }
  if (read.kernels.empty()) return Status::invalid_image;
  kernels = std::move(read.kernels);
  const Status status = check_ptx_version(read);
  return status == Status::success ? check_architecture(read) : status;
}

Status FakeCalls::check_ptx_version(const FakeImage& image) {
  const int known = newest_ptx(settings_.driver_version);
  if (!image.is_ptx || settings_.driver_version == 0 || image.ptx_version <= known) return Status::success;
  return answer(
      Status::unsupported_ptx_version,
      fmt::format("the image is PTX {}.{}, the driver is for CUDA {} and reads PTX {}.{}", image.ptx_version / 10,
                  image.ptx_version % 10, cuda_version_text(settings_.driver_version), known / 10, known % 10));
}

Status FakeCalls::check_architecture(const FakeImage& image) {
  if (runs_on(image, settings_.compute_capability)) return Status::success;
  const std::string suffix(image.suffix == 0 ? 0 : 1, image.suffix);
  return answer(image.is_ptx ? Status::invalid_ptx : Status::no_binary_for_gpu,
                fmt::format("the image is {} for sm_{}{}, the device is sm_{}", image.is_ptx ? "PTX" : "machine code",
                            image.architecture, suffix, settings_.compute_capability));
}

// Reads a text like "weft fake image: sm_80, sm_90,".
Status FakeCalls::read_fake_image(const std::string& text) {
  const std::string device = fmt::format(" sm_{},", settings_.compute_capability);
  if (text.find(device) != std::string::npos) return Status::success;
  return answer(Status::no_binary_for_gpu, fmt::format("the image is for{} the device is sm_{}",
                                                       text.substr(kImagePrefix.size()), settings_.compute_capability));
}

Status FakeCalls::load_module(std::span<const std::byte> image, ModuleObject*& module) {
  const auto lock = begin_call();
  int device = 0;
  if (const Status status = current_device(device); status != Status::success) return status;
  if (const Status status = refuse_while_capturing("device code is loaded in a capture"); status != Status::success)
    return status;
  auto made = std::make_unique<ModuleObject>();
  made->device = device;
  const std::string text(reinterpret_cast<const char*>(image.data()), image.size());
  const Status status = text.starts_with(kImagePrefix) ? read_fake_image(text) : read_image(image, made->kernels);
  if (status != Status::success) return status;
  module = keep(device, std::move(made));
  return Status::success;
}

Status FakeCalls::unload_module(ModuleObject* module) {
  const auto lock = begin_call();
  // The module object is kept: queued work that still names its functions must find that they are unloaded.
  for (const std::shared_ptr<FunctionObject>& function : module->functions) function->is_loaded = false;
  return fault_of(module->device);
}

Status FakeCalls::find_function(ModuleObject* module, const std::string& name, std::size_t argument_bytes,
                                std::uint32_t shared_bytes, FunctionObject*& function) {
  const auto lock = begin_call();
  if (const Status fault = fault_of(module->device); fault != Status::success) return fault;
  // The driver may load code lazily, in this call.
  if (const Status status = refuse_while_capturing("a function is looked up in a capture"); status != Status::success)
    return status;
  const std::vector<FakeKernel>& kernels = module->kernels.empty() ? settings_.kernels : module->kernels;
  const auto found =
      std::find_if(kernels.begin(), kernels.end(), [&](const FakeKernel& kernel) { return kernel.name == name; });
  if (found == kernels.end()) return Status::not_found;
  if (found->argument_bytes != argument_bytes)
    return answer(Status::invalid_value, fmt::format("it takes {} bytes of arguments, but is to be given {}",
                                                     found->argument_bytes, argument_bytes));
  module->functions.push_back(std::make_shared<FunctionObject>(FunctionObject{&*found, shared_bytes}));
  function = module->functions.back().get();
  return Status::success;
}

Status FakeCalls::launch(StreamObject* stream, FunctionObject* function, const LaunchSize& size,
                         std::span<const std::byte> arguments) {
  const auto lock = begin_call();
  constexpr std::uint32_t kMostAcross = 65535;  // blocks along y and z
  const std::uint64_t threads = std::uint64_t{size.threads[0]} * size.threads[1] * size.threads[2];
  const std::uint64_t blocks = std::uint64_t{size.blocks[0]} * size.blocks[1] * size.blocks[2];
  const FakeKernel& kernel = *function->kernel;
  if (threads == 0 || threads > kernel.threads_per_block || blocks == 0 || size.blocks[0] > 0x7fffffffu ||
      size.blocks[1] > kMostAcross || size.blocks[2] > kMostAcross || size.shared_bytes > function->shared_bytes)
    return refuse_in_capture(
        stream, fmt::format("kernel {} takes 1 to {} threads of a block, 1 to 2147483647 x {} x {} blocks and {} bytes "
                            "of shared memory, but is given {} threads, {} x {} x {} blocks and {} bytes",
                            kernel.name, kernel.threads_per_block, kMostAcross, kMostAcross, function->shared_bytes,
                            threads, size.blocks[0], size.blocks[1], size.blocks[2], size.shared_bytes));
  if (arguments.size() != kernel.argument_bytes)
    return refuse_in_capture(stream, fmt::format("kernel {} takes {} bytes of arguments, but is given {}", kernel.name,
                                                 kernel.argument_bytes, arguments.size()));
  return enqueue(stream, {.kind = FakeOperation::Kind::kernel,
                          .function = function,
                          .size = size,
                          .arguments = {arguments.begin(), arguments.end()}});
}

Status FakeCalls::launch_host(StreamObject* stream, HostFunction function, void* data) {
  const auto lock = begin_call();
  if (function == nullptr) return refuse_in_capture(stream, "there is no host function to run");
  return enqueue(stream, {.kind = FakeOperation::Kind::host, .host = function, .host_data = data});
}

}  // namespace weft::cuda
