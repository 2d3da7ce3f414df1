#pragma once

// A small layer that is replayed on a fake device and on the host, for tests of both.

#include <cstring>

#include <gtest/gtest.h>

#include "base/error.h"
#include "compiler/pipeline.h"
#include "runtime/cuda/stream_device.h"
#include "runtime/replay.h"
#include "runtime/stable_inputs.h"
#include "tests/runtime/cuda_test_device.h"
#include "tests/small_layer.h"

namespace weft {

inline constexpr int kMostRows = 8;
inline constexpr std::size_t kMemoryBytes = std::size_t{1} << 22;

inline std::unique_ptr<cuda::StreamDevice> open_device(cuda::FakeSettings settings = test_device_settings()) {
  settings.memory_bytes = kMemoryBytes;
  const std::vector<std::byte> image = cuda::fake_image({90});
  const std::span<const std::byte> images[] = {image};
  return std::make_unique<cuda::StreamDevice>(cuda::open_fake_device(std::move(settings)), 0, images);
}

inline bool is_batch(const Tensor& tensor) { return tensor.meta.kind == MetaKind::batch; }

inline std::string bytes_of_tensor(const Tensor& tensor) {
  return {reinterpret_cast<const char*>(tensor.data()), static_cast<std::size_t>(tensor.meta.bytes().number())};
}

class ReplayOnADevice : public testing::Test {
 protected:
  ReplayOnADevice() : context_(test_context()), traced_(small_layer(*context_)) {
    plan_ = *compile(*traced_->clone(), *context_, {1, kMostRows}, {}).plan;
    on_host_ = std::make_unique<Replay>(std::make_shared<const Plan>(plan_), *context_->threads);
  }

  std::unique_ptr<Replay> replay_on(cuda::StreamDevice& device, ReplaySettings settings = {}) const {
    settings.device = &device;
    return std::make_unique<Replay>(std::make_shared<const Plan>(plan_), *context_->threads, nullptr,
                                    std::move(settings));
  }

  // The host's results: the layer's output and its residual, for one sequence or a given batch.
  std::vector<std::string> wanted(int rows, const Tensor& batch = {}) const {
    const std::vector<Tensor> inputs = layer_inputs(*traced_, rows).copies();
    for (std::size_t i = 0; i < inputs.size(); ++i)
      on_host_->bind(i, is_batch(inputs[i]) && batch.defined() ? batch : inputs[i]);
    on_host_->run();
    return {bytes_of_tensor(on_host_->result(0)), bytes_of_tensor(on_host_->result(1))};
  }
  // The plan's steps by another kernel than before.
  void replace(std::size_t step, std::function<void(const Kernel& before, const KernelCall&)> run) {
    const Kernel* const before = plan_.steps[step].kernel;
    kernels_.push_back(std::make_unique<Kernel>(*before));
    kernels_.back()->launches = true;
    kernels_.back()->run = [before, run](const KernelCall& call) { run(*before, call); };
    plan_.steps[step].kernel = kernels_.back().get();
  }
  std::size_t step_of(const std::string& op) const {
    for (std::size_t i = 0; i < plan_.steps.size(); ++i)
      if (plan_.steps[i].op == op) return i;
    CHECK(false, "the plan has no step {}", op);
  }

  std::shared_ptr<Context> context_;
  std::shared_ptr<Graph> traced_;
  Plan plan_;
  std::unique_ptr<Replay> on_host_;
  std::vector<std::unique_ptr<Kernel>> kernels_;
};

// The layer's inputs on a device, always at the same addresses.
class Places {
 public:
  Places(cuda::StreamDevice& device, const Graph& traced, const Plan& plan)
      : device_(device), traced_(traced), stable_(plan, kMostRows, kMostRows, &device) {
    for (const Tensor& largest : layer_inputs(traced, kMostRows).tensors)
      storages_.push_back(device.allocate_host(largest.storage->bytes()));
  }

  void bind(Replay& replay, int rows, const Tensor& batch = {}) {
    std::vector<Tensor> inputs = layer_inputs(traced_, rows).tensors;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (is_batch(inputs[i]) && batch.defined()) inputs[i] = batch;
      Tensor placed = stable_.place(i, inputs[i]);
      if (placed.storage == inputs[i].storage) {  // written over, or a param
        placed.storage = storages_[i];
        std::memcpy(placed.data(), inputs[i].data(), static_cast<std::size_t>(inputs[i].storage->bytes()));
      }
      replay.bind(i, placed);
    }
  }
  // Results of a run.
  std::vector<std::string> run(Replay& replay, int rows, ReplayMode mode = ReplayMode::full, const Tensor& batch = {}) {
    bind(replay, rows, batch);
    replay.run(mode);
    return {bytes_of_tensor(device_.download(replay.result(0))), bytes_of_tensor(device_.download(replay.result(1)))};
  }
  // Moves an input to another address and fills its old memory with garbage.
  void move(std::size_t input) {
    left_.push_back(storages_[input]);
    std::memset(left_.back()->data(), 0xff, static_cast<std::size_t>(left_.back()->bytes()));
    storages_[input] = device_.allocate_host(left_.back()->bytes());
  }

 private:
  cuda::StreamDevice& device_;
  const Graph& traced_;
  StableInputs stable_;
  std::vector<std::shared_ptr<Storage>> storages_, left_;
};

}  // namespace weft
