#include "runtime/cuda/stream_device.h"

#include <algorithm>
#include <cstring>

#include "kernels/kernel.h"
#include "runtime/cuda/current_guard.h"

namespace weft::cuda {

StreamDevice::Parts::~Parts() {
  try {
    for (const Module module : modules) driver->destroy(module);
    driver->destroy(stream);
  } catch (const DeviceError&) {  // gone with a broken device, or before
  }
}

struct StreamDevice::Memory {
  Memory(std::shared_ptr<Parts> parts, void* address, bool is_of_host)
      : parts(std::move(parts)), address(address), is_of_host(is_of_host) {}
  ~Memory() {
    try {
      if (is_of_host) {
        parts->driver->release_host(parts->stream.device, address);
      } else {
        const CurrentGuard guard(*parts->driver, parts->stream);
        parts->driver->release(parts->stream, address);
      }
    } catch (const DeviceError&) {  // gone with a broken device
    }
  }

  std::shared_ptr<Parts> parts;
  void* address;
  bool is_of_host;
};

StreamDevice::StreamDevice(std::unique_ptr<Driver> driver, int device, Images images)
    : parts_(std::make_shared<Parts>()) {
  parts_->driver = std::move(driver);
  for (const std::span<const std::byte> image : images)
    parts_->modules.push_back(parts_->driver->load_module(device, image));
  parts_->stream = parts_->driver->create_stream(device);
  queue_ = std::make_unique<DriverQueue>(*parts_->driver, parts_->stream, parts_->modules);
  capturer_ = std::make_unique<GraphCapturer>(*parts_->driver, parts_->stream, *queue_);
}

StreamDevice::~StreamDevice() = default;

void StreamDevice::load(std::span<const std::byte> image, const std::string& kernel) {
  parts_->modules.push_back(parts_->driver->load_module(parts_->stream.device, image));
  queue_->add(parts_->modules.back(), kernel);
}

void StreamDevice::settle() noexcept {
  try {
    synchronize();
  } catch (const std::exception&) {
  }
}

std::shared_ptr<Storage> StreamDevice::allocate(std::int64_t bytes) {
  const std::int64_t whole = std::max<std::int64_t>(bytes, 1);
  const CurrentGuard guard(*parts_->driver, parts_->stream);
  void* const address = parts_->driver->allocate(parts_->stream, static_cast<std::size_t>(whole));
  return Storage::view_of(static_cast<std::byte*>(address), whole, std::make_shared<Memory>(parts_, address, false));
}

std::shared_ptr<Storage> StreamDevice::allocate_host(std::int64_t bytes) {
  const std::int64_t whole = std::max<std::int64_t>(bytes, 1);
  void* const address = parts_->driver->allocate_host(parts_->stream.device, static_cast<std::size_t>(whole));
  std::memset(address, 0, static_cast<std::size_t>(whole));
  return Storage::view_of(static_cast<std::byte*>(address), whole, std::make_shared<Memory>(parts_, address, true));
}

Tensor StreamDevice::upload(const Tensor& tensor) {
  // Packed weights say no more of their size than their storage does.
  const std::int64_t bytes = tensor.meta.is_tensor() && tensor.meta.packed.empty() && tensor.meta.is_contiguous()
                                 ? tensor.meta.bytes().number()
                                 : tensor.storage->bytes() - tensor.byte_offset;
  // Whole lines, as in the arena: the library reads scales of blocks in steps of four, of the last row, too.
  Tensor copy{.meta = tensor.meta, .storage = allocate(whole_cache_lines(bytes))};
  {
    const CurrentGuard guard(*parts_->driver, parts_->stream);
    parts_->driver->copy(parts_->stream, copy.data(), tensor.data(), static_cast<std::size_t>(bytes));
  }
  synchronize();
  return copy;
}

Tensor StreamDevice::download(const Tensor& tensor) {
  CHECK(tensor.meta.is_contiguous(), "{} is not contiguous, and cannot be copied from a device", tensor.meta.text());
  Tensor copy = Tensor::empty(tensor.meta);
  {
    const CurrentGuard guard(*parts_->driver, parts_->stream);
    parts_->driver->copy(parts_->stream, copy.data(), tensor.data(),
                         static_cast<std::size_t>(tensor.meta.bytes().number()));
  }
  synchronize();
  return copy;
}

Tensor StreamDevice::zeros(const Meta& meta, std::int64_t pages) {
  const std::int64_t bytes =
      meta.kind == MetaKind::kv ? pages * bytes_of(meta.kv.dtype, kv_page_elements(meta.kv)) : meta.bytes().number();
  Tensor tensor{.meta = meta, .storage = allocate(bytes)};
  const CurrentGuard guard(*parts_->driver, parts_->stream);
  parts_->driver->fill(parts_->stream, tensor.data(), 0, static_cast<std::size_t>(bytes));
  return tensor;
}

}  // namespace weft::cuda
