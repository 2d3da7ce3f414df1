#pragma once

// A device as Replay and the engine use it: one stream, the code of its kernels, and memory that is allocated and
// released in the stream's order.

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/cuda/cuda_graph_builder.h"
#include "runtime/cuda/driver_queue.h"
#include "tensor/tensor.h"

namespace weft::cuda {

class StreamDevice {
 public:
  using Images = std::span<const std::span<const std::byte>>;
  // `images` have the kernels for the device (Driver::load_module). DeviceError where the device cannot load one.
  StreamDevice(std::unique_ptr<Driver> driver, int device, Images images);
  ~StreamDevice();
  StreamDevice(const StreamDevice&) = delete;
  StreamDevice& operator=(const StreamDevice&) = delete;

  // Loads an image with one more kernel for the queue, for the lifetime of this object. Not in a capture; DeviceError
  // as above.
  void load(std::span<const std::byte> image, const std::string& kernel);
  // Adds the library that implements the queue's calls of that function. `make` is called now and each time the device
  // is opened again.
  using MakeLibrary = std::function<std::unique_ptr<DeviceLibrary>(Driver& driver, Stream stream)>;
  void add_library(const std::string& function, MakeLibrary make);

  Driver& driver() { return *parts_->driver; }
  const DeviceFacts& facts() const { return parts_->driver->facts(parts_->stream.device); }
  Stream stream() const { return parts_->stream; }
  DriverQueue& queue() { return *queue_; }
  CudaGraphBuilder& graph_builder() { return *graph_builder_; }

  // Device memory with 256-byte alignment and undefined contents. The storage may outlive this object. Queued work may
  // use the memory if the storage existed when the work was queued. DeviceError, with the requested and the free bytes,
  // when there is not enough memory.
  std::shared_ptr<Storage> allocate(std::int64_t bytes);
  // Memory that both the host and the device read and write, zeroed. Its owner must wait for the queue before it
  // releases the memory.
  std::shared_ptr<Storage> allocate_host(std::int64_t bytes);

  // DeviceError, `[cuda:0] what must lie in its memory, but lies in ..`, unless the address is in the device's memory
  // or in host memory that it shares.
  void check_is_here(const void* address, const std::string& what);
  // Copies a tensor to device memory and waits for the copy.
  Tensor upload(const Tensor& tensor);
  // Copies a tensor of the device to host memory after all queued work is done. Waits.
  Tensor download(const Tensor& tensor);
  // The same into the beginning of another tensor's memory, and gives that tensor the type. InternalError where its
  // memory is too small.
  void download(const Tensor& tensor, Tensor& into);
  // Queues a copy between device memory and host memory. The host memory must stay allocated and unchanged until the
  // copy ran.
  void copy(void* to, const void* from, std::size_t bytes);
  // Zeroed device memory: a contiguous tensor, or `pages` KV pages.
  Tensor zeros(const Meta& meta, std::int64_t pages = 0);

  // Whether work has broken the device, which then does nothing more.
  bool is_broken() const { return !is_open_ || !parts_->driver->last_error(parts_->stream.device).empty(); }
  // Makes a broken device usable again, with its code and libraries, and a new stream, queue and graph builder. Its
  // memory is lost, also that of every other user of the device in this process: release all earlier storages. Earlier
  // captures return errors. DeviceError where the device cannot be opened; the call may then be repeated.
  void reopen();
  // The number of times that the device was opened. Memory from an earlier opening does not exist any more.
  int openings() const { return openings_; }
  // As in DriverQueue.
  void synchronize() { queue_->synchronize(); }
  // The same after a failure: ignores the errors of queued work.
  void settle() noexcept;

 private:
  // The state that storages need to release their memory.
  struct Parts {
    std::shared_ptr<Driver> driver;
    Stream stream;
    std::vector<Module> modules;
    bool is_gone = false;  // the device was reset, so its addresses may have been reused
    ~Parts();
  };
  struct Memory;
  struct LoadedImage {
    std::vector<std::byte> image;
    std::string kernel;  // the image's only kernel; "" where it has several
  };

  void open(std::shared_ptr<Driver> driver, int device);

  std::vector<LoadedImage> images_;
  std::vector<std::pair<std::string, MakeLibrary>> libraries_;
  bool is_open_ = true;
  int openings_ = 0;
  std::shared_ptr<Parts> parts_;
  std::unique_ptr<DriverQueue> queue_;
  std::unique_ptr<CudaGraphBuilder> graph_builder_;
  // The queues and capturers of earlier openings: objects that still refer to them get errors from them.
  std::vector<std::pair<std::unique_ptr<DriverQueue>, std::unique_ptr<CudaGraphBuilder>>> former_;
};

}  // namespace weft::cuda
