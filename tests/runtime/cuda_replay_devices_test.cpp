// Replay on one of two devices: its launches use that device, whichever is current, and it uses no memory of the other.

#include "tests/runtime/cuda_replay_host.h"

namespace weft::cuda_replay_devices_test {

class CudaReplayOnOneOfTwo : public ReplayOnADevice {
 protected:
  CudaReplayOnOneOfTwo() {
    cuda::FakeSettings settings = test_device_settings(1, 2);
    settings.memory_bytes = kMemoryBytes;
    const std::vector<std::byte> image = cuda::fake_image({90});
    const std::span<const std::byte> images[] = {image};
    device_ = std::make_unique<cuda::StreamDevice>(cuda::open_fake_device(std::move(settings)), 1, images);
    cuda::Driver& driver = device_->driver();
    of_first_ = driver.create_stream(0);
    driver.make_current(of_first_);
  }
  void expect_as_before() const {
    EXPECT_EQ(device_->driver().current_device(), 0);
    EXPECT_EQ(device_->driver().current_stream(0), of_first_);
  }

  std::unique_ptr<cuda::StreamDevice> device_;
  cuda::Stream of_first_;
};

TEST_F(CudaReplayOnOneOfTwo, LaunchesThereAndLeavesWhatWasCurrent) {
  Places places(*device_, *traced_, plan_);
  const auto replay = replay_on(*device_);
  for (const ReplayMode mode : {ReplayMode::none, ReplayMode::full}) {
    EXPECT_EQ(places.run(*replay, 4, mode), wanted(4));
    expect_as_before();
  }
}

TEST_F(CudaReplayOnOneOfTwo, LeavesWhatWasCurrentWhenAStepThrows) {
  replace(step_of("attention"), [](const Kernel&, const KernelCall& call) { call.queue->launch("none", {}, {}); });
  Places places(*device_, *traced_, plan_);
  const auto replay = replay_on(*device_);
  expect_device_error([&] { places.run(*replay, 4, ReplayMode::none); }, {"[fake-cuda:1]", "none"});
  expect_as_before();
}

TEST_F(CudaReplayOnOneOfTwo, TakesNoMemoryThatIsNotThere) {
  const auto replay = replay_on(*device_);
  Tensor input = layer_inputs(*traced_, 4).tensors[0];
  const std::string name = "input " + plan_.slots[static_cast<std::size_t>(plan_.inputs[0])].name;
  expect_device_error([&] { replay->bind(0, input); },
                      {"[fake-cuda:1]", name.c_str(), "must be in its memory, but is in the host's"});
  const std::int64_t bytes = input.storage->bytes();
  void* const other = device_->driver().allocate(of_first_, static_cast<std::size_t>(bytes));
  input.storage = Storage::view_of(static_cast<std::byte*>(other), bytes, nullptr);
  expect_device_error([&] { replay->bind(0, input); }, {"must be in its memory, but is in fake-cuda:0's"});
}

}  // namespace weft::cuda_replay_devices_test
