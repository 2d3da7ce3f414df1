#include "runtime/cuda/stream_device.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/first_time_work.h"
#include "kernels/kernel.h"
#include "runtime/cuda/current_guard.h"
#include "tensor/footprint.h"
#include "tensor/kv_pages.h"

namespace weft::cuda {
namespace {

void count_allocation(const DeviceFacts& device, std::int64_t bytes) {
  if (FirstTimeWork* work = FirstTimeScope::work())
    work->begin(FirstTime::allocate, fmt::format("a tensor of {} bytes on {}", bytes, device.name));
}

}  // namespace

StreamDevice::Parts::~Parts() {
  if (is_gone) return;
  try {
    for (const Module module : modules) driver->destroy(module);
    driver->destroy(stream);
  } catch (const DeviceError&) {  // the objects are already gone, for example with a broken device
  }
}

struct StreamDevice::Memory {
  Memory(std::shared_ptr<Parts> parts, void* address, bool is_of_host)
      : parts(std::move(parts)), address(address), is_of_host(is_of_host) {}
  ~Memory() {
    if (parts->is_gone) return;
    try {
      if (is_of_host) {
        parts->driver->release_host(parts->stream.device, address);
      } else {
        const CurrentGuard guard(*parts->driver, parts->stream);
        parts->driver->release(parts->stream, address);
      }
    } catch (const DeviceError&) {  // the memory is gone with the broken device
    }
  }

  std::shared_ptr<Parts> parts;
  void* address;
  bool is_of_host;
};

StreamDevice::StreamDevice(std::unique_ptr<Driver> driver, int device, Images images) {
  for (const std::span<const std::byte> image : images) images_.push_back({{image.begin(), image.end()}, ""});
  open(std::move(driver), device);
}

StreamDevice::~StreamDevice() = default;

void StreamDevice::open(std::shared_ptr<Driver> driver, int device) {
  auto parts = std::make_shared<Parts>();
  parts->driver = std::move(driver);
  std::vector<std::pair<Module, std::string>> of_one_kernel;
  std::vector<Module> of_all;
  for (const LoadedImage& loaded : images_) {
    parts->modules.push_back(parts->driver->load_module(device, loaded.image));
    if (loaded.kernel.empty()) {
      of_all.push_back(parts->modules.back());
    } else {
      of_one_kernel.emplace_back(parts->modules.back(), loaded.kernel);
    }
  }
  parts->stream = parts->driver->create_stream(device);
  auto queue = std::make_unique<DriverQueue>(*parts->driver, parts->stream, of_all);
  for (const auto& [module, kernel] : of_one_kernel) queue->add(module, kernel);
  for (const auto& [function, make] : libraries_) queue->add_library(function, make(*parts->driver, parts->stream));
  auto graph_builder = std::make_unique<CudaGraphBuilder>(*parts->driver, parts->stream, *queue);
  if (queue_ != nullptr) former_.emplace_back(std::move(queue_), std::move(graph_builder_));
  parts_ = std::move(parts);
  queue_ = std::move(queue);
  graph_builder_ = std::move(graph_builder);
  ++openings_;
}

void StreamDevice::load(std::span<const std::byte> image, const std::string& kernel) {
  parts_->modules.push_back(parts_->driver->load_module(parts_->stream.device, image));
  queue_->add(parts_->modules.back(), kernel);
  images_.push_back({{image.begin(), image.end()}, kernel});
}

void StreamDevice::add_library(const std::string& function, MakeLibrary make) {
  queue_->add_library(function, make(*parts_->driver, parts_->stream));
  libraries_.emplace_back(function, std::move(make));
}

void StreamDevice::reopen() {
  settle();
  queue_->close_libraries();
  is_open_ = false;
  parts_->is_gone = true;
  const int device = parts_->stream.device;
  parts_->driver->reset(device);
  open(parts_->driver, device);
  is_open_ = true;
}

void StreamDevice::settle() noexcept {
  try {
    synchronize();
  } catch (const std::exception&) {
  }
}

std::shared_ptr<Storage> StreamDevice::allocate(std::int64_t bytes) {
  const std::int64_t whole = std::max<std::int64_t>(bytes, 1);
  count_allocation(facts(), whole);
  const CurrentGuard guard(*parts_->driver, parts_->stream);
  void* const address = parts_->driver->allocate(parts_->stream, static_cast<std::size_t>(whole));
  return Storage::view_of(static_cast<std::byte*>(address), whole, std::make_shared<Memory>(parts_, address, false));
}

std::shared_ptr<Storage> StreamDevice::allocate_host(std::int64_t bytes) {
  const std::int64_t whole = std::max<std::int64_t>(bytes, 1);
  count_allocation(facts(), whole);
  void* const address = parts_->driver->allocate_host(parts_->stream.device, static_cast<std::size_t>(whole));
  std::memset(address, 0, static_cast<std::size_t>(whole));
  return Storage::view_of(static_cast<std::byte*>(address), whole, std::make_shared<Memory>(parts_, address, true));
}

void StreamDevice::check_is_here(const void* address, const std::string& what) {
  Driver& driver = *parts_->driver;
  const int device = parts_->stream.device;
  const std::optional<int> found = driver.device_of(address);
  if (found == device) return;
  fail_device("[{}] {} must be in its memory, but is in {}", driver.device_name(device), what,
              found ? driver.device_name(*found) + "'s" : "the host's");
}

void StreamDevice::copy(void* to, const void* from, std::size_t bytes) {
  const CurrentGuard guard(*parts_->driver, parts_->stream);
  parts_->driver->copy(parts_->stream, to, from, bytes);
}

Tensor StreamDevice::upload(const Tensor& tensor) {
  const std::int64_t bytes = stored_bytes(tensor);
  // Whole cache lines, as in the arena: the library reads block scales four at a time, also in the last row.
  Tensor there{.meta = tensor.meta, .storage = allocate(whole_cache_lines(bytes))};
  copy(there.data(), tensor.data(), static_cast<std::size_t>(bytes));
  synchronize();
  return there;
}

Tensor StreamDevice::download(const Tensor& tensor) {
  const std::int64_t bytes = stored_bytes(tensor);
  Tensor here{.meta = tensor.meta, .storage = Storage::allocate(std::max<std::int64_t>(bytes, 1))};
  copy(here.data(), tensor.data(), static_cast<std::size_t>(bytes));
  synchronize();
  return here;
}

void StreamDevice::download(const Tensor& tensor, Tensor& into) {
  const std::int64_t bytes = stored_bytes(tensor);
  CHECK(bytes <= into.storage->bytes(), "[{}] a tensor of {} bytes is wanted in memory of {}", facts().name, bytes,
        into.storage->bytes());
  into.meta = tensor.meta;
  into.byte_offset = 0;
  copy(into.data(), tensor.data(), static_cast<std::size_t>(bytes));
  synchronize();
}

Tensor StreamDevice::zeros(const Meta& meta, std::int64_t pages) {
  const std::int64_t bytes = meta.kind == MetaKind::kv ? pages * kv_page_bytes(meta.kv) : meta.bytes().number();
  Tensor tensor{.meta = meta, .storage = allocate(bytes)};
  const CurrentGuard guard(*parts_->driver, parts_->stream);
  parts_->driver->fill(parts_->stream, tensor.data(), 0, static_cast<std::size_t>(bytes));
  return tensor;
}

}  // namespace weft::cuda
