#pragma once

// A device as Replay and the engine use it: one stream of it, the code of its kernels, and memory that is taken and
// given back in the stream's order.

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

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
  // What does the queue's calls of that function, made now and whenever the device is opened anew.
  using MakeLibrary = std::function<std::unique_ptr<DeviceLibrary>(Driver& driver, Stream stream)>;
  void add_library(const std::string& function, MakeLibrary make);

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

  // DeviceError, `[cuda:0] what must lie in its memory, but lies in ..`, unless the address is of the device's memory
  // or of the host's that it shares.
  void check_is_here(const void* address, const std::string& what);
  // The same tensor in the device's memory; waits until it is there.
  Tensor upload(const Tensor& tensor);
  // A tensor of the device as it lies there when all that was queued is done, in the host's memory. Waits.
  Tensor download(const Tensor& tensor);
  // The same into the beginning of another tensor's memory, which then has its type. InternalError where that is less.
  void download(const Tensor& tensor, Tensor& into);
  // Queues a copy between memory of the device and the host's, which must stay, and stay as it is, until it ran.
  void copy(void* to, const void* from, std::size_t bytes);
  // Zeroed memory of the device: contiguous tensors, or so many KV pages.
  Tensor zeros(const Meta& meta, std::int64_t pages = 0);

  // Whether something that ran has broken the device, which then does nothing more.
  bool is_broken() const { return !is_open_ || !parts_->driver->last_error(parts_->stream.device).empty(); }
  // Makes a broken device usable again, with its code and libraries, a new stream, queue and capturer. Its memory is
  // gone: storages of before are to be let go, and what was captured answers with errors. So is that of whoever else in
  // the process uses this device. DeviceError where it does not come back; it may then be tried again.
  void reopen();
  // How often it was opened: whoever has memory of an earlier time has none any more.
  int openings() const { return openings_; }
  // DriverQueue's.
  void synchronize() { queue_->synchronize(); }
  // The same after a failure: what comes of what was queued is of no interest any more.
  void settle() noexcept;

 private:
  // What storages need to give their memory back.
  struct Parts {
    std::shared_ptr<Driver> driver;
    Stream stream;
    std::vector<Module> modules;
    bool is_gone = false;  // with a device that was reset: addresses may be others' by now
    ~Parts();
  };
  struct Memory;
  struct LoadedImage {
    std::vector<std::byte> image;
    std::string kernel;  // the one that it has; "" where it has several
  };

  void open(std::shared_ptr<Driver> driver, int device);

  std::vector<LoadedImage> images_;
  std::vector<std::pair<std::string, MakeLibrary>> libraries_;
  bool is_open_ = true;
  int openings_ = 0;
  std::shared_ptr<Parts> parts_;
  std::unique_ptr<DriverQueue> queue_;
  std::unique_ptr<GraphCapturer> capturer_;
  // Of before the device was opened anew: what holds on to them gets errors from them.
  std::vector<std::pair<std::unique_ptr<DriverQueue>, std::unique_ptr<GraphCapturer>>> former_;
};

}  // namespace weft::cuda
