#pragma once

// A device as Replay and the engine use it: one stream of it, the code of its kernels, and memory that is taken and
// given back in the stream's order.

#include <memory>
#include <span>

#include "runtime/cuda/driver_queue.h"
#include "runtime/cuda/graph_capturer.h"
#include "tensor/tensor.h"

namespace weft::cuda {

class StreamDevice {
 public:
  using Images = std::span<const std::span<const std::byte>>;
  // `images` have the kernels for the device (Driver::load_module). DeviceError where the device does not take one.
  StreamDevice(std::unique_ptr<Driver> driver, int device, Images images);
  ~StreamDevice();
  StreamDevice(const StreamDevice&) = delete;
  StreamDevice& operator=(const StreamDevice&) = delete;

  // An image of one more kernel for the queue, for as long as this lives. Not in a capture; DeviceError as above.
  void load(std::span<const std::byte> image, const std::string& kernel);

  Driver& driver() { return *parts_->driver; }
  const DeviceFacts& facts() const { return parts_->driver->facts(parts_->stream.device); }
  Stream stream() const { return parts_->stream; }
  DriverQueue& queue() { return *queue_; }
  GraphCapturer& capturer() { return *capturer_; }

  // 256-byte aligned memory of the device, contents undefined. The storage may outlive this; what is queued may use it
  // for as long as the storage lives when it is queued. DeviceError, saying what was asked and is free, when there is
  // none.
  std::shared_ptr<Storage> allocate(std::int64_t bytes);
  // Memory that both the host and the device read and write, zeroed. Whoever lets it go waited for the queue before.
  std::shared_ptr<Storage> allocate_host(std::int64_t bytes);

  // The same tensor in the device's memory; waits until it is there.
  Tensor upload(const Tensor& tensor);
  // A contiguous tensor of the device as it is when all that was queued is done, in the host's memory. Waits.
  Tensor download(const Tensor& tensor);
  // Zeroed memory of the device: contiguous tensors, or so many KV pages.
  Tensor zeros(const Meta& meta, std::int64_t pages = 0);

  // Whether something that ran has broken the device, which then does nothing more.
  bool is_broken() const { return !parts_->driver->last_error(parts_->stream.device).empty(); }
  // DriverQueue's.
  void synchronize() { queue_->synchronize(); }
  // The same after a failure: what comes of what was queued is of no interest any more.
  void settle() noexcept;

 private:
  // What storages need to give their memory back.
  struct Parts {
    std::unique_ptr<Driver> driver;
    Stream stream;
    std::vector<Module> modules;
    ~Parts();
  };
  struct Memory;

  std::shared_ptr<Parts> parts_;
  std::unique_ptr<DriverQueue> queue_;
  std::unique_ptr<GraphCapturer> capturer_;
};

}  // namespace weft::cuda
